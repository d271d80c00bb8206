// Steps that damage the surroundings of a session: its holder, wrapper and tools, the files of an earlier boot, the clock in a
// record, the disk, what agentctl keeps. Some ask while the fault lasts and mend it: the worker's own question comes after.
import {
  appendFileSync,
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { numbersOf } from "./adopted-agents.ts";
import { expectNow, lessCertain, noteSettings } from "./allowed-answers.ts";
import { writeDemoAnnouncement } from "./announcement.ts";
import { type FakeAgent, identify, isAlive, isSuspended, signal } from "./fake-agent.ts";
import { readingWords } from "./invariants.ts";
import {
  type HostProcess,
  holderOf,
  isDemoAgent,
  isHolder,
  processesOf,
  sendSignal,
  settle,
  toolsOf,
  wrapperOf,
} from "./launched-processes.ts";
import { absentAsNull, errorCode, pidNamespace, readProcStat, until } from "./proc.ts";
import type { Dice } from "./random.ts";
import { recordLine } from "./read-record.ts";
import { askNow, judgeCost, tell } from "./run-agentctl.ts";
import type { Action } from "./schedule.ts";
import type { Session, SimulatedHost } from "./simulated-host.ts";
import { findingsOf, judge } from "./step-findings.ts";
import { launched } from "./steps-acting.ts";

export const faultSteps: Record<string, Action> = {
  "holder-hurt": {
    weight: 2,
    targets: withLaunched((host, fake) => holderOf(host, fake) !== null),
    run: async (host, target, dice) =>
      hurt(
        host,
        pick(host, target, dice, (fake) => holderOf(host, fake)),
        dice,
      ),
  },
  "wrapper-hurt": {
    weight: 2,
    targets: withLaunched((host, fake) => wrapperOf(host, fake) !== null),
    run: async (host, target, dice) =>
      hurt(
        host,
        pick(host, target, dice, (fake) => wrapperOf(host, fake)),
        dice,
      ),
  },
  "tool-hurt": {
    weight: 2,
    targets: withLaunched((host, fake) => !isSuspended(fake) && childOf(host, fake) !== null),
    run: hurtTool,
  },

  "earlier-boot": {
    weight: 2,
    targets: (host) => (host.liveBroken ? [] : numbersOf(host, isDemo)),
    run: earlierBoot,
  },
  "shift-times": {
    weight: 2,
    targets: (host) => numbersOf(host, (session) => mayShift(host, session)),
    run: shiftTimes,
  },
  "old-mtime": {
    weight: 1,
    targets: (host) => numbersOf(host, (session) => isRecordFile(host, session)),
    async run(host, target) {
      const beforeBoot = new Date(Date.now() - 6 * 24 * 3600 * 1000);
      utimesSync(host.recordPath(host.session(target)), beforeBoot, beforeBoot);
    },
  },

  "huge-record": {
    weight: 0.3,
    targets: (host) => numbersOf(host, (session) => isRecordFile(host, session) && isOfLines(session)),
    run: askHuge,
  },
  "odd-announcement": { weight: 1, targets: (host) => (host.liveBroken ? [] : [0]), run: askOddAnnouncement },
  "many-sessions": { weight: 0.05, targets: (host) => (isWhole(host) ? [0] : []), run: askMany },
  churn: { weight: 0.7, targets: () => [0], run: askInChurn },
  "three-at-once": {
    weight: 1,
    targets: () => [0],
    async run(host) {
      const expected = expectNow(host);
      await Promise.all([1, 2, 3].map(() => askNow(host, expected)));
    },
  },
  "disk-full": { weight: 0.7, targets: () => [0], run: askOnFullDisk },

  "spoil-notes": { weight: 1.5, targets: () => [0], run: spoilNotes },
  "spoil-settings": {
    weight: 1,
    targets: () => [0],
    async run(host, _target, dice) {
      const path = settingsPath(host);
      mkdirSync(dirname(path), { recursive: true });
      rmSync(path, { recursive: true, force: true });
      const text = dice.chance(0.2)
        ? null
        : dice.pick(['{"homes":', "null", '{"homes":[]}', '{"homes":{"demo":[7]}}', "\0\0\0", ""]);
      if (text === null) mkdirSync(path);
      else writeFileSync(path, text);
      noteSettings(host, text?.endsWith("}") === true ? "partly-invalid" : "unreadable");
    },
  },
  "mend-settings": {
    weight: 1,
    targets: (host) => (absentAsNull(() => statSync(settingsPath(host))) === null ? [] : [0]),
    async run(host) {
      rmSync(settingsPath(host), { recursive: true });
      noteSettings(host, "readable");
    },
  },
};

/** Holders ignore SIGTERM; wrappers die of it. Whatever comes of it, the agent lives on. */
async function hurt(host: SimulatedHost, target: HostProcess, dice: Dice): Promise<void> {
  // Halted already, it hears nothing else.
  const name = target.state === "T" ? "SIGKILL" : dice.pick(["SIGKILL", "SIGTERM", "SIGSTOP"] as const);
  sendSignal(target, name);
  if (name === "SIGKILL") await until("a death", () => !isAlive(target));
  if (name === "SIGSTOP") await until("a halt", () => !isAlive(target) || readProcStat(target.pid)?.state === "T");
  // A wrapper takes SIGTERM at once, a holder never.
  if (name === "SIGTERM" && !isHolder(target)) await until("a death", () => !isAlive(target));
  await settle(host);
}

/** A tool that is killed ends its call, and with it, here, the agent's work. */
async function hurtTool(host: SimulatedHost, target: number, dice: Dice): Promise<void> {
  const session = host.session(target);
  const name = dice.pick(["SIGKILL", "SIGTERM", "SIGSTOP"] as const);
  const fake = dice.pick(launched(host, session).filter((each) => !isSuspended(each) && childOf(host, each) !== null));
  const tool = childOf(host, fake);
  if (tool === null) throw new Error("harness: a tool is gone");
  const isHalted = tool.state === "T";
  sendSignal(tool, name);
  if (name === "SIGSTOP") await until("a halted tool", () => readProcStat(tool.pid)?.state === "T");
  // Halted before, it takes SIGTERM only when it goes on.
  else if (name === "SIGKILL" || !isHalted) await until("an agent without its tool to leave", () => !isAlive(fake));
  await settle(host);
}

function childOf(host: SimulatedHost, fake: FakeAgent): HostProcess | null {
  return toolsOf(host, fake.session).find(({ parent }) => parent === fake.pid) ?? null;
}

/** An announcement from before the last boot: another process may have its pid, and even its start. */
async function earlierBoot(host: SimulatedHost, target: number, dice: Dice): Promise<void> {
  const session = host.session(target);
  const own = identify(process.pid);
  const pid = dice.chance(0.5) ? own.pid : 3_000_000 + dice.below(9999);
  const announcement = { pid, start: own.start, boot: dice.uuid(), namespace: pidNamespace, session: session.id };
  writeDemoAnnouncement(host.liveFolder, announcement, session.cwd);
  const beforeBoot = new Date(Date.now() - 6 * 24 * 3600 * 1000);
  utimesSync(join(host.liveFolder, `${pid}.json`), beforeBoot, beforeBoot);
}

// A silent process is linked to records younger than itself: there, times are the only truth, and must stay true.
function mayShift(host: SimulatedHost, session: Session): boolean {
  const isFile = isRecordFile(host, session) && isOfLines(session);
  return isFile && host.liveWriters(session).every((fake) => fake.argvSession === session.id);
}

async function shiftTimes(host: SimulatedHost, target: number, dice: Dice): Promise<void> {
  const path = host.recordPath(host.session(target));
  const hours = dice.pick([-50, -3, 3, 50]);
  const shifted = (time: string) => new Date(Date.parse(time) + hours * 3_600_000).toISOString();
  const text = readFileSync(path, "latin1");
  writeFileSync(
    path,
    text.replace(timeInLine, (_all, key, time) => `"${key}":"${shifted(time)}"`),
    "latin1",
  );
}

const timeInLine = /"(at|timestamp)":"(\d{4}-[^"]{20})"/g;

