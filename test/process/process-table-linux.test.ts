// The process table of Linux: first with injected read errors, then from the real /proc with real processes.
import { describe, expect, test } from "bun:test";
import { copyFileSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ProcessRow, ProcessTable } from "../../src/core/process.ts";
import type { ProcessQuery } from "../../src/observe/process-query.ts";
import { type ProcFs, parseStat, readLinuxProcesses } from "../../src/observe/processes.linux.ts";

const wish: ProcessQuery = {
  names: new Set(["agent"]),
  pids: new Set(),
  environment: new Set(["HOME", "AGENTCTL_TAG"]),
  lockedFiles: [
    { lockedFiles: /\.lock$/, processNames: ["agent", "node"], role: (name) => (name === "agent" ? "agent" : null) },
  ],
};

const failing = (code: string): never => {
  throw Object.assign(new Error(code), { code });
};

type Entry = string | (() => string);

/** A /proc of our own: path → content; a missing path is ENOENT; a function may fail or change its answer. */
function procOf(entries: Record<string, Entry>, change: Partial<ProcFs> = {}): ProcFs {
  const all: Record<string, Entry> = {
    "/proc/self": "1",
    "/proc/self/ns/pid": "pid:[4026531836]",
    "/proc/self/ns/mnt": "mnt:[1]",
    "/proc/sys/kernel/random/boot_id": "b-o-o-t\n",
    ...entries,
  };
  const get = (path: string): string => {
    const entry = all[path] ?? failing("ENOENT");
    return typeof entry === "string" ? entry : entry();
  };
  return {
    list: (path) => [
      ...new Set(
        Object.keys(all)
          .filter((key) => key.startsWith(`${path}/`))
          .map((key) => key.slice(path.length + 1).split("/")[0] ?? ""),
      ),
    ],
    read: get,
    link: get,
    owner: (link) => Number(all[`${link}/owner`] ?? 1000),
    exists: () => false,
    pid: 1,
    uid: 1000,
    boot: () => get("/proc/sys/kernel/random/boot_id").trim(),
    bootedAt: () => 1_000_000,
    ...change,
  };
}

const stat = (
  pid: number,
  { name = "agent", state = "S", start = "500", threads = 1, tty = 0, parent = 1, flags = 0 } = {},
): string =>
  `${pid} (${name}) ${state} ${parent} ${pid} ${pid} ${tty} -1 ${flags} 0 0 0 0 0 0 0 0 20 0 ${threads} 0 ${start} 0 0\n`;

/** Real, effective, saved and file system uid. */
const statusOf = (uids: readonly number[], pids = "9"): string =>
  `Name:\tagent\nUid:\t${uids.join("\t")}\nNSpid:\t${pids}\nNSsid:\t9\t1\n`;

const details = (pid: number, change: Record<string, Entry> = {}): Record<string, Entry> => ({
  [`/proc/${pid}/stat`]: stat(pid),
  [`/proc/${pid}/status`]: statusOf([1000, 1000, 1000, 1000]),
  [`/proc/${pid}/cmdline`]: "agent\0--session-id\0x y\0",
  [`/proc/${pid}/exe`]: "/opt/agent (deleted)",
  [`/proc/${pid}/cwd`]: "/project",
  [`/proc/${pid}/environ`]: "SECRET=s3cret\0HOME=/home/u\0AGENTCTL_TAG=t\0NOT=HOME=x\0",
  [`/proc/${pid}/ns/pid`]: "pid:[4026531836]",
  [`/proc/${pid}/ns/mnt`]: "mnt:[1]",
  [`/proc/${pid}/fd/3`]: "/home/u/x.lock",
  [`/proc/${pid}/fdinfo/3`]: "pos:\t0\nlock:\t1: FLOCK ADVISORY WRITE 9 00:01:2 0 EOF\n",
  [`/proc/${pid}/fd/4`]: "/home/u/y.lock",
  [`/proc/${pid}/fdinfo/4`]: "pos:\t0\n",
  ...change,
});

function tableOf(proc: ProcFs, change: Partial<ProcessQuery> = {}): ProcessTable {
  const reading = readLinuxProcesses({ ...wish, ...change }, proc);
  if (!reading.ok) throw new Error(reading.problem.detail.code);
  return reading.value;
}

