// The real Claude Code in both versions: the status is checked at the end of every schedule that fixtures are captured from, and
// at each step of some longer ones.
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { agentctl, ask, expectList, type List, list, rowOf } from "./check-answers.ts";
import { claudeCases, idle, recorded, submit } from "./claude-cases.ts";
import { announcement, claudeVersions, createTestHome, type TestHome, type Tui, waitFor } from "./test-home.ts";

for (const version of claudeVersions)
  describe(`claude ${version}`, () => {
    for (const { name, world: options, run } of claudeCases(version))
      test(name, async () => {
        await using world = await createTestHome({ claude: version, ...options });
        const { sessions } = await run(world);
        await expectList(world, "claude-code", sessions);
      });

    test("in a terminal: idle, working, waiting, answered, idle, suspended, cleared, hung up", async () => {
      await using world = await createTestHome({ claude: version });
      const tui = world.open(["claude", "--permission-mode", "default"]);
      const id = await idle(world, tui);
      expect(await rowOf(world, id)).toMatchObject({ activity: "idle", link: "announced", process: { pid: tui.pid } });

      await submit(tui, "make it ;; BASH=touch made ;; SAY=made");
      await says(world, tui, "waiting");
      // The question's text is in the transcript, which is flushed a moment later.
      await recorded(world, id, '"tool_use"');
      await tui.shows(/1\. Yes/);
      expect(await rowOf(world, id)).toMatchObject({
        activity: "waiting",
        waiting: { kind: "permission", tool: "Bash", text: "touch made" },
      });
      await accept(world, tui);
      await recorded(world, id, '"text":"made"');
      await says(world, tui, "idle");
      expect(await rowOf(world, id)).toMatchObject({ activity: "idle", waiting: null });
      expect(existsSync(join(world.cwd, "made"))).toBe(true);

      await submit(tui, "think ;; HOLD=thought ;; SAY=thought");
      await says(world, tui, "busy");
      expect(await rowOf(world, id)).toMatchObject({ activity: "working" });
      tui.signal("SIGSTOP");
      await waitFor("it to stop", () => world.processes().some(({ pid, state }) => pid === tui.pid && state === "T"));
      expect(await rowOf(world, id)).toMatchObject({ state: "running", activity: "working", reasonCode: "suspended" });
      tui.signal("SIGCONT");
      world.model.release("thought");
      await says(world, tui, "idle");

      await submit(tui, "/clear");
      const next = await waitFor("the new session", () => {
        const now = String(announcement(world, tui.pid)?.["sessionId"]);
        return now !== id && now;
      });
      expect(await rowOf(world, next)).toMatchObject({ state: "running", process: { pid: tui.pid } });
      expect(await rowOf(world, id)).toMatchObject({ state: "stopped", outcome: "completed" });
      await submit(tui, "afresh ;; SAY=again");
      await recorded(world, next, '"text":"again"');
      expect(await rowOf(world, id)).toMatchObject({ continuedBy: next });

      tui.close();
      await tui.exited;
      expect(await rowOf(world, next)).toMatchObject({ state: "stopped", outcome: "completed", process: null });
    });

    test("after a /clear that was typed ahead the old session is completed, not cut off", async () => {
      await using world = await createTestHome({ claude: version });
      const tui = world.open(["claude", "--permission-mode", "default"]);
      const id = await idle(world, tui);
      await submit(tui, "think ;; HOLD=thought ;; SAY=thought");
      await recorded(world, id, "HOLD=thought");
      tui.type("/clear");
      await tui.shows(/[❯›] ?\/clear/);
      world.model.release("thought");
      await says(world, tui, "idle");
      tui.press("Enter");
      // Its last lines are written later than its word that it has gone on.
      const left = await waitFor("its end", async () => {
        const row = await rowOf(world, id);
        return row.state === "stopped" && row;
      });
      expect(left).toMatchObject({ outcome: "completed" });
    });

    test("the announcement of a killed session proves nothing; after a resume the session runs again", async () => {
      await using world = await createTestHome({ claude: version });
      const id = crypto.randomUUID();
      const first = world.start(["claude", "-p", "wait ;; HOLD=answer", "--session-id", id]);
      await recorded(world, id, "HOLD=answer");
      expect(await rowOf(world, id)).toMatchObject({ state: "running", process: { pid: first.pid } });
      first.signal("SIGKILL");
      await first.exited;
      expect(announcement(world, first.pid)).not.toBeNull();
      expect(await rowOf(world, id)).toMatchObject({ state: "stopped", outcome: "cut-off", process: null });
      const second = world.start(["claude", "-p", "again ;; HOLD=more", "--resume", id]);
      await recorded(world, id, "HOLD=more");
      expect(await rowOf(world, id)).toMatchObject({ state: "running", process: { pid: second.pid } });
      world.model.release("more");
      await second.exited;
      expect(await rowOf(world, id)).toMatchObject({ state: "stopped", outcome: "completed" });
    });

    test("another home is found through its live process; two sessions share one directory", async () => {
      await using world = await createTestHome({ claude: version });
      const elsewhere = join(world.home, "elsewhere");
      mkdirSync(elsewhere);
      const [here, there] = [crypto.randomUUID(), crypto.randomUUID()];
      world.start(["claude", "-p", "a ;; HOLD=a", "--session-id", here]);
      world.start(["claude", "-p", "b ;; HOLD=b", "--session-id", there], { env: { CLAUDE_CONFIG_DIR: elsewhere } });
      await waitFor("two requests", () => world.model.requests.length >= 2);
      const { sessions } = await list(world);
      const homes = new Map(sessions.map((row) => [row.id, [row.home, row.state, row.cwd]]));
      expect(homes.get(here)).toEqual([world.claudeHome, "running", world.cwd]);
      expect(homes.get(there)).toEqual([elsewhere, "running", world.cwd]);
    });

    test("two directories with the same slug, and one id under two slugs", async () => {
      await using world = await createTestHome({ claude: version });
      const folders = ["a.b", "a_b"].map((name) => join(world.home, name));
      const ids = folders.map(() => crypto.randomUUID());
      for (const [index, folder] of folders.entries()) {
        mkdirSync(folder);
        await world.start(["claude", "-p", "x ;; SAY=x", "--session-id", ids[index] ?? ""], { cwd: folder }).exited;
      }
      expect(readdirSync(join(world.claudeHome, "projects"))).toHaveLength(1);
      for (const [index, id] of ids.entries()) expect((await rowOf(world, id)).cwd).toBe(folders[index] ?? "");
      const [id = ""] = ids;
      await world.start(["claude", "-p", "y ;; SAY=y", "--session-id", id]).exited;
      expect(await rowOf(world, id)).toMatchObject({ state: "stopped", outcome: "completed", cwd: world.cwd });
      expect((await rowOf(world, id)).conflicts[0]).toContain("another record has the same id");
    });

    test("a session started by an agent has a parent; @self is the session of the caller", async () => {
      await using world = await createTestHome({ claude: version });
      const [outer, inner] = [crypto.randomUUID(), crypto.randomUUID()];
      const answer = join(world.dir, "self.json");
      const command = `${agentctl} status @self --json >${answer}; claude -p "$(printf 'inner\\nHOLD=inner')" --session-id ${inner}`;
      const input = JSON.stringify({ command, description: "nest" });
      world.start([
        "claude",
        "-p",
        `outer ;; TOOL=Bash ${input}`,
        "--session-id",
        outer,
        "--dangerously-skip-permissions",
      ]);
      await waitFor("the inner request", () => world.model.requests.some(({ text }) => text.startsWith("inner")));
      expect(await rowOf(world, inner)).toMatchObject({ state: "running", parent: outer });
      expect((await Bun.file(answer).json()).id).toBe(outer);
    });

    test("agrees with claude's own list of live sessions", async () => {
      await using world = await createTestHome({ claude: version });
      const tui = world.open(["claude"]);
      const id = await idle(world, tui);
      const headless = crypto.randomUUID();
      world.start(["claude", "-p", "x ;; HOLD=x", "--session-id", headless]);
      await waitFor("its request", () => world.model.requests.length > 0);
      const ours = (await list(world)).sessions.filter(({ state }) => state === "running");
      const agents = world.start(["claude", "agents", "--json"]);
      await agents.exited;
      const theirs = JSON.parse(agents.stdout()) as { pid: number; sessionId: string; status?: string }[];
      const words: Record<string, string> = { busy: "working", idle: "idle", waiting: "waiting", shell: "idle" };
      expect(theirs.map(({ pid, sessionId }) => [pid, sessionId]).sort()).toEqual(
        ours.map(({ process, id: session }) => [process?.pid ?? 0, session ?? ""]).sort(),
      );
      for (const { sessionId, status } of theirs)
        if (status !== undefined)
          expect([sessionId, ours.find((row) => row.id === sessionId)?.activity]).toEqual([
            sessionId,
            words[status] ?? "",
          ]);
      expect(ours.map((row) => row.id).sort()).toEqual([id, headless].sort());
    });

    test("a background job is a row with its job id; its helper processes are not rows", async () => {
      await using world = await createTestHome({ claude: version });
      await Bun.write(
        join(world.claudeHome, "settings.json"),
        JSON.stringify({
          env: { ANTHROPIC_BASE_URL: world.model.url, ANTHROPIC_API_KEY: world.env["ANTHROPIC_API_KEY"] },
        }),
      );
      const started = world.start(["claude", "--bg", "work ;; HOLD=work"]);
      await started.exited;
      const jobs = await waitFor("its job", async () => {
        const rows = (await list(world)).sessions.filter((row) => row.reasonCode === "background-job");
        return rows.length > 0 && rows;
      });
      expect(jobs).toHaveLength(1);
      const { sessions } = await ask<List>(world, "list");
      expect(sessions.map(({ id }) => id)).toEqual(jobs.map(({ id }) => id));
    });
  });

const says = (world: TestHome, tui: Tui, status: string): Promise<unknown> =>
  waitFor(`status ${status}`, () => announcement(world, tui.pid)?.["status"] === status, {
    explain: () => tui.screen(),
  });

/** A dialog ignores keys for a moment after it appears, so that a person who is typing does not answer it. */
async function accept(world: TestHome, tui: Tui): Promise<void> {
  await waitFor("the answer to be taken", async () => {
    if (announcement(world, tui.pid)?.["status"] !== "waiting") return true;
    tui.press("Enter");
    await Bun.sleep(200);
    return false;
  });
}
