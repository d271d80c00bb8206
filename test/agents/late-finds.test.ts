// Ways to open, end and leave a turn that the schedules do not take, each seen to go wrong once.
import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ask, list, rowOf } from "./agentctl.ts";
import { idle, recorded, submit } from "./claude-cases.ts";
import { announcement, claudeVersions, codexBinary, createWorld, lockedThreads, type World, waitFor } from "./rig.ts";

for (const version of claudeVersions)
  describe(`claude ${version}`, () => {
    const finished = async (world: World, id: string): Promise<void> => {
      await world.start(["claude", "-p", "one ;; SAY=the old answer", "--session-id", id]).exited;
    };

    test("a person's own slash command opens a turn", async () => {
      await using world = await createWorld({ claude: version });
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

    test("compacted, it is still what it was", async () => {
      await using world = await createWorld({ claude: version });
      const id = crypto.randomUUID();
      await finished(world, id);
      await world.start(["claude", "-p", "/compact", "--resume", id]).exited;
      expect(await rowOf(world, id)).toMatchObject({ state: "stopped", outcome: "completed" });
    });

    test("left by /resume for another session, it says so", async () => {
      await using world = await createWorld({ claude: version });
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

    test("at its trust dialog it keeps no other session of the directory in doubt", async () => {
      await using world = await createWorld({ claude: version, trust: "ask" });
      const tui = world.open(["claude"]);
      await tui.shows(/trust/i);
      const id = crypto.randomUUID();
      await finished(world, id);
      const states = (await list(world)).sessions.map((row) => [row.id, row.status, row.waiting?.kind ?? null]);
      expect(states).toContainEqual([id, "completed", null]);
      expect(states).toContainEqual([null, "waiting", "trust"]);
    });

    test("stopped by --max-turns it failed, and was not cut off", async () => {
      await using world = await createWorld({ claude: version });
      const id = crypto.randomUUID();
      const limit = ["--max-turns", "1", "--dangerously-skip-permissions"];
      await world.start(["claude", "-p", "go ;; BASH=true ;; SAY=never", "--session-id", id, ...limit]).exited;
      expect(await rowOf(world, id)).toMatchObject({ state: "stopped", outcome: "failed" });
    });
  });

test("codex: rewound in its interface, the new turn counts", async () => {
  await using world = await createWorld();
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