const sparseBytes = 300 * 1024 * 1024;
const lineBytes = 50 * 1024 * 1024;

/** A record that is too large to be read: the answer may say less, but nothing false, within the limits of time and memory. */
async function askHuge(host: SimulatedHost, target: number, dice: Dice): Promise<void> {
  const session = host.session(target);
  const path = host.recordPath(session);
  const bytes = readFileSync(path);
  const { atime, mtime } = statSync(path);
  const expected = lessCertain(expectNow(host), session);
  try {
    if (!isDemo(session) || dice.chance(0.5)) truncateSync(path, bytes.length + sparseBytes);
    else {
      const fd = openSync(path, "a");
      writeSync(fd, recordLine("reply", { text: "x".repeat(lineBytes), tokens: {} }));
      closeSync(fd);
    }
    await askNow(host, expected);
    const words = dice.pick(readingWords(session.id));
    await judgeCost(host, await tell(host, words), words);
  } finally {
    writeFileSync(path, bytes);
    utimesSync(path, atime, mtime);
  }
}

/** A pipe, a folder or a link to itself in the place of an announcement. It must neither hang nor mislead. */
async function askOddAnnouncement(host: SimulatedHost, _target: number, dice: Dice): Promise<void> {
  const path = join(host.liveFolder, `${3_900_000 + dice.below(9999)}.json`);
  const expected = { ...expectNow(host), complete: null };
  try {
    if (dice.chance(0.5)) await host.makeFifo(path);
    else mkdirSync(path);
    await askNow(host, expected);
  } finally {
    rmSync(path, { recursive: true, force: true });
  }
}

