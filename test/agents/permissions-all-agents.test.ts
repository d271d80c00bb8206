// docs/permissions.md with every real agent: each value is checked by tool calls that do or do not change a file.
import { describe, expect } from "bun:test";
import { existsSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { chosen, type RealAgent, type Seen } from "./driver.ts";
import { drivers } from "./drivers/index.ts";
import { casesOf, over } from "./lifecycle-steps.ts";
import { act, acted, nothingLeft } from "./run-commands.ts";
import type { TestHome } from "./test-home.ts";

/** Not in the temporary folder: some agents count that as inside. */
const outside = ({ dir }: TestHome): string => join("/var/tmp", `${basename(dir)}-outside`);

const seen = (world: TestHome): Seen => ({
  edited: existsSync(join(world.cwd, "edited")),
  ran: existsSync(join(world.cwd, "ran")),
  outside: existsSync(outside(world)),
});

/** One session that tries to edit in its directory, to run a command there, and to edit elsewhere. */
async function tried(
  world: TestHome,
  { agent, permits }: RealAgent,
  flags: string[],
): Promise<{ seen: Seen; err: string }> {
  const prompt = [...(permits?.calls(world, outside(world)) ?? []), "SAY=done"].join("\n");
  try {
    const { code, err } = await act(world, ["run", agent, "-p", prompt, ...flags]);
    // All three calls were tried, or it ended at the first one that it would have to ask about.
    if (world.model.requests.every(({ answer }) => answer !== "tool")) throw new Error(`exit ${code}\n${err}`);
    return { seen: seen(world), err };
  } finally {
    rmSync(outside(world), { force: true });
  }
}

for (const driver of chosen(drivers)) {
  const { permits, agent } = driver;
  if (permits === null) continue;
  describe(driver.name, () => {
    const here = casesOf(driver);
    for (const value of ["read", "edit", "bypass"] as const) {
      const expected = permits[value];
      if (expected === "refused")
        here(`${value} is refused before anything starts`, async (world) => {
          const { code, err } = await act(world, ["launch", agent, "hello", "--permission", value]);
          expect({ code, err }).toEqual({ code: 7, err: expect.stringContaining(value) });
          expect(world.processes()).toEqual([]);
          expect(world.model.requests).toEqual([]);
        });
      else
        here(value, async (world) => {
          expect((await tried(world, driver, ["--permission", value])).seen).toEqual(expected);
        });
    }

    here("without a value the agent's own setting is used, and named on stderr", async (world) => {
      const answer = await tried(world, driver, []);
      expect(answer.seen).toEqual(permits.none);
      expect(answer.err).toMatch(permits.noneSays);
    });

    const [value] = (["edit", "bypass"] as const).filter((each) => permits[each] !== "refused");
    if (value !== undefined)
      here("a continued session keeps its permission", async (world) => {
        const id = await acted(world, ["launch", agent, "one ;; SAY=one", "--permission", value]);
        await over(world, driver, ["wait", id]);
        await nothingLeft(world, driver.stays);
        const [edit] = permits.calls(world, outside(world));
        await acted(world, ["send", id, edit]);
        await over(world, driver, ["wait", id]);
        expect(seen(world).edited).toBe(true);
      });
  });
}
