// The macOS reader with bytes built from the documented layouts (sys/proc_info.h, sys/sysctl.h, kern_sysctl.c). It has never run on a Mac.
import { describe, expect, test } from "bun:test";
import type { ProcessTable } from "../../src/core/process.ts";
import type { ProcessQuery } from "../../src/observe/process-query.ts";
import { readDarwinProcesses } from "../../src/observe/processes.darwin.ts";
import { type DarwinSystem, darwinSystem, type Raw } from "../../src/sys/darwin.ts";

interface Fake {
  pid: number;
  uid?: number;
  status?: number;
  comm?: string;
  name?: string;
  tty?: number;
  seconds?: number;
  args?: Uint8Array | string;
  exe?: string;
  /** Runs before each look at this process; "gone" ends it. */
  at?: (look: number) => Partial<Fake> | "gone";
  refused?: boolean;
  /** As `uid`, by default. */
  realUid?: number;
  savedUid?: number;
}

const me = 501;
const wish: ProcessQuery = {
  names: new Set(["claude", "codex"]),
  pids: new Set(),
  environment: new Set(["CODEX_HOME", "AGENTCTL_TAG"]),
  lockedFiles: [{ lockedFiles: /thread-writer-locks\/.*\.lock$/, processNames: ["codex"], role: () => "agent" }],
};
const ok = <T>(value: T): Raw<T> => ({ ok: true, value });
const no = (why: string) => ({ ok: false as const, why });

function bsdInfo(fake: Fake): Uint8Array {
  const bytes = new Uint8Array(136);
  const at = new DataView(bytes.buffer);
  for (const [offset, value] of [
    [4, fake.status ?? 2],
    [12, fake.pid],
    [16, 1],
    [20, fake.uid ?? me],
    [28, fake.realUid ?? fake.uid ?? me],
    [36, fake.savedUid ?? fake.uid ?? me],
    [108, fake.tty ?? 0xffffffff],
  ] as const)
    at.setUint32(offset, value, true);
  new TextEncoder().encodeInto(fake.comm ?? "claude", bytes.subarray(48, 63));
  new TextEncoder().encodeInto(fake.name ?? "", bytes.subarray(64, 95));
  at.setBigUint64(120, BigInt(fake.seconds ?? 1_800_000_000), true);
  at.setBigUint64(128, 123_456n, true);
  return bytes;
}

function kinfo(fake: Fake): Uint8Array {
  const bytes = new Uint8Array(648);
  const at = new DataView(bytes.buffer);
  at.setBigUint64(0, BigInt(fake.seconds ?? 1_800_000_000), true);
  at.setUint32(8, 123_456, true);
  at.setUint8(36, fake.status ?? 2);
  at.setUint32(40, fake.pid, true);
  new TextEncoder().encodeInto(fake.comm ?? "claude", bytes.subarray(243, 259));
  at.setUint32(392, fake.realUid ?? fake.uid ?? me, true);
  at.setUint32(396, fake.savedUid ?? fake.uid ?? me, true);
  at.setUint32(420, fake.uid ?? me, true);
  at.setUint32(560, 1, true);
  at.setUint32(572, fake.tty ?? 0xffffffff, true);
  return bytes;
}

/** `rest`: the strings after argv, each with its NUL. */
function procArgs(path: string, argv: string[], rest: string[], argc = argv.length): Uint8Array {
  const strings = new TextEncoder().encode(`${path}\0\0\0\0${[...argv, ...rest].map((part) => `${part}\0`).join("")}`);
  const bytes = new Uint8Array(4 + strings.length);
  new DataView(bytes.buffer).setInt32(0, argc, true);
  bytes.set(strings, 4);
  return bytes;
}