const many = 200;

async function askMany(host: SimulatedHost, _target: number, dice: Dice): Promise<void> {
  const sessions = Array.from({ length: many }, (_none, index) =>
    host.addSession(10_000 + index, dice.uuid(), dice.pick(host.places)),
  );
  const fakes: FakeAgent[] = [];
  for (const session of sessions) {
    const { id, cwd } = session;
    const header = recordLine("session", { version: 1, id, cwd, model: "demo-1", parent: null });
    appendFileSync(host.recordPath(session), `${header}${recordLine("prompt", { text: "one of many" })}`);
    const fake = await host.startFake(session, ["--session-id", id], { raised: "here" });
    await host.announce(fake);
    fakes.push(fake);
  }
  await askNow(host);
  for (const fake of fakes) {
    host.retract(fake);
    await signal(fake, "SIGKILL");
  }
  for (const session of sessions) {
    rmSync(host.recordPath(session));
    host.sessions.delete(session.number);
  }
}

/** Processes named like the agent come and go while agentctl reads: it may see some of them, and must not stumble. */
async function askInChurn(host: SimulatedHost): Promise<void> {
  const place = join(host.root, "churn");
  mkdirSync(place, { recursive: true });
  const expected = { ...expectNow(host), complete: null };
  const script = join(host.root, "bin", "demo-agent");
  const loop = ["/bin/sh", "-c", 'while :; do "$0" --no-announce </dev/null; done', script];
  const loops = [1, 2].map(() =>
    Bun.spawn(loop, { cwd: place, env: host.environment, stdin: "ignore", stdout: "ignore", stderr: "ignore" }),
  );
  try {
    for (let round = 0; round < 3; round++) await askNow(host, expected, {}, (text) => withoutPassers(host, text));
  } finally {
    for (const each of loops) each.kill("SIGKILL");
    await Promise.all(loops.map((each) => each.exited));
    await until("the end of the churn", () => !processesOf(host).some(({ cwd }) => cwd === place));
  }
}

function withoutPassers(host: SimulatedHost, text: string): string {
  const list = JSON.parse(text) as { sessions: { id: string | null; process: { pid: number } | null }[] };
  const known = new Set(host.fakes.map(({ pid }) => pid));
  const sessions = list.sessions.filter(({ id, process }) => id !== null || known.has(process?.pid ?? 0));
  return JSON.stringify({ ...list, sessions });
}

