// The test home itself: it starts the real agents, shows their screens, and leaves nothing behind.
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { idle, recorded, submit } from "./claude-cases.ts";
import {
  announcement,
  claudeVersions,
  codexBinary,
  createTestHome,
  lockedThreads,
  rollout,
  waitFor,
} from "./test-home.ts";

for (const claude of claudeVersions) {
  test(`claude ${claude}: one headless turn with a tool call`, async () => {
    await using world = await createTestHome({ claude });
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

  test(`claude ${claude}: the terminal interface starts and is hung up`, async () => {
    await using world = await createTestHome({ claude });
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

test("codex: the terminal interface starts and has its lock and its record", async () => {
  await using world = await createTestHome();
  const tui = world.open([codexBinary()]);
  const id = await waitFor("its lock", () => lockedThreads(tui.pid)[0]);
  await tui.shows(/for shortcuts/);
  await submit(tui, "hello ;; SAY=the answer");
  await tui.shows(/• the answer/);
  await waitFor("its rollout", () => rollout(world, id));
});

test("a test home leaves no process and no file", async () => {
  const world = await createTestHome({ codexDaemon: "shared" });
  const tui = world.open(["codex"]);
  await tui.shows(/for shortcuts/);
  await waitFor("the daemon", () => world.processes().some(({ argv }) => argv.includes("--managed-daemon")));
  await world[Symbol.asyncDispose]();
  expect({ processes: world.processes(), folder: existsSync(world.dir) }).toEqual({ processes: [], folder: false });
});
