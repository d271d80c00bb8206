// A home on a network file system: its sessions may belong to processes of other hosts, which are invisible here.
import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readMachineId } from "../../src/observe/observe.ts";
import { binary, type List, TestHome } from "./test-home.ts";

const machineId = readMachineId();
if (machineId === null)
  console.error("SKIPPED (this machine has no /etc/machine-id): announcements that name this host");
/** A test that needs the id of this machine. */
const testNamed = machineId === null ? test.skip : test;
const otherMachine = "f".repeat(32);
const pidSpace = (): string => readlinkSync("/proc/self/ns/pid");

/** agentctl, for which the folder is a mount of this type. The mount table of its process alone says so. */
async function runWith(world: TestHome, folder: string, type: string, args: string[]): Promise<string> {
  const table = join(world.root, "mountinfo");
  const line = `999 1 0:99 / ${folder} rw,relatime - ${type} server:/export rw`;
  writeFileSync(table, `${readFileSync("/proc/self/mountinfo", "utf8").trimEnd()}\n${line}\n`);
  const script = 'mount --bind "$1" /proc/$$/mountinfo && shift && exec "$@"';
  const command = ["unshare", "--mount", "sh", "-c", script, "sh", table, binary, ...args];
  const child = Bun.spawn(command, { env: world.env, cwd: world.root, stdio: ["ignore", "pipe", "inherit"] });
  return await child.stdout.text();
}

const listOn = async (world: TestHome, type: string, folder = world.root): Promise<List> =>
  JSON.parse(await runWith(world, folder, type, ["list", "-a", "--json"])) as List;

const over = [
  { type: "prompt", text: "x" },
  { type: "end", outcome: "completed" },
];
const reasonCode = "network-store";

describe("a session without a process here", () => {
  test.each(["nfs4", "nfs", "cifs", "smb3", "9p", "virtiofs", "ceph", "fuse.sshfs", "fuse.glusterfs", "fuse"])(
    "on %s is unknown, with the reason",
    async (type) => {
      await using world = new TestHome();
      const id = world.record(over);
      const { sessions } = await listOn(world, type);
      expect(sessions.find((each) => each.id === id)).toMatchObject({ state: "unknown", reasonCode });
    },
  );

  test.each(["ext4", "fuseblk", "fuse.fuse-overlayfs"])(
    "on %s, which only this host uses, is stopped",
    async (type) => {
      await using world = new TestHome();
      const id = world.record(over);
      const { sessions } = await listOn(world, type);
      expect(sessions.find((each) => each.id === id)).toMatchObject({ state: "stopped", outcome: "completed" });
    },
  );

  test("is listed as unknown, and commands do not act on it", async () => {
    await using world = new TestHome();
    const id = world.record(over);
    const { sessions } = JSON.parse(await runWith(world, world.root, "nfs4", ["list", "--json"])) as List;
    expect(sessions.map((each) => [each.id, each.state])).toEqual([[id, "unknown"]]);
    const why = await runWith(world, world.root, "nfs4", ["why", id]);
    expect(why).toContain("may be open on another host");
  });

  test("is also unknown if only a folder of its home is on the network", async () => {
    await using world = new TestHome();
    const id = world.record(over);
    const { sessions } = await listOn(world, "nfs4", join(world.home, "sessions"));
    expect(sessions.find((each) => each.id === id)).toMatchObject({ state: "unknown", reasonCode });
  });
});

describe("an announcement of Claude Code on a network file system", () => {
  function announced(world: TestHome, domain: string | null): string {
    const id = crypto.randomUUID();
    const home = world.folder(".claude");
    mkdirSync(join(home, "projects", "-x"), { recursive: true });
    mkdirSync(join(home, "sessions"), { recursive: true });
    const line = { type: "user", uuid: "u", parentUuid: null, sessionId: id, cwd: "/x", message: { content: "hi" } };
    const timestamp = new Date().toISOString();
    writeFileSync(join(home, "projects", "-x", `${id}.jsonl`), `${JSON.stringify({ ...line, timestamp })}\n`);
    // No process has this number: it is above the limit of every pid namespace that tests run in.
    const announcement = {
      pid: 4_194_000,
      sessionId: id,
      procStart: "1",
      ...(domain === null ? {} : { pidDomain: domain }),
    };
    writeFileSync(join(home, "sessions", "4194000.json"), JSON.stringify(announcement));
    return id;
  }

  testNamed.each([
    ["that names this host, of a process that is gone: stopped", `linux:${machineId}:`, "stopped", "died-in-turn"],
    ["that names another host: unknown", `linux:${otherMachine}:`, "unknown", "announced-by-other-host"],
    ["that names no host: unknown", null, "unknown", "may-be-on-other-host"],
  ])("%s", async (_name, domain, state, why) => {
    await using world = new TestHome();
    const id = announced(world, domain === null ? null : `${domain}${pidSpace()}`);
    const { sessions } = await listOn(world, "nfs4");
    expect(sessions.find((each) => each.id === id)).toMatchObject({ state, reasonCode: why });
  });
});

testNamed("an announcement that names another host matches no process here, on any file system", async () => {
  await using world = new TestHome();
  const program = join(world.folder("bin"), "claude");
  await Bun.write(program, Bun.file("/bin/sleep"));
  chmodSync(program, 0o755);
  const claude = Bun.spawn([program, "600"], { env: world.env, stdio: ["ignore", "ignore", "ignore"], detached: true });
  try {
    const id = crypto.randomUUID();
    mkdirSync(join(world.folder(".claude"), "sessions"), { recursive: true });
    const start = () => readFileSync(`/proc/${claude.pid}/stat`, "utf8").split(") ")[1]?.split(" ")[19];
    const announcementOf = (machine: string) => ({
      pid: claude.pid,
      sessionId: id,
      procStart: start(),
      pidDomain: `linux:${machine}:${pidSpace()}`,
    });
    const write = (machine: string) =>
      writeFileSync(
        join(world.root, ".claude", "sessions", `${claude.pid}.json`),
        JSON.stringify(announcementOf(machine)),
      );
    write(machineId ?? "");
    expect((await world.list()).sessions.find((each) => each.id === id)).toMatchObject({ state: "running" });
    write(otherMachine);
    expect((await world.list()).sessions.find((each) => each.id === id)).toMatchObject({ state: "unknown" });
  } finally {
    claude.kill("SIGKILL");
  }
});
