// A process of our uid in its own namespaces may be a sandbox: it is believed about itself, not about processes outside.

import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { binary } from "../cli/test-home.ts";
import { isAlive, ServerTestHome, Tmux, until } from "../cli/test-home-servers.ts";

const startOf = (pid: number): string => readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ")[19] ?? "";
const bootId = (): string => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
const spaceOf = (pid: number | "self", kind: string): string => readlinkSync(`/proc/${pid}/ns/${kind}`);

const sandbox = ["unshare", "--user", "--map-current-user", "--pid", "--fork", "--kill-child"];

/** A demo agent in a sandbox that shares our files, and its pid as we see it. */
async function confinedAgent(stage: ServerTestHome, home: string, id: string): Promise<number> {
  const child = Bun.spawn([...sandbox, binary, "demo-agent", "--session-id", id, "prompt:x", "end", "idle"], {
    env: { ...stage.env, DEMO_AGENT_HOME: home },
    cwd: stage.folder("work"),
    stdio: ["ignore", "ignore", "inherit"],
  });
  let inner = 0;
  await until("the confined agent", () => {
    const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8").trim();
    inner = Number(children);
    return children !== "" && spaceOf(inner, "user") !== spaceOf("self", "user");
  });
  return inner;
}

describe("a home that only a confined process names", () => {
  test("is believed about that process, and not about a process outside", async () => {
    await using stage = new ServerTestHome();
    const [own, forged] = [crypto.randomUUID(), crypto.randomUUID()];
    const home = stage.folder("sandbox-home");
    const victim = Bun.spawn(["sleep", "600"], { env: stage.env, stdio: ["ignore", "ignore", "ignore"] });
    mkdirSync(join(home, "live"), { recursive: true });
    const announcement = { session: forged, pid: victim.pid, start: startOf(victim.pid), boot: bootId() };
    writeFileSync(join(home, "live", `${victim.pid}.json`), JSON.stringify(announcement));
    const pid = await confinedAgent(stage, home, own);
    const row = await stage.until(own, "idle");
    expect([row.link, row.process?.pid]).toEqual(["announced", pid]);
    const { code } = await stage.run(["stop", forged]);
    expect([code, isAlive(victim.pid)]).toEqual([8, true]);
    const { sessions } = await stage.list();
    expect(sessions.find(({ id }) => id === forged)).toMatchObject({
      state: "unknown",
      process: null,
      reasonCode: "outside-sandbox",
    });
    const { out } = await stage.run(["why", forged]);
    expect(out).toContain(`pid ${victim.pid} runs outside`);
  });

  test("is believed about processes outside when one of them names it, too", async () => {
    await using stage = new ServerTestHome();
    const home = stage.folder("shared-home");
    const [own, outside] = [crypto.randomUUID(), crypto.randomUUID()];
    await confinedAgent(stage, home, own);
    const agent = stage.start(["prompt:x", "end", "idle"], { id: outside, env: { DEMO_AGENT_HOME: home } });
    const row = await stage.until(outside, "idle");
    expect([row.link, row.process?.pid]).toEqual(["announced", agent.pid]);
    expect((await stage.until(own, "idle")).link).toBe("announced");
  });
});

test("the tag of a confined session does not announcement the processes of another launch", async () => {
  await using stage = new ServerTestHome();
  const id = crypto.randomUUID();
  const tag = { AGENTCTL_TAG: "20260101-000000-aaaa" };
  const tool = Bun.spawn(["sleep", "600"], {
    env: { ...stage.env, ...tag },
    cwd: stage.folder("work"),
    stdio: ["ignore", "ignore", "ignore"],
    detached: true,
  });
  const words = `AGENTCTL_TAG_SID=$(cut -d' ' -f6 /proc/self/stat) exec "$0" demo-agent --session-id ${id} prompt:x end idle`;
  const child = Bun.spawn([...sandbox, "sh", "-c", words, binary], {
    env: { ...stage.env, ...tag },
    cwd: stage.folder("work"),
    stdio: ["ignore", "ignore", "inherit"],
    detached: true,
  });
  await stage.until(id, "idle");
  expect((await stage.run(["stop", id, "-y"])).code).toBe(0);
  await child.exited;
  expect(isAlive(tool.pid)).toBe(true);
});

test("tmux is not asked about a confined process", async () => {
  await using stage = new ServerTestHome();
  const tmux = new Tmux(stage);
  const id = crypto.randomUUID();
  const words = [...sandbox, binary, "demo-agent", "--session-id", id, "prompt:x", "end", "idle"];
  await tmux.open("-s", "main", ...words);
  const row = (await stage.until(id, "idle")) as { tmux?: string | null };
  expect(row.tmux).toBeNull();
});
