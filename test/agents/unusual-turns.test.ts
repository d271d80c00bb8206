// Unusual ways to start, end and leave a turn. Each of them once gave a wrong status.
import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ask, list, rowOf } from "./check-answers.ts";
import { idle, recorded, submit } from "./claude-cases.ts";
import {
  announcement,
  claudeVersions,
  codexBinary,
  createTestHome,
  lockedThreads,
  type TestHome,
  waitFor,
} from "./test-home.ts";

for (const version of claudeVersions)
  describe(`claude ${version}`, () => {
    const finished = async (world: TestHome, id: string): Promise<void> => {
      await world.start(["claude", "-p", "one ;; SAY=the old answer", "--session-id", id]).exited;
    };

    test("a custom slash command starts a turn", async () => {
      await using world = await createTestHome({ claude: version });
      mkdirSync(join(world.cwd, ".claude", "commands"), { recursive: true });
      writeFileSync(join(world.cwd, ".claude", "commands", "fixit.md"), "mend it\nHOLD=mend\n");
      const id = crypto.randomUUID();
      await finished(world, id);
      const agent = world.start(["claude", "-p", "/fixit", "--resume", id]);
      await recorded(world, id, "<command-message>");
      await waitFor("its request", () => world.model.requests.length >= 2);
      expect(await rowOf(world, id)).toMatchObject({ activity: "working" });
      agent.signal("SIGKILL");
      await agent.exited;
      expect(await rowOf(world, id)).toMatchObject({ state: "stopped", outcome: "cut-off" });
      expect((await ask<{ text: string | null }>(world, "result", id)).text).toBeNull();
    });

    test("a compacted session keeps its status", async () => {
      await using world = await createTestHome({ claude: version });
      const id = crypto.randomUUID();
      await finished(world, id);
      await world.start(["claude", "-p", "/compact", "--resume", id]).exited;
      expect(await rowOf(world, id)).toMatchObject({ state: "stopped", outcome: "completed" });
    });

    test("a session that was left by /resume names the other session", async () => {
      await using world = await createTestHome({ claude: version });
      const other = crypto.randomUUID();
      await finished(world, other);
      const tui = world.open(["claude"]);
      const id = await idle(world, tui);
      await submit(tui, "here ;; SAY=here");
      await recorded(world, id, '"text":"here"');
      await waitFor("idle", () => announcement(world, tui.pid)?.["status"] === "idle");
      await submit(tui, `/resume ${other}`);
      await waitFor("the other session", () => announcement(world, tui.pid)?.["sessionId"] === other);
      await waitFor("its history", async () => (await rowOf(world, id)).continuedBy === other);
      expect(await rowOf(world, other)).toMatchObject({ state: "running", process: { pid: tui.pid } });
    });

    test("a process at its trust dialog makes no other session of the directory unknown", async () => {
      await using world = await createTestHome({ claude: version, trust: "ask" });
      const tui = world.open(["claude"]);
      await tui.shows(/trust/i);
      const id = crypto.randomUUID();
      await finished(world, id);
      const states = (await list(world)).sessions.map((row) => [row.id, row.status, row.waiting?.kind ?? null]);
      expect(states).toContainEqual([id, "completed", null]);
      expect(states).toContainEqual([null, "waiting", "trust"]);
    });

    test("a session that reaches --max-turns failed, and was not cut off", async () => {
      await using world = await createTestHome({ claude: version });
      const id = crypto.randomUUID();
      const limit = ["--max-turns", "1", "--dangerously-skip-permissions"];
      await world.start(["claude", "-p", "go ;; BASH=true ;; SAY=never", "--session-id", id, ...limit]).exited;
      expect(await rowOf(world, id)).toMatchObject({ state: "stopped", outcome: "failed" });
    });
  });

test("codex: after a rewind in the terminal interface the new turn counts", async () => {
  await using world = await createTestHome();
  const tui = world.open([codexBinary()]);
  const id = await waitFor("its lock", () => lockedThreads(tui.pid)[0]);
  await tui.shows(/for shortcuts/);
  for (const word of ["one", "two"]) {
    await submit(tui, `${word} ;; SAY=answer ${word}`);
    await tui.shows(new RegExp(`• answer ${word}`));
    await waitFor("idle", async () => (await rowOf(world, id)).activity === "idle");
  }
  await waitFor("the list of turns", async () => {
    tui.press("Escape");
    await Bun.sleep(200);
    return !/for shortcuts/.test(tui.screen());
  });
  tui.press("Escape");
  await Bun.sleep(300);
  tui.press("Enter");
  await tui.shows(/reverted/i);
  for (let count = 0; count < 40; count += 1) tui.type("\x7f");
  await submit(tui, "anew ;; HOLD=anew");
  await waitFor("the new turn", async () => (await rowOf(world, id)).activity === "working");
  tui.signal("SIGKILL");
  await tui.exited;
  expect(await rowOf(world, id)).toMatchObject({ state: "stopped", outcome: "cut-off", conflicts: [] });
});
