// resume, attach, interrupt, stop and wait with real agents in a terminal; background jobs; Codex's shared daemon.
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { agentctl, type Listed, list, rowOf } from "./check-answers.ts";
import { idle, submit } from "./claude-cases.ts";
import { openServed, say } from "./codex-cases.ts";
import { act, acted, begin, endlessTool, nothingLeft, toolBegun } from "./run-commands.ts";
import { announcement, claudeVersions, createTestHome, type TestHome, waitFor } from "./test-home.ts";

const env = (world: TestHome): { env: Record<string, string> } => ({
  env: { AGENTCTL_HOME: join(world.dir, "agentctl") },
});

/** A tmux server of the home's own; its first window runs the command. */
function tmux(world: TestHome, ...words: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(["tmux", "-f", "/dev/null", ...words], {
    env: { ...world.env, TMUX_TMPDIR: world.dir },
    cwd: world.cwd,
  });
  if (exitCode !== 0) throw new Error(`tmux ${words.join(" ")}: ${stderr.toString()}`);
  return stdout.toString();
}

for (const version of claudeVersions)
  describe(`claude ${version}`, () => {
    const options = { claude: version } as const;

    test("resume reopens the conversation in a terminal, in its own directory; a live session is refused without --fork", async () => {
      await using world = await createTestHome(options);
      const id = await acted(world, ["launch", "claude", "one ;; SAY=what was said before"]);
      await acted(world, ["wait", id]);
      const tui = world.open([agentctl, "resume", id], { ...env(world), cwd: world.home });
      await tui.shows(/what was said before/);
      await waitFor("its announcement", () => announcement(world, tui.pid)?.["sessionId"] === id);
      expect(await rowOf(world, id)).toMatchObject({ state: "running", process: { pid: tui.pid }, cwd: world.cwd });
      const refused = await act(world, ["resume", id, "--print"]);
      expect(refused).toMatchObject({ code: 5, err: expect.stringContaining(`pid ${tui.pid}`) });
      const fork = world.open([agentctl, "resume", id, "--fork"], env(world));
      await fork.shows(/what was said before/);
      const forked = await waitFor("the fork", () => announcement(world, fork.pid)?.["sessionId"]);
      expect(forked).not.toBe(id);
      await acted(world, ["stop", id, String(forked)]);
      await nothingLeft(world);
    });

    test("a session in tmux is found by its terminal, interrupted by Escape, and ended by stop", async () => {
      await using world = await createTestHome(options);
      tmux(world, "new-session", "-d", "-s", "main", "-x", "120", "-y", "40", "sleep 600");
      tmux(world, "new-window", "-t", "main", "claude --dangerously-skip-permissions");
      const live = await waitFor("its session", async () =>
        (await list(world)).sessions.find((row) => row.status === "idle"),
      );
      const id = String(live.id);
      const outside = { env: { TMUX_TMPDIR: world.dir } };
      tmux(world, "select-window", "-t", "main:0");
      const attach = await act(world, ["attach", id], outside);
      expect(attach).toMatchObject({ code: 5, err: expect.stringContaining("tmux pane main:1.0") });
      expect(tmux(world, "display-message", "-p", "-t", "main", "#{window_index}").trim()).toBe("1");
      expect(JSON.parse(await acted(world, ["status", id, "--json"], outside))).toMatchObject({ tmux: "main:1.0" });
      tmux(world, "send-keys", "-t", "main:1", "-l", endlessTool(world, "tool"));
      await waitFor("the prompt", () => tmux(world, "capture-pane", "-p", "-t", "main:1").includes("tail -f"));
      tmux(world, "send-keys", "-t", "main:1", "Enter");
      await toolBegun(world, "tool");
      const now = JSON.parse(await acted(world, ["interrupt", id, "--json"], outside)) as Listed;
      expect(now).toMatchObject({ state: "running", activity: "idle", process: { pid: live.process?.pid ?? 0 } });
      await acted(world, ["stop", id], outside);
      expect((await rowOf(world, id)).state).toBe("stopped");
      expect(tmux(world, "list-windows", "-t", "main").trim().split("\n")).toHaveLength(1);
      tmux(world, "kill-server");
      await nothingLeft(world);
    });

    test("at a terminal wait returns when it asks, interrupt names the terminal, and stop ends it", async () => {
      await using world = await createTestHome(options);
      const tui = world.open(["claude"]);
      const id = await idle(world, tui);
      const waiting = begin(world, ["wait", id, "--until", "waiting"]);
      await submit(tui, `BASH=touch ${world.dir}/asked`);
      expect(await waiting.exited).toBe(0);
      expect(await waiting.stdout.text()).toContain("waiting");
      expect((await act(world, ["wait", id])).code).toBe(11);
      expect(await act(world, ["interrupt", id])).toMatchObject({ code: 5, err: expect.stringContaining("Escape") });
      expect(await act(world, ["send", id, "hello"])).toMatchObject({
        code: 5,
        err: expect.stringContaining("/dev/pts/"),
      });
      expect(await act(world, ["attach", id])).toMatchObject({
        code: 5,
        err: expect.stringContaining(`pid ${tui.pid}`),
      });
      await acted(world, ["stop", id]);
      expect((await rowOf(world, id)).state).toBe("stopped");
      await nothingLeft(world);
    });

    test("a background job is stopped by claude's own command and is not restarted", async () => {
      await using world = await createTestHome(options);
      await Bun.write(
        join(world.claudeHome, "settings.json"),
        JSON.stringify({ env: { ANTHROPIC_BASE_URL: world.model.url } }),
      );
      await world.start(["claude", "--bg", "--dangerously-skip-permissions", endlessTool(world, "tool")]).exited;
      await toolBegun(world, "tool");
      const job = (await list(world)).sessions.find(({ state }) => state === "running");
      await acted(world, ["stop", String(job?.id)]);
      expect((await rowOf(world, String(job?.id))).state).toBe("stopped");
      // Killed, its supervisor would start it again after ten seconds.
      await Bun.sleep(13_000);
      expect((await rowOf(world, String(job?.id))).state).toBe("stopped");
    });
  });