function machine(fakes: Fake[], lsof: Raw<string> = ok("")): DarwinSystem & { asked: string[] } {
  const looks = new Map<number, number>();
  const asked: string[] = [];
  const now = (pid: number): Fake | null => {
    const fake = fakes.find((each) => each.pid === pid);
    const change = fake?.at?.(looks.get(pid) ?? 1) ?? {};
    return fake === undefined || change === "gone" ? null : { ...fake, ...change };
  };
  return {
    asked,
    uid: me,
    bootSession: () => ok("B00T"),
    bootTime: () => no("not needed"),
    pids: () => ok([0, ...fakes.map((fake) => fake.pid)]),
    bsdInfo(pid) {
      looks.set(pid, (looks.get(pid) ?? 0) + 1);
      const fake = now(pid);
      if (fake === null) return no("errno 3");
      return fake.refused || (fake.uid ?? me) !== me ? no("errno 1") : ok(bsdInfo(fake));
    },
    kinfo(pid) {
      const fake = now(pid);
      if (fake?.refused) return no("errno 1");
      return ok(fake === null ? new Uint8Array() : kinfo(fake));
    },
    session: (pid) => (now(pid) === null || now(pid)?.status === 5 ? no("errno 3") : ok(pid - 1)),
    arguments(pid) {
      asked.push(`arguments ${pid}`);
      const args = now(pid)?.args ?? "errno 22";
      return typeof args === "string" ? no(args) : ok(args);
    },
    executable: (pid) => (now(pid)?.exe === undefined ? no("errno 2") : ok(now(pid)?.exe ?? "")),
    openFiles(pids, want) {
      asked.push(`lsof ${want} ${pids.join(",")}`);
      return lsof;
    },
  };
}

function table(fakes: Fake[], lsof?: Raw<string>, change: Partial<ProcessQuery> = {}): ProcessTable {
  const reading = readDarwinProcesses({ ...wish, ...change }, machine(fakes, lsof));
  if (!reading.ok) throw new Error(reading.problem.detail.code);
  return reading.value;
}

const apple = ["", "", "ptr_munge=", "main_stack="];
const codexArgs = procArgs("/opt/bin/codex", ["codex", "exec", ""], ["HOME=/Users/a", "CODEX_HOME=/c=d", ...apple]);
const codexFiles = [
  ...["p70", "fcwd", "l ", "G0x1;0x0", "n/Users/a/caf\\xc3\\xa9 \\\\x"],
  ...[
    "f12",
    "l ",
    "G0x4003;0x2",
    "n/c/thread-writer-locks/1.lock",
    "f13",
    "l ",
    "G0x3;0x0",
    "n/c/thread-writer-locks/2.lock",
  ],
  ...["f14", "lW", "n/c/thread-writer-locks/3.lock", "f15", "G0x4003;0x0", "n/c/other.lock", ""],
].join("\n");

