// Kernel locks between real processes.
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readdirSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hasRecordLock, tryLock } from "../../src/sys/file-lock.ts";
import { openElsewhere } from "./database-writer.ts";

let folder = "";
let count = 0;
const newPath = (): string => {
  count += 1;
  return join(folder, `${count}.lock`);
};
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "agentctl-lock-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Another process that tries the lock, says what it got, and keeps it until its input ends. */
async function another(path: string): Promise<{ got: string; child: ChildProcess }> {
  const script = `
    import { openSync } from "node:fs";
    import { tryLock } from ${JSON.stringify(require.resolve("../../src/sys/file-lock.ts"))};
    console.log(tryLock(openSync(${JSON.stringify(path)}, "a")));
    process.stdin.on("end", () => process.exit()).resume();`;
  const child = spawn(process.execPath, ["-e", script], { stdio: ["pipe", "pipe", "inherit"] });
  const [data] = await once(child.stdout, "data");
  return { got: String(data).trim(), child };
}

async function end(child: ChildProcess): Promise<void> {
  const exit = once(child, "exit");
  child.stdin?.end();
  await exit;
}

test("a lock has one holder at a time, also within one process; closing the file frees it", async () => {
  const path = newPath();
  const ours = openSync(path, "a");
  expect(tryLock(ours)).toBe(true);
  expect(tryLock(ours)).toBe(true);
  const second = openSync(path, "a");
  expect(tryLock(second)).toBe(false);
  const refused = await another(path);
  expect(refused.got).toBe("false");
  await end(refused.child);
  closeSync(ours);
  expect(tryLock(second)).toBe(true);
  closeSync(second);
  const taker = await another(path);
  expect(taker.got).toBe("true");
  await end(taker.child);
});

test("a killed holder frees the lock", async () => {
  const path = newPath();
  const holder = await another(path);
  expect(holder.got).toBe("true");
  const ours = openSync(path, "a");
  expect(tryLock(ours)).toBe(false);
  const exit = once(holder.child, "exit");
  holder.child.kill("SIGKILL");
  expect(await exit).toEqual([null, "SIGKILL"]);
  expect(tryLock(ours)).toBe(true);
  closeSync(ours);
});

test("a child that inherited the file keeps the lock after we close it; other children do not have it", async () => {
  const path = newPath();
  const ours = openSync(path, "a");
  expect(tryLock(ours)).toBe(true);
  const bystander = spawn("sleep", ["1000"]);
  const heir = spawn("sh", ["-c", "echo ready; read line"], { stdio: ["pipe", "pipe", "inherit", ours] });
  if (heir.stdout === null) throw new Error("no output to wait for");
  await once(heir.stdout, "data");
  closeSync(ours);
  const second = openSync(path, "a");
  expect(tryLock(second)).toBe(false);
  await end(heir);
  expect(tryLock(second)).toBe(true);
  closeSync(second);
  bystander.kill("SIGKILL");
  await once(bystander, "exit");
});

test("an invalid descriptor is an error that names it", () => {
  expect(() => tryLock(999_999)).toThrow("EBADF");
});

test("a record lock of another process is seen while that process lives, also on a new file of the same name", async () => {
  const path = newPath();
  const index = `${path}-shm`;
  const isLocked = (): boolean | null => hasRecordLock(index);
  for (let round = 0; round < 2; round += 1) {
    const child = await openElsewhere(path);
    expect(isLocked()).toBe(true);
    const exit = once(child, "exit");
    child.kill("SIGKILL");
    await exit;
    expect(isLocked()).toBe(false);
    for (const extra of ["", "-wal", "-shm"]) rmSync(`${path}${extra}`, { force: true });
  }
});

test("asking does not drop our own record locks", async () => {
  const path = newPath();
  using database = new Database(path);
  database.run("PRAGMA journal_mode = WAL");
  database.run("CREATE TABLE t (x)");
  const index = `${path}-shm`;
  expect(hasRecordLock(index)).toBe(true);
  // As another process sees it.
  const script = `
    import { hasRecordLock } from ${JSON.stringify(require.resolve("../../src/sys/file-lock.ts"))};
    console.log(hasRecordLock(${JSON.stringify(index)}));`;
  const child = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  const [answer] = await once(child.stdout, "data");
  expect(String(answer).trim()).toBe("true");
});

test("a flock is not a record lock; for a missing file the answer is null", () => {
  const path = newPath();
  writeFileSync(path, "x");
  const fd = openSync(path, "a");
  expect(tryLock(fd)).toBe(true);
  expect(hasRecordLock(path)).toBe(false);
  expect(hasRecordLock(`${path}.none`)).toBe(null);
  expect(hasRecordLock(folder)).toBe(null);
  closeSync(fd);
});

test("the descriptor is closed with the file", () => {
  const path = newPath();
  // Of a file that is gone, too: its name is there, with a mark behind it.
  const held = (): number => readdirSync("/proc/self/fd").filter((fd) => nameOf(fd).startsWith(path)).length;
  const nameOf = (fd: string): string => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      return "";
    }
  };
  writeFileSync(path, "x");
  expect([hasRecordLock(path), hasRecordLock(path), held()]).toEqual([false, false, 1]);
  rmSync(path);
  expect([hasRecordLock(path), held()]).toEqual([null, 0]);
});