describe("codex", () => {
  test("resume reopens the conversation in a terminal; --fork gets another id", async () => {
    await using world = await createTestHome();
    const id = await acted(world, ["launch", "codex", "one ;; SAY=what was said before"]);
    await waitFor("its end", async () => (await rowOf(world, id)).state === "stopped");
    const tui = world.open([agentctl, "resume", id], { ...env(world), cwd: world.home });
    await tui.shows(/what was said before/);
    await waitFor("its lock", async () => (await rowOf(world, id)).state === "running");
    expect((await act(world, ["resume", id, "--print"])).code).toBe(5);
    const fork = world.open([agentctl, "resume", id, "--fork"], env(world));
    await fork.shows(/what was said before/);
    await waitFor(
      "the fork",
      async () => (await list(world)).sessions.filter(({ state }) => state === "running").length >= 2,
    );
    await acted(world, ["stop", id]);
    expect((await rowOf(world, id)).state).toBe("stopped");
  });

  test("in the daemon interrupt and stop end the turn, send goes through the server, and --server ends it", async () => {
    await using world = await createTestHome({ codexDaemon: "shared" });
    const { tui, id, server } = await openServed(world);
    await say(tui, endlessTool(world, "tool"));
    await toolBegun(world, "tool");
    await acted(world, ["stop", id]);
    expect(await rowOf(world, id)).toMatchObject({
      state: "running",
      activity: "idle",
      served: true,
      process: { pid: server },
    });
    await waitFor("the tool's end", () => !world.processes().some(({ argv }) => argv[0] === "tail"));
    await submit(tui, "/quit");
    await tui.exited;
    expect(await acted(world, ["send", id, "again ;; SAY=through the server"])).toBe(id);
    await waitFor("the answer", async () => (await act(world, ["result", id])).out.includes("through the server"));
    expect(world.model.requests.some(({ text }) => text.includes("through the server"))).toBe(true);
    await acted(world, ["send", id, endlessTool(world, "second")]);
    await toolBegun(world, "second");
    await acted(world, ["interrupt", id]);
    expect((await rowOf(world, id)).activity).toBe("idle");
    await acted(world, ["stop", id, "--server", "-y"]);
    expect((await rowOf(world, id)).state).toBe("stopped");
  });
});
