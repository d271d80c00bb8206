// A home on a network file system: its sessions may belong to processes of other hosts, which nobody can see from here.
import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readMachineId } from "../../src/observe/other-hosts.ts";
import { binary, type List, World } from "./world.ts";

const machineId = readMachineId();
if (machineId === null)
  console.error("SKIPPED (this machine has no /etc/machine-id): announcements that name this host");
/** A test that needs the id of this machine. */
const testNamed = machineId === null ? test.skip : test;
const otherMachine = "f".repeat(32);
const pidSpace = (): string => readlinkSync("/proc/self/ns/pid");

/** agentctl, for which the folder is a mount of this type. The mount table of its process alone says so. */
async function runWith(world: World, folder: string, type: string, args: string[]): Promise<string> {
  const table = join(world.root, "mountinfo");
  const line = `999 1 0:99 / ${folder} rw,relatime - ${type} server:/export rw`;
  writeFileSync(table, `${readFileSync("/proc/self/mountinfo", "utf8").trimEnd()}\n${line}\n`);
  const script = 'mount --bind "$1" /proc/$$/mountinfo && shift && exec "$@"';
  const command = ["unshare", "--mount", "sh", "-c", script, "sh", table, binary, ...args];
  const child = Bun.spawn(command, { env: world.env, cwd: world.root, stdio: ["ignore", "pipe", "inherit"] });
  return await child.stdout.text();
}

const listOn = async (world: World, type: string, folder = world.root): Promise<List> =>
  JSON.parse(await runWith(world, folder, type, ["list", "-a", "--json"])) as List;

const over = [
  { type: "prompt", text: "x" },
  { type: "end", outcome: "completed" },
];
const reason = "its store is on a network file system: a process on another host may have it";

describe("a session without a process here", () => {
  test.each(["nfs4", "nfs", "cifs", "smb3", "9p", "virtiofs", "ceph", "fuse.sshfs", "fuse.glusterfs", "fuse"])(
    "on %s is unknown, with the reason",
    async (type) => {
      await using world = new World();
      const id = world.record(over);
      const { sessions } = await listOn(world, type);
      expect(sessions.find((each) => each.id === id)).toMatchObject({ state: "unknown", reason });
    },
  );

  test.each(["ext4", "fuseblk", "fuse.fuse-overlayfs"])("on %s, of this host alone, is stopped", async (type) => {
    await using world = new World();
    const id = world.record(over);
    const { sessions } = await listOn(world, type);
    expect(sessions.find((each) => each.id === id)).toMatchObject({ state: "stopped", outcome: "completed" });
  });

  test("is in the list of what runs or may run, and is not acted on", async () => {
    await using world = new World();
    const id = world.record(over);
    const { sessions } = JSON.parse(await runWith(world, world.root, "nfs4", ["list", "--json"])) as List;
    expect(sessions.map((each) => [each.id, each.state])).toEqual([[id, "unknown"]]);
    const why = await runWith(world, world.root, "nfs4", ["why", id]);
    expect(why).toContain(reason);
  });

  test("is unknown, too, where only a folder of its home is on the network", async () => {
    await using world = new World();
    const id = world.record(over);
    const { sessions } = await listOn(world, "nfs4", join(world.home, "sessions"));
    expect(sessions.find((each) => each.id === id)).toMatchObject({ state: "unknown", reason });
  });
});

describe("an announcement of Claude Code on a network file system", () => {
  function announced(world: World, domain: string | null): string {
    const id = crypto.randomUUID();
    const home = world.folder(".claude");
    mkdirSync(join(home, "projects", "-x"), { recursive: true });
    mkdirSync(join(home, "sessions"), { recursive: true });
    const line = { type: "user", uuid: "u", parentUuid: null, sessionId: id, cwd: "/x", message: { content: "hi" } };
    const timestamp = new Date().toISOString();
    writeFileSync(join(home, "projects", "-x", `${id}.jsonl`), `${JSON.stringify({ ...line, timestamp })}\n`);
    // No process has this number: it is above the limit of every pid namespace that tests run in.
    const claim = { pid: 4_194_000, sessionId: id, procStart: "1", ...(domain === null ? {} : { pidDomain: domain }) };
    writeFileSync(join(home, "sessions", "4194000.json"), JSON.stringify(claim));
    return id;
  }

  testNamed.each([
    [
      "that names this host, of a process that is gone: stopped",
      `linux:${machineId}:`,
      "stopped",
      "ended inside a turn",
    ],
    [
      "that names another host: unknown",
      `linux:${otherMachine}:`,
      "unknown",
      `announced by process 4194000 of another host (machine id ${otherMachine})`,
    ],
    [
      "that names no host: unknown",
      null,
      "unknown",
      "announced by process 4194000, which may run on another host: its store is on a network file system",
    ],
  ])("%s", async (_name, domain, state, why) => {
    await using world = new World();
    const id = announced(world, domain === null ? null : `${domain}${pidSpace()}`);
    const { sessions } = await listOn(world, "nfs4");
    expect(sessions.find((each) => each.id === id)).toMatchObject({ state, reason: why });
  });
});

testNamed("an announcement that names another host fits no process here, on whatever file system", async () => {
  await using world = new World();
  const program = join(world.folder("bin"), "claude");
  await Bun.write(program, Bun.file("/bin/sleep"));
  chmodSync(program, 0o755);
  const claude = Bun.spawn([program, "600"], { env: world.env, stdio: ["ignore", "ignore", "ignore"], detached: true });
  try {
    const id = crypto.randomUUID();
    mkdirSync(join(world.folder(".claude"), "sessions"), { recursive: true });
    const start = () => readFileSync(`/proc/${claude.pid}/stat`, "utf8").split(") ")[1]?.split(" ")[19];
    const claimOf = (machine: string) => ({
      pid: claude.pid,
      sessionId: id,
      procStart: start(),
      pidDomain: `linux:${machine}:${pidSpace()}`,
    });
    const write = (machine: string) =>
      writeFileSync(join(world.root, ".claude", "sessions", `${claude.pid}.json`), JSON.stringify(claimOf(machine)));
    write(machineId ?? "");
    expect((await world.list()).sessions.find((each) => each.id === id)).toMatchObject({ state: "running" });
    write(otherMachine);
    expect((await world.list()).sessions.find((each) => each.id === id)).toMatchObject({ state: "unknown" });
  } finally {
    claude.kill("SIGKILL");
  }
});