/** Home and cache on a file system without a free byte: every answer stays true, and nothing is begun. */
async function askOnFullDisk(host: SimulatedHost): Promise<void> {
  const place = join(host.root, "full");
  mkdirSync(place, { recursive: true });
  const mounted = await Bun.spawn(["mount", "-t", "tmpfs", "-o", "size=16k,mode=0700", "tmpfs", place], {
    stderr: "ignore",
  }).exited;
  if (mounted !== 0) {
    findingsOf(host).tally["faults skipped"]++;
    return;
  }
  try {
    fill(join(place, "filler"));
    const env = { AGENTCTL_HOME: join(place, "home"), XDG_CACHE_HOME: join(place, "cache") };
    await askNow(host, expectNow(host), { env });
    const before = processesOf(host).filter(isDemoAgent).length;
    const told = await tell(host, ["launch", "demo", "--share", "--cwd", host.root, "-p", "work:100000"], { env });
    judge(host, told.exit === 1 ? null : `launch on a full disk: exit ${told.exit}: ${told.stderr.trim()}`);
    judge(
      host,
      processesOf(host).filter(isDemoAgent).length === before ? null : "launch on a full disk has started an agent",
    );
  } finally {
    await Bun.spawn(["umount", "-l", place]).exited;
    rmSync(place, { recursive: true, force: true });
  }
}

function fill(path: string): void {
  const fd = openSync(path, "w");
  try {
    for (;;) writeSync(fd, Buffer.alloc(4096));
  } catch (error) {
    if (errorCode(error) !== "ENOSPC") throw error;
  } finally {
    closeSync(fd);
  }
}

/** Launch notes that are garbage, half written, of another schema, or no files; also of launches that never were. */
async function spoilNotes(host: SimulatedHost, _target: number, dice: Dice): Promise<void> {
  const folder = join(host.agentctlHome, "launches");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const names = [...readdirSync(folder), `${dice.uuid()}.json`, `${dice.uuid()}.exit`];
  for (const name of names.filter(() => dice.chance(0.7))) {
    const path = join(folder, name);
    const text = absentAsNull(() => (statSync(path).isFile() ? readFileSync(path, "utf8") : "")) ?? "";
    rmSync(path, { recursive: true, force: true });
    const manner = dice.pick(["garbage", "half", "schema", "folder", "fifo", "lie"] as const);
    if (manner === "folder") mkdirSync(path);
    else if (manner === "fifo") await host.makeFifo(path);
    else if (manner === "garbage") writeFileSync(path, dice.bytes(200));
    else if (manner === "half") writeFileSync(path, text.slice(0, text.length / 2));
    else if (manner === "schema") writeFileSync(path, '{"schema":99,"sessions":["x"]}');
    else writeFileSync(path, falseNote(host, dice));
  }
}

/** Whole, and of a launch that never was: it may name a session, and must not make one. */
function falseNote(host: SimulatedHost, dice: Dice): string {
  const session = dice.chance(0.5) ? dice.uuid() : ([...host.sessions.values()][0]?.id ?? null);
  const note = {
    schema: 1,
    id: dice.uuid(),
    agent: "demo",
    home: host.agentHome,
    session,
    name: "ghost",
    group: null,
  };
  return JSON.stringify({ ...note, labels: {}, at: new Date().toISOString(), permission: null, prompt: "boo" });
}

function settingsPath(host: SimulatedHost): string {
  return join(host.userHome, ".config", "agentctl", "config.json");
}

function isDemo({ format }: Session): boolean {
  return format.agent === "demo";
}

/** A document that names its process is written only by that process. */
function isOfLines({ format }: Session): boolean {
  return format.documents === undefined;
}

function isWhole(host: SimulatedHost): boolean {
  return !host.sessionsBroken && !host.liveBroken;
}

function isRecordFile(host: SimulatedHost, session: Session): boolean {
  return isWhole(host) && host.hasFile(session);
}

function withLaunched(fits: (host: SimulatedHost, fake: FakeAgent) => boolean): (host: SimulatedHost) => number[] {
  return (host) => numbersOf(host, (session) => launched(host, session).some((fake) => fits(host, fake)));
}

function pick(
  host: SimulatedHost,
  target: number,
  dice: Dice,
  find: (fake: FakeAgent) => HostProcess | null,
): HostProcess {
  return dice.pick(launched(host, host.session(target)).flatMap((fake) => find(fake) ?? []));
}
