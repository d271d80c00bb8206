// Pidfd handles of real processes: running, exited, reaped, and owned by another user.
import { expect, test } from "bun:test";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { openProcess } from "../../src/sys/pidfd.ts";

async function firstLine({ stdout }: ChildProcess): Promise<string> {
  if (stdout === null) throw new Error("no output to wait for");
  const [data] = await once(stdout, "data");
  return String(data).trim();
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 5));
}

const stateOf = (pid: number): string | undefined => readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.[0];

const handleOf = (pid: number | undefined) => {
  const handle = openProcess(pid ?? 0);
  if (handle === null) throw new Error(`no process ${pid}`);
  return handle;
};

test("a signal through the handle arrives", async () => {
  const child = spawn("sh", ["-c", 'trap "echo caught; exit 3" TERM; echo ready; while :; do sleep 0.01; done']);
  expect(await firstLine(child)).toBe("ready");
  const handle = handleOf(child.pid);
  expect(handle.fd).toBeNumber();
  expect(handle.pid).toBe(child.pid ?? 0);
  const caught = firstLine(child);
  const exit = once(child, "exit");
  expect(handle.signal("SIGTERM")).toBe(true);
  expect(await caught).toBe("caught");
  expect(await exit).toEqual([3, null]);
  expect(handle.signal("SIGTERM")).toBe(false);
  handle.close();
});

test("a zombie accepts signals until it is reaped; then old and new handles report that it is gone", async () => {
  // Stopped while the child ends: dash reaps between any two commands.
  const parent = spawn("sh", ["-c", "read line <&3 & echo $!; kill -STOP $$; wait; echo reaped; read line"], {
    stdio: ["pipe", "pipe", "inherit", "pipe"],
  });
  const pid = Number(await firstLine(parent));
  await until(() => stateOf(parent.pid ?? 0) === "T");
  parent.stdio[3]?.destroy();
  await until(() => stateOf(pid) === "Z");
  const handle = handleOf(pid);
  expect(handle.signal("SIGTERM")).toBe(true);
  const reaped = firstLine(parent);
  parent.kill("SIGCONT");
  expect(await reaped).toBe("reaped");
  expect(handle.signal("SIGTERM")).toBe(false);
  expect(openProcess(pid)).toBeNull();
  handle.close();
  parent.stdin?.end();
  await once(parent, "exit");
});

test("a closed handle sends no signal, and can be closed again", async () => {
  const child = spawn("sleep", ["1000"]);
  const handle = handleOf(child.pid);
  handle.close();
  // The next handle gets the same descriptor.
  const own = handleOf(process.pid);
  expect(own.fd).toBe(handle.fd);
  handle.close();
  expect(readdirSync("/proc/self/fd")).toContain(String(own.fd));
  expect(() => handle.signal("SIGWINCH")).toThrow("closed");
  own.close();
  child.kill("SIGKILL");
  expect(await once(child, "exit")).toEqual([null, "SIGKILL"]);
});

test("the id of a thread is not a process", () => {
  const thread = readdirSync("/proc/self/task").find((id) => id !== String(process.pid));
  expect(openProcess(Number(thread))).toBeNull();
});

test.each([0, -1, 1.5, Number.NaN, 2 ** 32 + process.pid])("%p is not a pid", (pid) => {
  expect(() => openProcess(pid)).toThrow("is not a pid");
});

test("a signal that this system does not have is an error", () => {
  const handle = handleOf(process.pid);
  expect(() => handle.signal("SIGINFO")).toThrow("no signal SIGINFO");
  handle.close();
});

test.skipIf(process.getuid?.() !== 0)("a process of another user throws EPERM", async () => {
  const child = spawn("sleep", ["1000"]);
  const script = `
    import { openProcess } from ${JSON.stringify(require.resolve("../../src/sys/pidfd.ts"))};
    process.setuid(65534);
    const handle = openProcess(${child.pid});
    try { console.log(handle.fd !== null, handle.signal("SIGTERM")); } catch (error) { console.log(handle.fd !== null, error.code); }`;
  const other = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  expect(await firstLine(other)).toBe("true EPERM");
  child.kill("SIGKILL");
  expect(await once(child, "exit")).toEqual([null, "SIGKILL"]);
});