describe("a candidate of ours", () => {
  test("has its identity in microseconds, its arguments, whitelisted environment, directory and locked files", () => {
    const fake = { pid: 70, comm: "codex", tty: (16 << 24) | 4, args: codexArgs, exe: "/opt/lib/codex" };
    expect(table([fake], ok(codexFiles))).toEqual({
      boot: "B00T",
      uid: me,
      namespace: { id: null, initial: true },
      rows: [
        {
          identity: { pid: 70, start: "1800000000123456", boot: "B00T" },
          ...{ parent: 1, session: 69, state: "R", name: "codex", tty: "/dev/ttys004", startedAt: 1_800_000_000_123 },
          detail: {
            ...{ uid: me, ours: true, argv: ["codex", "exec", ""], exe: "/opt/lib/codex", cwd: "/Users/a/café \\x" },
            env: { CODEX_HOME: "/c=d" },
            lockedFiles: ["/c/thread-writer-locks/1.lock", "/c/thread-writer-locks/3.lock"],
            ...{ namespace: null, innerPid: null, sameFiles: true, confinement: null, unread: [] },
          },
        },
      ],
      gaps: [],
      hidden: [],
    });
  });

  test("is recognized by the path of its program, because the kernel names Claude's native build after its version", () => {
    const args = procArgs("/Users/a/.local/bin/claude", ["claude"], ["HOME=/Users/a", ...apple]);
    const [row] = table([{ pid: 7, comm: "2.1.34", name: "2.1.34", args }], ok("p7\nfcwd\nn/w\n")).rows;
    expect([row?.name, row?.detail?.exe, row?.detail?.unread]).toEqual(["claude", "/Users/a/.local/bin/claude", []]);
  });

  test("is recognized by its long name if the short one is cut", () => {
    const fake = { pid: 7, comm: "claude-with-a-v", name: "claude-with-a-very-long-name", args: codexArgs };
    const [row] = table([fake], ok(""), { names: new Set([fake.name]) }).rows;
    expect([row?.name, row?.detail?.ours]).toEqual([fake.name, true]);
  });

  test("keeps its environment if it overwrote its arguments with a title", () => {
    const args = procArgs("/b/codex", ["codex", "", ""], ["", "", "AGENTCTL_TAG=t", "AGENTCTL_TAG=later", ...apple]);
    expect(table([{ pid: 7, args }]).rows[0]?.detail?.env).toEqual({ AGENTCTL_TAG: "t" });
  });

  test("without a whitelisted key differs from one whose environment the kernel withholds", () => {
    const plain = table([{ pid: 7, args: procArgs("/b/codex", ["codex"], apple) }], ok("p7\nfcwd\nn/w\n"));
    const withheld = table([{ pid: 7, args: procArgs("/b/codex", ["codex"], []) }], ok("p7\nfcwd\nn/w\n"));
    expect([plain.rows[0]?.detail?.env, plain.rows[0]?.detail?.unread]).toEqual([{}, []]);
    expect(withheld.rows[0]?.detail?.env).toBeNull();
    expect(withheld.rows[0]?.detail?.unread.map((each) => each.detail)).toEqual([
      { code: "part-unread", part: "environment", detail: { code: "environment-hidden" } },
    ]);
  });

  test.each([
    [
      "arguments",
      { args: "errno 22" },
      ok("p7\nfcwd\nn/w\n"),
      "arguments",
      { code: "system-error", errno: "", text: "errno 22" },
    ],
    [
      "a cut block",
      { args: procArgs("/b/codex", ["codex"], [], 9) },
      ok("p7\nfcwd\nn/w\n"),
      "arguments",
      { code: "unknown-shape" },
    ],
    [
      "nonsense",
      { args: procArgs("/b/codex", ["codex"], apple, -1) },
      ok("p7\nfcwd\nn/w\n"),
      "arguments",
      { code: "unknown-shape" },
    ],
    [
      "lsof",
      { args: codexArgs },
      no("lsof: ended by SIGKILL"),
      "open-files",
      { code: "system-error", text: "lsof: ended by SIGKILL" },
    ],
    [
      "its line of lsof",
      { args: codexArgs },
      ok("p8\nfcwd\nn/w\n"),
      "working-directory",
      { code: "not-shown-by-lsof" },
    ],
    [
      "its directory",
      { args: codexArgs },
      ok("p7\nfcwd\nncwd|rtd info error\n"),
      "working-directory",
      { code: "system-error", text: "cwd|rtd info error" },
    ],
  ])("reports what could not be read: %s", (_, fake, lsof, part, detail) => {
    const found = table([{ pid: 7, ...fake }], lsof);
    expect(found.gaps).toEqual([]);
    expect(found.rows[0]?.detail?.unread.map((each) => each.detail)).toMatchObject([
      { code: "part-unread", part, detail },
    ]);
  });
});

