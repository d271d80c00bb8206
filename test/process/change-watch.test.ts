// The watch reports exits of real processes and changes of real files, and does not block anything else while it waits.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, linkSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ChangeWatch, openChangeWatch } from "../../src/sys/change-watch.ts";
import { openWatchers } from "../../src/sys/watchers.ts";

const LONG_MS = 10_000;
const module = JSON.stringify(require.resolve("../../src/sys/change-watch.ts"));

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "agentctl-changes-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

function opened(): ChangeWatch & Disposable {
  const changes = openChangeWatch();
  return { ...changes, [Symbol.dispose]: changes.close };
}

/** Processes whose parent is gone: not our children. */
async function strangers(count: number): Promise<number[]> {
  const script = `for i in $(seq ${count}); do sleep 1000 </dev/null >/dev/null 2>&1 & echo $!; done`;
  const shell = spawn("sh", ["-c", script], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  for await (const chunk of shell.stdout) text += String(chunk);
  return text.trim().split("\n").map(Number);
}

async function firstLine({ stdout }: ChildProcess): Promise<string> {
  if (stdout === null) throw new Error("no output to wait for");
  const [data] = await once(stdout, "data");
  return String(data).trim();
}

const stateOf = (pid: number): string | undefined => readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.[0];

const script = (text: string): ChildProcess =>
  spawn(process.execPath, ["-e", `import { openChangeWatch } from ${module};\n${text}`], {
    stdio: ["ignore", "pipe", "inherit"],
  });

/** How long until it answered, with what; `act` happens while it waits. */
async function waitWhile(changes: ChangeWatch, act: () => void): Promise<{ answer: string; tookMs: number }> {
  let actedAt = Number.NaN;
  setTimeout(() => {
    actedAt = performance.now();
    act();
  }, 20);
  const answer = await changes.next(LONG_MS);
  return { answer, tookMs: performance.now() - actedAt };
}

async function expectTold(changes: ChangeWatch, act: () => void): Promise<void> {
  const { answer, tookMs } = await waitWhile(changes, act);
  expect(answer).toBe("changed");
  expect(tookMs).toBeLessThan(1_000);
}

describe("processes", () => {
  test("the exit of a process that is not our child is reported once", async () => {
    using changes = opened();
    const [pid = 0] = await strangers(1);
    expect(changes.process(pid)).toBe(true);
    expect(changes.process(pid)).toBe(true);
    // By a third one, while we sleep in the kernel.
    await expectTold(changes, () => spawn("sh", ["-c", `sleep 0.05; kill -KILL ${pid}`]));
    expect(await changes.next(50)).toBe("quiet");
    expect(changes.process(pid)).toBe(false);
  });

  test("an exit between two waits is reported by the next wait", async () => {
    using changes = opened();
    const child = spawn("sleep", ["1000"]);
    expect(changes.process(child.pid ?? 0)).toBe(true);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(changes.process(child.pid ?? 0)).toBe(false);
    expect(await changes.next(LONG_MS)).toBe("changed");
    expect(await changes.next(50)).toBe("quiet");
  });

  test("a process that has already exited is reported", async () => {
    using changes = opened();
    const child = spawn("true");
    await once(child, "exit");
    expect(changes.process(child.pid ?? 0)).toBe(false);
    expect(await changes.next(50)).toBe("quiet");
  });

  test("a zombie counts as exited", async () => {
    using changes = opened();
    // Stopped, so that it does not reap; a stopped parent is killed as well as any.
    const parent = spawn("sh", ["-c", "read line <&3 & echo $!; kill -STOP $$"], {
      stdio: ["ignore", "pipe", "inherit", "pipe"],
    });
    const pid = Number(await firstLine(parent));
    while (stateOf(parent.pid ?? 0) !== "T") await new Promise((resolve) => setTimeout(resolve, 5));
    expect(changes.process(pid)).toBe(true);
    await expectTold(changes, () => parent.stdio[3]?.destroy());
    expect(stateOf(pid)).toBe("Z");
    expect(changes.process(pid)).toBe(false);
    parent.kill("SIGKILL");
    await once(parent, "exit");
  });

  test("each of three hundred exits is reported", async () => {
    using changes = opened();
    const pids = await strangers(300);
    try {
      expect(pids.filter((pid) => changes.process(pid))).toHaveLength(300);
      expect(await changes.next(50)).toBe("quiet");
      for (const pid of [pids[0], pids[150], pids[299]]) {
        await expectTold(changes, () => process.kill(pid ?? 0, "SIGKILL"));
        expect(pids.filter((each) => !changes.process(each))).toContain(pid ?? 0);
      }
    } finally {
      for (const pid of pids) if (changes.process(pid)) process.kill(pid, "SIGKILL");
    }
  });
});

describe("paths", () => {
  let count = 0;
  const newFile = (): string => {
    count += 1;
    const path = join(folder, `${count}.txt`);
    writeFileSync(path, "first\n");
    return path;
  };

  test("a file that grows is reported; several quick changes are one report", async () => {
    using changes = opened();
    const path = newFile();
    expect(changes.path(path)).toBe(true);
    expect(await changes.next(50)).toBe("quiet");
    await expectTold(changes, () => {
      for (let line = 0; line < 100; line += 1) appendFileSync(path, `${line}\n`);
    });
    expect(changes.path(path)).toBe(true);
    expect(await changes.next(50)).toBe("quiet");
  });

  test("a folder is reported when an entry is created, written, renamed or removed", async () => {
    using changes = opened();
    const sub = mkdtempSync(join(folder, "sub-"));
    const [a, b] = [join(sub, "a"), join(sub, "b")];
    expect(changes.path(sub)).toBe(true);
    await expectTold(changes, () => writeFileSync(a, ""));
    await expectTold(changes, () => appendFileSync(a, "x"));
    await expectTold(changes, () => renameSync(a, b));
    await expectTold(changes, () => rmSync(b));
    await expectTold(changes, () => rmSync(sub, { recursive: true }));
    expect(changes.path(sub)).toBe(false);
  });

  test("a replaced file is reported; then the new file is watched, not the old one", async () => {
    using changes = opened();
    const path = newFile();
    const fresh = newFile();
    // Another name keeps the old file alive.
    const old = `${path}.old`;
    linkSync(path, old);
    expect(changes.path(path)).toBe(true);
    await expectTold(changes, () => renameSync(fresh, path));
    expect(changes.path(path)).toBe(true);
    expect(await changes.next(50)).toBe("quiet");
    appendFileSync(old, "x");
    expect(await changes.next(50)).toBe("quiet");
    await expectTold(changes, () => appendFileSync(path, "x"));
  });

  test("of two paths of one file, one can vanish and the other is still watched", async () => {
    using changes = opened();
    const path = newFile();
    const link = `${path}.link`;
    linkSync(path, link);
    expect([changes.path(path), changes.path(link)]).toEqual([true, true]);
    await expectTold(changes, () => rmSync(link));
    expect([changes.path(path), changes.path(link)]).toEqual([true, false]);
    await expectTold(changes, () => appendFileSync(path, "x"));
  });

  test("writes in a folder count only for watched names; new and removed entries always count", async () => {
    using changes = opened();
    const sub = mkdtempSync(join(folder, "sub-"));
    const [mine, other] = [join(sub, "mine"), join(sub, "other")];
    for (const path of [mine, other]) writeFileSync(path, "");
    expect(changes.path(sub, (name) => name === "mine")).toBe(true);
    appendFileSync(other, "x");
    expect(await changes.next(50)).toBe("quiet");
    await expectTold(changes, () => appendFileSync(mine, "x"));
    await expectTold(changes, () => rmSync(other));
    await expectTold(changes, () => writeFileSync(other, "x"));
  });

  test("changes for an earlier watch are not reported", async () => {
    const path = newFile();
    {
      using before = opened();
      expect(before.path(path)).toBe(true);
      appendFileSync(path, "x");
    }
    using changes = opened();
    appendFileSync(path, "x");
    expect(await changes.next(50)).toBe("quiet");
  });

  test("a missing path is reported as missing", async () => {
    using changes = opened();
    expect(changes.path(join(folder, "absent"))).toBe(false);
    expect(changes.path(join(newFile(), "below-a-file"))).toBe(false);
    expect(await changes.next(50)).toBe("quiet");
  });

  test("an overflow of the kernel's queue counts as a change", async () => {
    using changes = opened();
    const [a, b] = [newFile(), newFile()];
    expect([changes.path(a), changes.path(b)]).toEqual([true, true]);
    // Alternating: the kernel merges only neighbours. 16384 events are its default.
    for (let line = 0; line < 5_000; line += 1) for (const path of [a, b]) appendFileSync(path, "x");
    expect(await changes.next(LONG_MS)).toBe("changed");
    expect(await changes.next(50)).toBe("quiet");
  });
});

describe("the wait", () => {
  test("ends at its timeout, and timers and promises run meanwhile", async () => {
    using changes = opened();
    let ticks = 0;
    const timer = setInterval(() => {
      ticks += 1;
    }, 10);
    const started = performance.now();
    expect(await changes.next(600)).toBe("quiet");
    const tookMs = performance.now() - started;
    clearInterval(timer);
    expect(tookMs).toBeGreaterThanOrEqual(599);
    expect(tookMs).toBeLessThan(5_000);
    expect(ticks).toBeGreaterThanOrEqual(3);
  });

  test("ends when the watch is closed", async () => {
    using changes = opened();
    expect((await waitWhile(changes, changes.close)).answer).toBe("quiet");
    expect(await changes.next(LONG_MS)).toBe("quiet");
  });

  test("lets a signal handler run at once", async () => {
    const child = script(`
      process.on("SIGTERM", () => { console.log("handled"); process.exit(7); });
      setTimeout(() => console.log("ready"), 50);
      await openChangeWatch().next(60_000);`);
    expect(await firstLine(child)).toBe("ready");
    const exit = once(child, "exit");
    const sentAt = performance.now();
    child.kill("SIGTERM");
    expect(await exit).toEqual([7, null]);
    expect(performance.now() - sentAt).toBeLessThan(1_000);
  });

  test("lets the handler of an earlier signal run", async () => {
    const child = script(`
      let handledAt = null;
      process.on("SIGUSR1", () => { handledAt = performance.now(); });
      const changes = openChangeWatch();
      // It has slept long: its next rest would be as long again.
      const wait = changes.next(3_000);
      setTimeout(() => {
        const sentAt = performance.now();
        process.kill(process.pid, "SIGUSR1");
        setTimeout(() => console.log(handledAt - sentAt < 500), 10);
      }, 700);
      await wait;`);
    expect(await firstLine(child)).toBe("true");
    child.kill("SIGKILL");
  });

  test("two waits at once each get their own changes in time", async () => {
    using mine = opened();
    using theirs = opened();
    const [quiet, busy] = [mkdtempSync(join(folder, "quiet-")), mkdtempSync(join(folder, "busy-"))];
    expect([mine.path(quiet), theirs.path(busy)]).toEqual([true, true]);
    const other = mine.next(LONG_MS);
    spawn("sh", ["-c", `sleep 0.6; : >'${busy}/made'; sleep 0.6; : >'${quiet}/made'`]);
    const started = performance.now();
    expect(await theirs.next(LONG_MS)).toBe("changed");
    expect(performance.now() - started).toBeLessThan(3_000);
    expect(await other).toBe("changed");
    expect(performance.now() - started).toBeLessThan(5_000);
  });

  test("without a free descriptor, the caller is asked to read again", async () => {
    const text = `import { openChangeWatch } from ${module};
      import { openSync } from "node:fs";
      const changes = openChangeWatch();
      try { for (;;) openSync("/dev/null"); } catch (error) { console.log(error.code); }
      console.log(changes.process(process.ppid), await changes.next(60_000));`;
    const child = spawn("sh", ["-c", 'ulimit -n 64; exec "$0" -e "$1"', process.execPath, text], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let output = "";
    for await (const chunk of child.stdout) output += String(chunk);
    expect(output).toBe("EMFILE\ntrue changed\n");
  });
});

describe("without inotify", () => {
  test("the watchers of the runtime report creation, writes and removal", async () => {
    const sub = mkdtempSync(join(folder, "sub-"));
    const [mine, other] = [join(sub, "mine"), join(sub, "other")];
    for (const path of [mine, other]) writeFileSync(path, "");
    const watchers = openWatchers();
    try {
      const watch = (): string => watchers.watch(sub, (name) => name === "mine");
      expect([watch(), watch(), watchers.watch(join(sub, "absent"), () => true)]).toEqual([
        "watched",
        "watched",
        "absent",
      ]);
      appendFileSync(other, "x");
      expect(await watchers.rung(100)).toBe(false);
      appendFileSync(mine, "x");
      expect(await watchers.rung(LONG_MS)).toBe(true);
      while (await watchers.rung(50));
      rmSync(sub, { recursive: true });
      expect(await watchers.rung(LONG_MS)).toBe(true);
      expect(watch()).toBe("absent");
    } finally {
      watchers.close();
    }
  });
});

test("no descriptor is left open", async () => {
  // In a separate process: here, pipes of earlier children may still be closing.
  const child = script(`
    import { readdirSync } from "node:fs";
    const open = () => readdirSync("/proc/self/fd").length;
    const round = async () => {
      const changes = openChangeWatch();
      changes.process(process.ppid);
      changes.path(${JSON.stringify(folder)});
      await changes.next(1);
      const during = open();
      changes.close();
      changes.close();
      return during;
    };
    // The first round opens what the runtime keeps, and what we keep: one inotify for the next round.
    await round();
    const before = open();
    const during = await round();
    console.log(during - before, open() - before);`);
  expect(await firstLine(child)).toBe("1 0");
});
