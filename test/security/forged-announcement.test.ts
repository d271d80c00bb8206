// A file of another user is not believed about our processes: it makes no process an owner, and no process is stopped because of it.

import { describe, expect } from "bun:test";
import { chownSync, copyFileSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { binary, type List } from "../cli/test-home.ts";
import { argvOf, isAlive, ServerTestHome, until } from "../cli/test-home-servers.ts";
import { OtherFolder, otherUid, testAsOther } from "./other-user.ts";

const startOf = (pid: number): string => readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ")[19] ?? "";
const bootId = (): string => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();

/** A file as the other user would have written it. */
function theirFile(path: string, value: unknown): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${JSON.stringify(value)}\n`);
  chownSync(path, otherUid, otherUid);
}

interface Forgery {
  agent: string;
  /** The variable that names the home. */
  variable: string;
  id: string;
  /** The name that the victim runs under: a pid alone counts only for the agent's own processes. */
  name: string;
  forge(home: string, id: string, victim: number): void;
}

const forgeries: Forgery[] = [
  {
    agent: "demo",
    variable: "DEMO_AGENT_HOME",
    id: crypto.randomUUID(),
    name: "anything",
    forge: (home, session, pid) =>
      theirFile(join(home, "live", `${pid}.json`), { session, pid, start: startOf(pid), boot: bootId() }),
  },
  {
    agent: "claude-code",
    variable: "CLAUDE_CONFIG_DIR",
    id: crypto.randomUUID(),
    name: "claude",
    forge: (home, sessionId, pid) =>
      theirFile(join(home, "sessions", `${pid}.json`), { sessionId, pid, procStart: startOf(pid), status: "idle" }),
  },
  {
    agent: "qwen",
    variable: "QWEN_HOME",
    id: crypto.randomUUID(),
    name: "anything",
    forge: (home, sessionId, pid) =>
      theirFile(join(home, "sessions", `${pid}.json`), { sessionId, pid, procStart: `${bootId()}:${startOf(pid)}` }),
  },
  {
    agent: "cline",
    variable: "CLINE_DATA_DIR",
    id: "1794814143684_3rl4x",
    name: "cline",
    forge: (home, session_id, pid) => {
      const state = { version: 1, session_id, pid, started_at: new Date().toISOString(), status: "running", cwd: "/" };
      theirFile(join(home, "sessions", session_id, `${session_id}.json`), state);
    },
  },
];

/** A program of ours under this name. */
async function victimCalled(name: string, stage: ServerTestHome): Promise<Bun.Subprocess> {
  const program = join(stage.folder("bin"), name);
  copyFileSync("/bin/sleep", program);
  const child = Bun.spawn([program, "600"], {
    env: stage.env,
    stdio: ["ignore", "ignore", "ignore"],
    detached: true,
  });
  await until("the victim", () => readFileSync(`/proc/${child.pid}/stat`, "utf8").includes(`(${name})`));
  return child;
}

describe("an announcement in another user's home", () => {
  for (const { agent, variable, id, name, forge } of forgeries)
    testAsOther(`of ${agent} that names our process does not link it to a session`, async () => {
      await using stage = new ServerTestHome();
      using theirs = new OtherFolder();
      const victim = await victimCalled(name, stage);
      try {
        forge(theirs.path, id, victim.pid);
        const env = { [variable]: theirs.path };
        const answer = await stage.run(["stop", id], { env });
        expect(isAlive(victim.pid)).toBe(true);
        expect(answer).toMatchObject({ code: 8, out: "" });
        const { sessions } = JSON.parse((await stage.run(["list", "--json"], { env })).out) as List;
        expect(sessions.find((each) => each.id === id)).toMatchObject({
          ...{ state: "unknown", process: null, reasonCode: "file-of-other-user" },
        });
        const why = await stage.run(["why", id], { env });
        expect(why.out).toContain(`by uid ${otherUid}`);
      } finally {
        victim.kill("SIGKILL");
      }
    });

  testAsOther("behind a symbolic link in our home is not believed either", async () => {
    await using stage = new ServerTestHome();
    using theirs = new OtherFolder();
    const agent = stage.start(["prompt:x", "end", "idle"]);
    await stage.until(agent.id, "idle");
    const forged = stage.record([{ type: "prompt", text: "x" }]);
    const announcement = { session: forged, pid: agent.pid, start: startOf(agent.pid), boot: bootId() };
    theirFile(join(theirs.path, "announcement.json"), announcement);
    const link = join(stage.home, "live", `${agent.pid}.json`);
    rmSync(link);
    symlinkSync(join(theirs.path, "announcement.json"), link);
    await stage.run(["stop", forged, "-y"]);
    expect(isAlive(agent.pid)).toBe(true);
    const row = (await stage.list()).sessions.find(({ id }) => id === forged);
    expect([row?.state === "running", row?.process]).toEqual([false, null]);
  });

  testAsOther("that cannot be read does not change our sessions", async () => {
    await using stage = new ServerTestHome();
    const agent = stage.start(["prompt:x", "end", "idle"], { env: { DEMO_AGENT_HOME: stage.folder(".demo-agent") } });
    await stage.until(agent.id, "idle");
    const past = stage.record([
      { type: "prompt", text: "x" },
      { type: "end", outcome: "completed" },
    ]);
    theirFile(join(stage.home, "live", `${agent.pid}.json`), "garbage");
    const rows = (await stage.list()).sessions;
    expect(rows.find(({ id }) => id === past)?.state).toBe("stopped");
    expect(rows.find(({ id }) => id === agent.id)?.state).toBe("running");
  });
});

describe("a record of another user", () => {
  testAsOther("is not linked to our process by its arguments, and cannot be stopped", async () => {
    await using stage = new ServerTestHome();
    const id = stage.record([{ type: "prompt", text: "x" }]);
    chownSync(join(stage.home, "sessions", `${id}.jsonl`), otherUid, otherUid);
    const agent = Bun.spawn([binary, "demo-agent", "--no-announce", "--resume", id, "idle"], {
      env: stage.env,
      cwd: stage.folder("work"),
      stdio: ["ignore", "ignore", "inherit"],
      detached: true,
    });
    try {
      await until("the agent", () => argvOf(agent.pid).includes("--resume"));
      const row = await stage.until(id, "unknown");
      expect(row.process).toBeNull();
      expect((await stage.run(["stop", id, "-y"])).code).toBe(8);
      expect(isAlive(agent.pid)).toBe(true);
    } finally {
      agent.kill("SIGKILL");
    }
  });

  testAsOther("does not announcement processes that our sessions left behind", async () => {
    await using stage = new ServerTestHome();
    const id = stage.record([
      { type: "prompt", text: "x" },
      { type: "end", outcome: "completed" },
    ]);
    chownSync(join(stage.home, "sessions", `${id}.jsonl`), otherUid, otherUid);
    const tool = Bun.spawn(["sleep", "600"], {
      env: { ...stage.env, AGENTCTL_TAG_SESSION: `demo:${id}` },
      cwd: stage.folder("work"),
      stdio: ["ignore", "ignore", "ignore"],
      detached: true,
    });
    try {
      expect((await stage.run(["stop", id, "-y"])).code).toBe(0);
      expect(isAlive(tool.pid)).toBe(true);
    } finally {
      tool.kill("SIGKILL");
    }
  });
});

testAsOther("a kernel lock on another user's file is not an announcement", async () => {
  await using stage = new ServerTestHome();
  using theirs = new OtherFolder();
  const [mine, forged] = [crypto.randomUUID(), crypto.randomUUID()];
  const home = stage.folder("codex");
  mkdirSync(join(home, "thread-writer-locks"), { recursive: true });
  mkdirSync(join(theirs.path, "thread-writer-locks"));
  const target = join(theirs.path, "thread-writer-locks", `${forged}.lock`);
  writeFileSync(target, "", { mode: 0o666 });
  chownSync(target, otherUid, otherUid);
  symlinkSync(target, join(home, "thread-writer-locks", `${mine}.lock`));
  // Our codex takes the lock of its own session, and gets the file that the link leads to.
  const program = join(stage.folder("bin"), "codex");
  copyFileSync("/bin/sleep", program);
  const script = 'exec 9<"$1"; flock 9; exec "$2" 600';
  const words = ["sh", "-c", script, "sh", join(home, "thread-writer-locks", `${mine}.lock`), program];
  const codex = Bun.spawn(words, {
    env: { ...stage.env, CODEX_HOME: home },
    stdio: ["ignore", "ignore", "ignore"],
    detached: true,
  });
  try {
    await until("codex", () => readFileSync(`/proc/${codex.pid}/stat`, "utf8").includes("(codex)"));
    const { code } = await stage.run(["stop", forged], { env: { CODEX_HOME: home } });
    expect([code, isAlive(codex.pid)]).toEqual([3, true]);
  } finally {
    codex.kill("SIGKILL");
  }
});
