// A process that another user started is not ours, even if its program is setuid to us: its environment is not used.

import { expect } from "bun:test";
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AtTerminal, isAlive, ServerTestHome, statusOf, until } from "../cli/test-home-servers.ts";
import { asOther, OtherFolder, otherUid, testAsOther } from "./other-user.ts";

/** A setuid program of ours under an agent's name: run by the other user, it has our effective uid and their environment. */
function setuidAgent(stage: ServerTestHome): string {
  // The other user must be able to reach the program.
  chmodSync(stage.root, 0o755);
  const program = join(stage.folder("bin"), "claude");
  copyFileSync("/bin/sleep", program);
  chmodSync(program, 0o4755);
  return program;
}

/** Runs the program as the other user, at a terminal, and waits until it has our effective uid. */
async function runAsOther(stage: ServerTestHome, program: string, env: Record<string, string>): Promise<AtTerminal> {
  const process = new AtTerminal(stage, asOther(program, "600"), { env });
  await until("the setuid program", () => isOthersWithOurRights(process.pid));
  return process;
}

/** Real uid and effective uid. */
const isOthersWithOurRights = (pid: number): boolean => statusOf(pid, "Uid").startsWith(`${otherUid}\t0\t`);

/** A tmux in PATH that only writes down how it was called. */
function recordingTmux(stage: ServerTestHome): { path: string; calls(): string } {
  const folder = stage.folder("fake-tmux");
  const log = join(folder, "calls");
  writeFileSync(join(folder, "tmux"), `#!/bin/sh\necho "$*" >>'${log}'\nexit 1\n`, { mode: 0o755 });
  return {
    path: `${folder}:${process.env["PATH"]}`,
    calls: () => (existsSync(log) ? readFileSync(log, "utf8") : ""),
  };
}

testAsOther("a tmux server in the environment of another user's setuid process is not asked", async () => {
  await using stage = new ServerTestHome();
  using theirs = new OtherFolder();
  const socket = join(theirs.path, "tmux.sock");
  const hostile = Bun.spawn(asOther("tmux", "-f", "/dev/null", "-S", socket, "new-session", "-d", "cat"), {
    env: { HOME: stage.root, PATH: process.env["PATH"], TERM: "xterm" },
    stdio: ["ignore", "ignore", "inherit"],
  });
  expect(await hostile.exited).toBe(0);
  await runAsOther(stage, setuidAgent(stage), { TMUX: `${socket},1,0`, TMUX_PANE: "%0" });
  const tmux = recordingTmux(stage);
  for (const words of [
    ["list", "--json"],
    ["list", "-a", "--json"],
  ])
    expect((await stage.run(words, { env: { PATH: tmux.path } })).code).toBe(0);
  expect(tmux.calls()).toBe("");
});

testAsOther(
  "a home that another user's setuid process names is not read, and the process is not listed as ours",
  async () => {
    await using stage = new ServerTestHome();
    using theirs = new OtherFolder();
    const id = crypto.randomUUID();
    mkdirSync(join(theirs.path, "projects", "-x"), { recursive: true });
    const line = { type: "user", uuid: "u", parentUuid: null, sessionId: id, cwd: "/", message: { content: "hi" } };
    const text = JSON.stringify({ ...line, timestamp: new Date().toISOString() });
    writeFileSync(join(theirs.path, "projects", "-x", `${id}.jsonl`), `${text}\n`);
    await runAsOther(stage, setuidAgent(stage), { CLAUDE_CONFIG_DIR: theirs.path });
    expect((await stage.list()).sessions).toEqual([]);
  },
);

testAsOther("a tag of another user's setuid process does not make it part of our session", async () => {
  await using stage = new ServerTestHome();
  const agent = stage.start(["prompt:x", "end", "idle"]);
  await stage.until(agent.id, "idle");
  const tags = { AGENTCTL_TAG_SESSION: `demo:${agent.id}`, DEMO_AGENT_SESSION: agent.id };
  const theirs = Bun.spawn(asOther(setuidAgent(stage), "600"), {
    env: { ...stage.env, ...tags },
    cwd: stage.folder("work"),
    stdio: ["ignore", "ignore", "ignore"],
    detached: true,
  });
  await until("the setuid program", () => isOthersWithOurRights(theirs.pid));
  const { code, out } = await stage.run(["stop", agent.id, "--json"]);
  const { ended, leftovers } = JSON.parse(out);
  expect([code, ended, leftovers]).toEqual([0, [agent.pid], []]);
  expect(isAlive(theirs.pid)).toBe(true);
});