describe("a stat line", () => {
  test.each([
    ["plain", "agent"],
    ["with spaces", "a b c"],
    ["with parentheses", "a) S 1 (b"],
    ["with a newline", "a\nb"],
    ["empty", ""],
    ["not ASCII", "näme"],
  ])("is parsed with the name %s", (_what, name) => {
    expect(parseStat(stat(5, { name }))).toEqual({
      name,
      state: "S",
      parent: 1,
      session: 5,
      tty: null,
      start: "500",
      threads: 1,
      exiting: false,
      forked: false,
      kernel: false,
    });
  });

  test.each([
    [34_816 + 3, "/dev/pts/3"],
    [0x108800 + 4, "/dev/pts/260"],
    [0x401, "/dev/tty1"],
    [0x440, "/dev/ttyS0"],
    [0, null],
  ])("is parsed with the terminal number %p", (tty, name) => {
    expect(parseStat(stat(5, { tty }))?.tty).toBe(name);
  });

  test.each(["", "5 agent S", "5 (agent) S 1 2", "garbage"])("is rejected if it is broken: %p", (text) => {
    expect(parseStat(text)).toBeNull();
  });
});

describe("a table", () => {
  test("has details of candidates only, and only the requested environment variables", () => {
    const table = tableOf(procOf({ ...details(9), "/proc/10/stat": stat(10, { name: "other" }) }));
    expect(table).toEqual({
      boot: "b-o-o-t",
      uid: 1000,
      namespace: { id: "pid:[4026531836]", initial: true },
      rows: [
        {
          identity: { pid: 9, start: "500", boot: "b-o-o-t" },
          parent: 1,
          session: 9,
          state: "S",
          name: "agent",
          tty: null,
          startedAt: 1_005_000,
          detail: {
            uid: 1000,
            ours: true,
            argv: ["agent", "--session-id", "x y"],
            exe: "/opt/agent",
            cwd: "/project",
            env: { HOME: "/home/u", AGENTCTL_TAG: "t" },
            lockedFiles: ["/home/u/x.lock"],
            namespace: "pid:[4026531836]",
            innerPid: 9,
            sameFiles: true,
            confinement: null,
            unread: [],
          },
        },
        {
          identity: { pid: 10, start: "500", boot: "b-o-o-t" },
          parent: 1,
          session: 10,
          state: "S",
          name: "other",
          tty: null,
          startedAt: 1_005_000,
          detail: null,
        },
      ],
      gaps: [],
      hidden: [],
    });
    expect(JSON.stringify(table)).not.toContain("s3cret");
  });

  test.each(["ENOENT", "ESRCH"])("does not contain a process that exited during the read (%s)", (code) => {
    expect(tableOf(procOf({ "/proc/9/stat": () => failing(code) }))).toMatchObject({ rows: [], gaps: [] });
    const between = details(9, { "/proc/9/cmdline": () => failing(code) });
    let looks = 0;
    between["/proc/9/stat"] = () => {
      looks += 1;
      return looks === 1 ? stat(9) : failing(code);
    };
    expect(tableOf(procOf(between))).toMatchObject({ rows: [], gaps: [] });
  });

  test("contains the last process with a pid, not a mixture of two", () => {
    let looks = 0;
    const changing = details(9, {
      "/proc/9/stat": () => {
        looks += 1;
        return stat(9, { start: looks === 1 ? "500" : "900" });
      },
      "/proc/9/cmdline": () => (looks === 1 ? "old\0" : "new\0"),
    });
    const [row] = tableOf(procOf(changing)).rows;
    expect([row?.identity.start, row?.detail?.argv]).toEqual(["900", ["new"]]);
  });

  test("has a gap if a stat line cannot be read for another reason", () => {
    const { rows, gaps } = tableOf(procOf({ "/proc/9/stat": () => failing("EIO") }));
    expect([rows.length, gaps[0]?.source, gaps[0]?.detail]).toEqual([
      0,
      "/proc/9/stat",
      { code: "system-error", errno: "EIO", text: "input/output error" },
    ]);
    expect(tableOf(procOf({ "/proc/9/stat": "garbage" })).gaps).toHaveLength(1);
  });

  test("names the unread part of a candidate of ours", () => {
    const refused = details(9, { "/proc/9/environ": () => failing("EACCES"), "/proc/9/fd": "" });
    const [row] = tableOf(procOf(refused)).rows;
    expect(row?.detail?.env).toBeNull();
    expect(row?.detail?.unread.map(({ source, detail }) => [source, detail])).toEqual([
      ["/proc/9/environ", { code: "system-error", errno: "EACCES", text: "permission denied" }],
    ]);
  });

  test("does not read the environment of other users' processes, and their unreadable parts are not gaps", () => {
    const foreign = details(9, {
      "/proc/9/status": statusOf([0, 0, 0, 0]),
      "/proc/9/exe": () => failing("EACCES"),
      "/proc/9/cwd": () => failing("EACCES"),
    });
    const [row] = tableOf(procOf(foreign)).rows;
    expect(row?.detail).toMatchObject({ uid: 0, ours: false, env: null, exe: null, unread: [] });
  });

  test.each([
    [0, "real"],
    [1, "effective"],
    [2, "saved"],
    [3, "file system"],
  ])("does not count a process with another uid in place %p (%s) as ours", (place) => {
    const uids = [1000, 1000, 1000, 1000].with(place, 0);
    const mixed = details(9, { "/proc/9/status": statusOf(uids), "/proc/9/exe": () => failing("EACCES") });
    const [row] = tableOf(procOf(mixed)).rows;
    expect(row?.detail).toMatchObject({ uid: null, ours: false, env: null, unread: [] });
    const [also] = tableOf(procOf(mixed), { names: new Set(), also: "ours" }).rows;
    expect(also?.detail).toMatchObject({ uid: null, ours: false, env: null, unread: [] });
  });

  test.each([
    ["refused", () => failing("EACCES"), { code: "system-error", errno: "EACCES" }],
    ["without uids", "Name:\tagent\n", { code: "no-uids" }],
  ])("marks a process whose status is %s as possibly ours", (_what, status, problem) => {
    const hidden = details(9, { "/proc/9/status": status });
    for (const change of [{}, { names: new Set<string>(), also: "ours" as const }]) {
      const [row] = tableOf(procOf(hidden), change).rows;
      expect(row?.detail).toMatchObject({ uid: null, ours: false, env: null, unread: [{ detail: problem }] });
    }
  });

  test.each(["pid", "mnt", "user"])(
    "a process in another %s namespace is confined, together with its neighbours",
    (kind) => {
      const spaces = { [`/proc/9/ns/${kind}`]: `${kind}:[7]`, [`/proc/10/ns/${kind}`]: `${kind}:[7]` };
      const entries = { ...details(9), ...details(10), ...details(11), ...spaces };
      const [first, second, outside] = tableOf(procOf(entries)).rows.map(({ detail }) => detail?.confinement);
      expect(first).toContain(`${kind}:[7]`);
      expect([second, outside]).toEqual([first, null]);
    },
  );

  test("ignores a lock on a file that belongs neither to us nor to the process's user", () => {
    const foreign = details(9, { "/proc/9/fd/3/owner": "65534" });
    expect(tableOf(procOf(foreign)).rows[0]?.detail?.lockedFiles).toEqual([]);
    const theirs = { ...foreign, "/proc/9/status": statusOf([65534, 65534, 65534, 65534]) };
    expect(tableOf(procOf(theirs)).rows[0]?.detail?.lockedFiles).toEqual(["/home/u/x.lock"]);
  });

  test("marks an announced pid as hidden, not gone, with hidepid=1 (stat refused) and hidepid=2 (not listed)", () => {
    const pids = new Set([9, 10, 11]);
    const proc = procOf({ "/proc/9/stat": () => failing("EPERM") }, { exists: (pid) => pid === 10 });
    const table = tableOf(proc, { pids });
    expect([table.rows, table.gaps, table.hidden]).toEqual([[], [], [9, 10]]);
  });

  test("has details of an announced pid with any name", () => {
    const renamed = details(9, { "/proc/9/stat": stat(9, { name: "renamed" }) });
    expect(tableOf(procOf(renamed), { pids: new Set([9]) }).rows[0]?.detail?.exe).toBe("/opt/agent");
  });

  test.each([
    ["of another pid namespace", "pid:[4026532000]"],
    ["of one that we may not see", () => failing("EACCES")],
  ])("finds a process %s by both its pids", (_what, namespace) => {
    const status = statusOf([1000, 1000, 1000, 1000], "9\t7");
    const inner = details(9, { "/proc/9/ns/pid": namespace, "/proc/9/status": status });
    expect(tableOf(procOf(inner)).rows[0]).toMatchObject({ identity: { pid: 9 }, detail: { innerPid: 7 } });
  });

  test("reads the open files only of agents that use locks", () => {
    const listed: string[] = [];
    const other = details(10, { "/proc/10/stat": stat(10, { name: "node" }) });
    const proc = procOf({ ...details(9), ...other });
    const list = (path: string) => {
      listed.push(path);
      return proc.list(path);
    };
    const { rows } = tableOf({ ...proc, list }, { names: new Set(["agent", "node"]) });
    expect(rows.map(({ detail }) => detail?.lockedFiles)).toEqual([["/home/u/x.lock"], []]);
    expect(listed).toEqual(["/proc", "/proc/9/fd"]);
  });

  test("marks a process whose first thread has ended as dead only if no other thread runs", () => {
    const stateWith = (other: string) => {
      const main = stat(9, { state: "Z", threads: 2 });
      const entries = { "/proc/9/stat": main, "/proc/9/task/9/stat": main, "/proc/9/task/12/stat": other };
      return tableOf(procOf(entries)).rows[0]?.state;
    };
    expect(stateWith(stat(12, { state: "R" }))).toBe("S");
    expect(stateWith(stat(12, { state: "R", flags: 0x4 }))).toBe("Z");
    expect(stateWith(stat(12, { state: "X" }))).toBe("Z");
  });

  test("marks a process that is exiting with all threads as dead, and does not read its program", () => {
    const [exiting, working] = [0x4, 0];
    const rowWith = (flags: number, threads = 2) => {
      const main = stat(9, { state: "R", threads, flags: exiting });
      const tasks = { "/proc/9/task/9/stat": main, "/proc/9/task/12/stat": stat(12, { state: "R", flags }) };
      const gone = { "/proc/9/stat": main, "/proc/9/cmdline": "", "/proc/9/exe": () => failing("ENOENT") };
      return tableOf(procOf(details(9, { ...gone, ...tasks }))).rows[0];
    };
    expect(rowWith(exiting)).toMatchObject({ state: "X", detail: null });
    expect(rowWith(working, 1)).toMatchObject({ state: "X", detail: null });
    expect(rowWith(working)).toMatchObject({ state: "R" });
    expect(rowWith(working)?.detail).not.toBeNull();
  });

  test("marks a process that exits during the read as dead, because its locks may have gone first", () => {
    let readings = 0;
    const statOf = () => {
      readings += 1;
      return stat(9, { state: readings === 1 ? "S" : "Z" });
    };
    const proc = procOf(details(9, { "/proc/9/stat": statOf }));
    expect(tableOf(proc).rows[0]).toMatchObject({ state: "Z", detail: null });
  });

  test("ignores a child between fork and exec, unless it was announced", () => {
    const child = procOf(details(9, { "/proc/9/stat": stat(9, { flags: 0x40 }) }));
    expect(tableOf(child).rows[0]?.detail).toBeNull();
    expect(tableOf(child, { pids: new Set([9]) }).rows[0]?.detail?.exe).toBe("/opt/agent");
  });

  test("has no details of dead processes", () => {
    const zombie = details(9, { "/proc/9/stat": stat(9, { state: "Z" }) });
    expect(tableOf(procOf(zombie)).rows[0]).toMatchObject({ state: "Z", detail: null });
  });

  test.each([
    ["/proc is of another pid namespace", { "/proc/self": "4711" }],
    ["there is no /proc", { "/proc/self": () => failing("ENOENT") }],
    ["the boot id cannot be read", { "/proc/sys/kernel/random/boot_id": () => failing("EACCES") }],
  ])("is unread if %s", (_what, entries) => {
    expect(readLinuxProcesses(wish, procOf(entries)).ok).toBe(false);
  });

  test("is unread if listing /proc fails half way", () => {
    expect(readLinuxProcesses(wish, procOf({}, { list: () => failing("EIO") })).ok).toBe(false);
  });

  test("recognizes a non-initial namespace, and one that cannot be read", () => {
    expect(tableOf(procOf({ "/proc/self/ns/pid": "pid:[4026532000]" })).namespace).toEqual({
      id: "pid:[4026532000]",
      initial: false,
    });
    expect(tableOf(procOf({ "/proc/self/ns/pid": () => failing("EACCES") })).namespace.initial).toBe(false);
  });
});