describe("processes that exit or are hidden", () => {
  test("a zombie is a row without details, even if announced", () => {
    const [row] = table([{ pid: 7, status: 5 }], ok(""), { pids: new Set([7]) }).rows;
    expect([row?.state, row?.detail]).toEqual(["Z", null]);
  });

  test("a suspended process is T", () => expect(table([{ pid: 7, comm: "zsh", status: 4 }]).rows[0]?.state).toBe("T"));

  test("a process that exits before or between the two reads, or is recycled, is neither a row nor a gap", () => {
    const args = codexArgs;
    const found = table([
      { pid: 7, at: () => "gone" },
      { pid: 8, args, at: (look) => (look > 1 ? "gone" : {}) },
      { pid: 9, args, at: (look) => (look > 1 ? { seconds: 1_800_000_001 } : {}) },
    ]);
    expect([found.rows, found.gaps]).toEqual([[], []]);
  });

  test("a process that dies during the read is a zombie; one that changes its program is not fully read", () => {
    const lsof = ok("p7\nfcwd\nn/w\np8\nfcwd\nn/w\n");
    const { rows } = table(
      [
        { pid: 7, args: codexArgs, at: (look) => (look > 1 ? { status: 5 } : {}) },
        { pid: 8, args: codexArgs, at: (look) => (look > 1 ? { comm: "sh" } : {}) },
      ],
      lsof,
    );
    expect(rows.map((row) => [row.state, row.detail?.unread.map((each) => each.detail)])).toEqual([
      ["Z", undefined],
      ["R", [{ code: "part-unread", part: "program", detail: { code: "changed-while-read" } }]],
    ]);
  });

  test.each([{ realUid: 88 }, { savedUid: 88 }])(
    "a setuid program of ours that another user runs is not ours: %p",
    (others) => {
      const system = machine([{ pid: 70, comm: "codex", args: codexArgs, ...others }], ok(codexFiles));
      const reading = readDarwinProcesses({ ...wish, pids: new Set([70]), also: "ours" }, system);
      const [row] = reading.ok ? reading.value.rows : [];
      expect(row?.detail).toMatchObject({ uid: null, ours: false, argv: null, env: null, lockedFiles: [], unread: [] });
      expect(system.asked).toEqual([]);
    },
  );

  test("another user's process has a row with an identity; its unreadable parts are not gaps", () => {
    const system = machine([{ pid: 7, uid: 88, tty: 0 }]);
    const reading = readDarwinProcesses(wish, system);
    const row = reading.ok ? reading.value.rows[0] : null;
    expect([row?.identity.start, row?.name, row?.tty]).toEqual(["1800000000123456", "claude", "/dev/tty(0:0)"]);
    expect([row?.detail?.uid, row?.detail?.ours, row?.detail?.argv, row?.detail?.unread]).toEqual([
      88,
      false,
      null,
      [],
    ]);
    expect(system.asked).toEqual([]);
  });

  test("a process that cannot be read is a gap, and hidden if it was announced", () => {
    const found = table([{ pid: 7, refused: true }], ok(""), { pids: new Set([7]) });
    expect(found.rows).toEqual([]);
    expect(found.hidden).toEqual([7]);
    expect(found.gaps).toEqual([
      {
        code: "process-unreadable",
        agent: null,
        source: "pid 7",
        detail: { code: "system-error", errno: "", text: "errno 1; errno 1" },
      },
    ]);
  });

  test("an unknown layout is a gap, not a guess", () => {
    const system = {
      ...machine([{ pid: 7 }]),
      bsdInfo: () => ok(new Uint8Array(144)),
      kinfo: () => ok(new Uint8Array(9)),
    };
    const reading = readDarwinProcesses(wish, system);
    expect(reading.ok && [reading.value.rows.length, reading.value.gaps.length]).toEqual([0, 1]);
  });

  test("an announced pid that is missing in the list is read by its number", () => {
    const system = { ...machine([{ pid: 7, comm: "zsh" }]), pids: () => ok([1]) };
    const reading = readDarwinProcesses({ ...wish, pids: new Set([7]), lockedFiles: [] }, system);
    expect(reading.ok && reading.value.rows.map((row) => [row.name, row.detail?.ours])).toEqual([["zsh", true]]);
    expect(system.asked).toEqual(["arguments 7", "lsof cwd 7"]);
  });
});

test("without the list of pids, or a boot id, the table is unread", () => {
  const code = (change: Partial<DarwinSystem>) => {
    const reading = readDarwinProcesses(wish, { ...machine([]), ...change });
    return reading.ok ? reading.value.boot : reading.problem.code;
  };
  expect(code({ pids: () => no("errno 12") })).toBe("processes-unreadable");
  expect(code({ bootSession: () => no("errno 2") })).toBe("processes-unreadable");
  const time = new Uint8Array(16);
  new DataView(time.buffer).setBigInt64(0, 1_700_000_000n, true);
  expect(code({ bootSession: () => no("errno 2"), bootTime: () => ok(time) })).toBe("boottime-1700000000");
});

test.skipIf(process.platform !== "darwin")("on a Mac this process is found with its arguments and directory", () => {
  const uid = process.getuid?.() ?? -1;
  const reading = readDarwinProcesses({ ...wish, pids: new Set([process.pid]) }, darwinSystem);
  const row = reading.ok ? reading.value.rows.find((each) => each.identity.pid === process.pid) : null;
  expect(row?.detail).toMatchObject({ uid, ours: true, cwd: process.cwd(), unread: [] });
});
