// docs/permissions.md with Claude Code and Codex: each value is checked by tool calls that do or do not change a file.
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { Listed } from "./check-answers.ts";
import { act, acted } from "./run-commands.ts";
import { claudeVersions, createTestHome, type TestHome } from "./test-home.ts";

interface Seen {
  edited: boolean;
  ran: boolean;
  outside: boolean;
  denied: number | null;
}

/** One session that tries to edit in its directory, to run a command there, and to edit elsewhere. */
async function tried(
  world: TestHome,
  agent: string,
  calls: (world: TestHome) => string[],
  flags: string[],
): Promise<Seen> {
  const prompt = [...calls(world), "SAY=done"].join("\n");
  const { out, err } = await act(world, ["run", agent, "-p", prompt, "--json", ...flags]);
  if (out === "") throw new Error(err);
  const { id } = JSON.parse(out) as Listed;
  const { denied } = JSON.parse(await acted(world, ["status", String(id), "--json"])) as Listed;
  const outsideToo = existsSync(outside(world));
  rmSync(outside(world), { force: true });
  return {
    edited: existsSync(join(world.cwd, "edited")),
    ran: existsSync(join(world.cwd, "ran")),
    outside: outsideToo,
    denied,
  };
}

const outside = ({ dir }: TestHome): string => join("/var/tmp", `${basename(dir)}-outside`);

const write = (path: string): string => `TOOL=Write ${JSON.stringify({ file_path: path, content: "x" })}`;
const claudeCalls = (world: TestHome): string[] => [
  write(join(world.cwd, "edited")),
  // A model may call the tool even if it is not offered.
  `TOOL=Bash ${JSON.stringify({ command: `python3 -c "open('ran','w')"` })}`,
  write(outside(world)),
];
/** Codex edits by commands. Its sandbox counts the temporary folder as inside. */
const codexCalls = (world: TestHome): string[] => [
  "BASH=touch edited",
  "BASH=touch ran",
  `BASH=touch ${outside(world)}`,
];

for (const version of claudeVersions)
  describe(`claude ${version}`, () => {
    const world = () => createTestHome({ claude: version });

    test.each([
      ["read", { edited: false, ran: false, outside: false, denied: 3 }],
      ["edit", { edited: true, ran: false, outside: false, denied: 2 }],
      ["bypass", { edited: true, ran: true, outside: true, denied: 0 }],
    ] as const)("%s", async (value, seen) => {
      await using here = await world();
      expect(await tried(here, "claude", claudeCalls, ["--permission", value])).toEqual(seen);
    });

    test("without a value the agent's own setting is used, with a note on stderr", async () => {
      await using here = await world();
      expect(await tried(here, "claude", claudeCalls, [])).toEqual({
        edited: false,
        ran: false,
        outside: false,
        denied: 3,
      });
      const { err } = await act(here, ["run", "claude", "hello ;; SAY=hello"]);
      expect(err).toContain('claude-code: its own mode "default"');
    });

    test("read is kept even if the settings allow everything", async () => {
      await using here = await world();
      const allow = { permissions: { allow: ["Bash", "Write", "Edit"], defaultMode: "bypassPermissions" } };
      writeFileSync(join(here.claudeHome, "settings.json"), JSON.stringify(allow));
      mkdirSync(join(here.cwd, ".claude"));
      writeFileSync(join(here.cwd, ".claude", "settings.json"), JSON.stringify(allow));
      const { denied, ...changed } = await tried(here, "claude", claudeCalls, ["--permission", "read"]);
      expect(changed).toEqual({ edited: false, ran: false, outside: false });
      expect(denied).toBe(3);
    });

    test("bypass as root outside a sandbox is refused before anything starts", async () => {
      await using here = await world();
      const { code, err } = await act(here, ["launch", "claude", "hello", "--permission", "bypass"], {
        env: { IS_SANDBOX: "" },
      });
      expect({ code, err }).toEqual({ code: 7, err: expect.stringContaining("as root") });
      expect(here.processes()).toEqual([]);
    });

    test("a continued session keeps its permission", async () => {
      await using here = await world();
      const id = await acted(here, ["launch", "claude", "one ;; SAY=one", "--permission", "edit"]);
      await acted(here, ["wait", id]);
      await acted(here, ["send", id, write(join(here.cwd, "edited"))]);
      await acted(here, ["wait", id]);
      expect(existsSync(join(here.cwd, "edited"))).toBe(true);
    });
  });

describe("codex", () => {
  test.each([
    ["read", { edited: false, ran: false, outside: false }],
    ["edit", { edited: true, ran: true, outside: false }],
    ["bypass", { edited: true, ran: true, outside: true }],
  ] as const)("%s", async (value, seen) => {
    await using here = await createTestHome();
    expect(await tried(here, "codex", codexCalls, ["--permission", value])).toMatchObject(seen);
  });

  test("without a value the agent's own setting is used, and named on stderr", async () => {
    await using here = await createTestHome();
    const { err } = await act(here, ["run", "codex", "hello ;; SAY=hello"]);
    expect(err).toMatch(/^agentctl: codex: .*no sandbox: it may do everything/);
    const config = await Bun.file(join(here.codexHome, "config.toml")).text();
    await Bun.write(
      join(here.codexHome, "config.toml"),
      config.replace(/^sandbox_mode.*\n/m, "").replace(/\[projects[\s\S]*$/, ""),
    );
    const { edited } = await tried(here, "codex", codexCalls, []);
    const meaning = await act(here, ["run", "codex", "hello ;; SAY=hello"]);
    // What it does and what we say of it agree.
    expect([edited, meaning.err.includes("cannot edit")]).toEqual([false, true]);
  });

  test("outside a repository codex's own error is printed", async () => {
    await using here = await createTestHome();
    const folder = join(here.dir, "plain");
    mkdirSync(folder);
    const { code, err } = await act(here, ["launch", "codex", "hello", "--cwd", folder]);
    expect([code, err]).toEqual([7, expect.stringContaining("--skip-git-repo-check")]);
    expect(
      await acted(here, ["run", "codex", "hello ;; SAY=fine", "--cwd", folder, "--", "--skip-git-repo-check"]),
    ).toBe("fine");
  });
});
