// The rig itself: a world starts the real agents, shows their screens, and leaves nothing behind.
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { idle, recorded, submit } from "./claude-cases.ts";
import { announcement, claudeVersions, codexBinary, createWorld, lockedThreads, rollout, waitFor } from "./rig.ts";

for (const claude of claudeVersions) {
  test(`claude ${claude}: one headless turn with a tool call`, async () => {
    await using world = await createWorld({ claude });
    const prompt = "look ;; BASH=echo seen ;; SAY=it is there";
    const agent = world.start(["claude", "-p", prompt, "--dangerously-skip-permissions"]);
    expect({ ending: await agent.exited, stdout: agent.stdout().trim() }).toEqual({
      ending: { code: 0, signal: null },
      stdout: "it is there",
    });
    expect(world.model.requests.map(({ text, toolResults, answer }) => ({ text, toolResults, answer }))).toEqual([
      { text: prompt, toolResults: [], answer: "tool" },
      { text: prompt, toolResults: ["seen"], answer: "text" },
    ]);
  });

  test(`claude ${claude}: its interface in a terminal, hung up`, async () => {
    await using world = await createWorld({ claude });
    const tui = world.open(["claude"]);
    const id = await idle(world, tui);
    expect(announcement(world, tui.pid)).toMatchObject({ pid: tui.pid, procStart: tui.start, version: claude });
    await submit(tui, "hello ;; SAY=the answer");
    await tui.shows(/the answer/);
    await recorded(world, id, "turn_duration");
    tui.close();
    await tui.exited;
    await waitFor("its announcement to go", () => announcement(world, tui.pid) === null);
  });
}

test("codex: its interface in a terminal, its lock, its rollout", async () => {
  await using world = await createWorld();
  const tui = world.open([codexBinary()]);
  const id = await waitFor("its lock", () => lockedThreads(tui.pid)[0]);
  await tui.shows(/for shortcuts/);
  await submit(tui, "hello ;; SAY=the answer");
  await tui.shows(/• the answer/);
  await waitFor("its rollout", () => rollout(world, id));
});

test("a world leaves no process and no file", async () => {
  const world = await createWorld({ codexDaemon: "shared" });
  const tui = world.open(["codex"]);
  await tui.shows(/for shortcuts/);
  await waitFor("the daemon", () => world.processes().some(({ argv }) => argv.includes("--managed-daemon")));
  await world[Symbol.asyncDispose]();
  expect({ processes: world.processes(), folder: existsSync(world.dir) }).toEqual({ processes: [], folder: false });
});