describe("the real /proc", () => {
  const real = (pids: number[]): Map<number, ProcessRow> => {
    const reading = readLinuxProcesses({ ...wish, pids: new Set(pids) });
    if (!reading.ok) throw new Error(reading.problem.detail.code);
    return new Map(reading.value.rows.map((row) => [row.identity.pid, row]));
  };
  const until = async (what: () => boolean): Promise<void> => {
    const end = Date.now() + 5_000;
    while (!what()) {
      if (Date.now() > end) throw new Error("the sign did not come");
      await Bun.sleep(2);
    }
  };
  const stateOf = (pid: number) => parseStat(readFileSync(`/proc/${pid}/stat`, "utf8"))?.state;

  test("shows a process with a strange name, suspended, after its file was deleted, then as a zombie", async () => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), "agentctl-process-")));
    const program = join(folder, "a) S (b\nc");
    copyFileSync("/bin/sleep", program);
    // A parent that does not reap: the child stays a zombie until the parent ends.
    const script = `"$1" 60 & echo $!; exec sleep 60`;
    const parent = Bun.spawn(["/bin/sh", "-c", script, "sh", program], {
      cwd: folder,
      stdout: "pipe",
      env: { HOME: folder },
    });
    try {
      const reader = parent.stdout.getReader();
      const pid = Number(new TextDecoder().decode((await reader.read()).value));
      await until(() => parseStat(readFileSync(`/proc/${pid}/stat`, "utf8"))?.name === "a) S (b\nc");
      expect(real([pid]).get(pid)).toMatchObject({
        name: "a) S (b\nc",
        parent: parent.pid,
        detail: { ours: true, exe: program, cwd: folder, env: { HOME: folder }, argv: [program, "60"] },
      });
      rmSync(program);
      expect(real([pid]).get(pid)?.detail?.exe).toBe(program);
      process.kill(pid, "SIGSTOP");
      await until(() => stateOf(pid) === "T");
      expect(real([pid]).get(pid)?.state).toBe("T");
      process.kill(pid, "SIGKILL");
      await until(() => stateOf(pid) === "Z");
      expect(real([pid]).get(pid)).toMatchObject({ state: "Z", detail: null });
    } finally {
      parent.kill("SIGKILL");
      await parent.exited;
      rmSync(folder, { recursive: true });
    }
  });

  test("shows ourselves, alive and older than now", () => {
    const row = real([process.pid]).get(process.pid);
    expect(row?.detail?.uid).toBe(process.getuid?.() ?? -1);
    expect(row?.startedAt).toBeLessThanOrEqual(Date.now() + 1000);
    expect(row?.startedAt).toBeGreaterThan(Date.now() - 3_600_000);
  });

  test("reads an environment and arguments larger than one buffer", async () => {
    const folder = mkdtempSync(join(tmpdir(), "agentctl-process-"));
    const program = join(folder, "agent");
    writeFileSync(program, "#!/bin/sh\nread line\n", { mode: 0o755 });
    const big = "x".repeat(100_000);
    const child = Bun.spawn([program, big], { stdin: "pipe", env: { BIG: big, HOME: "/at/the/end" } });
    try {
      await until(() => real([child.pid]).get(child.pid)?.name === "agent");
      const detail = real([child.pid]).get(child.pid)?.detail;
      expect(detail?.env).toEqual({ HOME: "/at/the/end" });
      expect(detail?.argv?.at(-1)).toHaveLength(100_000);
    } finally {
      child.kill("SIGKILL");
      await child.exited;
      rmSync(folder, { recursive: true });
    }
  });
});
