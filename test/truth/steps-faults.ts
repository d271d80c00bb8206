// Steps that hurt what stands around a session: its holder, wrapper and tools, the files of an earlier boot, the clock in a
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
import { expectNow, lessCertain, noteSettings } from "./allowances.ts";
import { writeClaim } from "./announcement.ts";
import { numbersOf } from "./arrivals.ts";
import { holderOf, isDemoAgent, isHolder, type Kin, kinOf, sendSignal, settle, toolsOf, wrapperOf } from "./kin.ts";
import { readingWords } from "./laws.ts";
import { absentAsNull, errorCode, pidNamespace, readProcStat, until } from "./proc.ts";
import { askNow, judgeCost, tell } from "./product.ts";
import type { Dice } from "./random.ts";
import { recordLine } from "./record.ts";
import type { Action } from "./schedule.ts";
import { judge, sideOf } from "./side.ts";
import { launched } from "./steps-acting.ts";
import { identify, isAlive, isSuspended, signal, type Twin } from "./twin.ts";
import type { Session, World } from "./world.ts";

export const faultSteps: Record<string, Action> = {
  "holder-hurt": {
    weight: 2,
    targets: withLaunched((world, twin) => holderOf(world, twin) !== null),
    run: async (world, target, dice) =>
      hurt(
        world,
        pick(world, target, dice, (twin) => holderOf(world, twin)),
        dice,
      ),
  },
  "wrapper-hurt": {
    weight: 2,
    targets: withLaunched((world, twin) => wrapperOf(world, twin) !== null),
    run: async (world, target, dice) =>
      hurt(
        world,
        pick(world, target, dice, (twin) => wrapperOf(world, twin)),
        dice,
      ),
  },
  "tool-hurt": {
    weight: 2,
    targets: withLaunched((world, twin) => !isSuspended(twin) && childOf(world, twin) !== null),
    run: hurtTool,
  },

  "earlier-boot": {
    weight: 2,
    targets: (world) => (world.liveBroken ? [] : numbersOf(world, isDemo)),
    run: earlierBoot,
  },
  "shift-times": {
    weight: 2,
    targets: (world) => numbersOf(world, (session) => mayShift(world, session)),
    run: shiftTimes,
  },
  "old-mtime": {
    weight: 1,
    targets: (world) => numbersOf(world, (session) => isRecordFile(world, session)),
    async run(world, target) {
      const beforeBoot = new Date(Date.now() - 6 * 24 * 3600 * 1000);
      utimesSync(world.recordPath(world.session(target)), beforeBoot, beforeBoot);
    },
  },

  "huge-record": {
    weight: 0.3,
    targets: (world) => numbersOf(world, (session) => isRecordFile(world, session) && isOfLines(session)),
    run: askHuge,
  },
  "odd-announcement": { weight: 1, targets: (world) => (world.liveBroken ? [] : [0]), run: askOddAnnouncement },
  "many-sessions": { weight: 0.05, targets: (world) => (isWhole(world) ? [0] : []), run: askMany },
  churn: { weight: 0.7, targets: () => [0], run: askInChurn },
  "three-at-once": {
    weight: 1,
    targets: () => [0],
    async run(world) {
      const expected = expectNow(world);
      await Promise.all([1, 2, 3].map(() => askNow(world, expected)));
    },
  },
  "disk-full": { weight: 0.7, targets: () => [0], run: askOnFullDisk },

  "spoil-notes": { weight: 1.5, targets: () => [0], run: spoilNotes },
  "spoil-settings": {
    weight: 1,
    targets: () => [0],
    async run(world, _target, dice) {
      const path = settingsPath(world);
      mkdirSync(dirname(path), { recursive: true });
      rmSync(path, { recursive: true, force: true });
      if (dice.chance(0.2)) mkdirSync(path);
      else
        writeFileSync(path, dice.pick(['{"homes":', "null", '{"homes":[]}', '{"homes":{"demo":[7]}}', "\0\0\0", ""]));
      noteSettings(world, "spoiled");
    },
  },
  "mend-settings": {
    weight: 1,
    targets: (world) => (absentAsNull(() => statSync(settingsPath(world))) === null ? [] : [0]),
    async run(world) {
      rmSync(settingsPath(world), { recursive: true });
      noteSettings(world, "readable");
    },
  },
};

/** Holders ignore SIGTERM; wrappers die of it. Whatever comes of it, the agent lives on. */
async function hurt(world: World, kin: Kin, dice: Dice): Promise<void> {
  // Halted already, it hears nothing else.
  const name = kin.state === "T" ? "SIGKILL" : dice.pick(["SIGKILL", "SIGTERM", "SIGSTOP"] as const);
  sendSignal(kin, name);
  if (name === "SIGKILL") await until("a death", () => !isAlive(kin));
  if (name === "SIGSTOP") await until("a halt", () => !isAlive(kin) || readProcStat(kin.pid)?.state === "T");
  // A wrapper takes SIGTERM at once, a holder never.
  if (name === "SIGTERM" && !isHolder(kin)) await until("a death", () => !isAlive(kin));
  await settle(world);
}

/** A tool that is killed ends its call, and with it, here, the agent's work. */
async function hurtTool(world: World, target: number, dice: Dice): Promise<void> {
  const session = world.session(target);
  const name = dice.pick(["SIGKILL", "SIGTERM", "SIGSTOP"] as const);
  const twin = dice.pick(
    launched(world, session).filter((each) => !isSuspended(each) && childOf(world, each) !== null),
  );
  const tool = childOf(world, twin);
  if (tool === null) throw new Error("harness: a tool is gone");
  const isHalted = tool.state === "T";
  sendSignal(tool, name);
  if (name === "SIGSTOP") await until("a halted tool", () => readProcStat(tool.pid)?.state === "T");
  // Halted before, it takes SIGTERM only when it goes on.
  else if (name === "SIGKILL" || !isHalted) await until("an agent without its tool to leave", () => !isAlive(twin));
  await settle(world);
}

function childOf(world: World, twin: Twin): Kin | null {
  return toolsOf(world, twin.session).find(({ parent }) => parent === twin.pid) ?? null;
}

/** An announcement left by the machine's last run: its pid, and even its start, may be somebody's again. */
async function earlierBoot(world: World, target: number, dice: Dice): Promise<void> {
  const session = world.session(target);
  const own = identify(process.pid);
  const pid = dice.chance(0.5) ? own.pid : 3_000_000 + dice.below(9999);
  const claim = { pid, start: own.start, boot: dice.uuid(), namespace: pidNamespace, session: session.id };
  writeClaim(world.liveFolder, claim, session.cwd);
  const beforeBoot = new Date(Date.now() - 6 * 24 * 3600 * 1000);
  utimesSync(join(world.liveFolder, `${pid}.json`), beforeBoot, beforeBoot);
}

// A silent process is linked to records younger than itself: there, times are the only truth, and must stay true.
function mayShift(world: World, session: Session): boolean {
  const isFile = isRecordFile(world, session) && isOfLines(session);
  return isFile && world.liveWriters(session).every((twin) => twin.argvSession === session.id);
}

async function shiftTimes(world: World, target: number, dice: Dice): Promise<void> {
  const path = world.recordPath(world.session(target));
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

/** Far larger than anybody reads: less may be said of it, nothing false, and neither memory nor time may be lost. */
async function askHuge(world: World, target: number, dice: Dice): Promise<void> {
  const session = world.session(target);
  const path = world.recordPath(session);
  const bytes = readFileSync(path);
  const { atime, mtime } = statSync(path);
  const expected = lessCertain(expectNow(world), session);
  try {
    if (!isDemo(session) || dice.chance(0.5)) truncateSync(path, bytes.length + sparseBytes);
    else {
      const fd = openSync(path, "a");
      writeSync(fd, recordLine("reply", { text: "x".repeat(lineBytes), tokens: {} }));
      closeSync(fd);
    }
    await askNow(world, expected);
    const words = dice.pick(readingWords(session.id));
    await judgeCost(world, await tell(world, words), words);
  } finally {
    writeFileSync(path, bytes);
    utimesSync(path, atime, mtime);
  }
}

/** In place of an announcement of nobody: a pipe, a folder, a link to itself. It must neither hang nor mislead. */
async function askOddAnnouncement(world: World, _target: number, dice: Dice): Promise<void> {
  const path = join(world.liveFolder, `${3_900_000 + dice.below(9999)}.json`);
  const expected = { ...expectNow(world), complete: null };
  try {
    if (dice.chance(0.5)) await world.makeFifo(path);
    else mkdirSync(path);
    await askNow(world, expected);
  } finally {
    rmSync(path, { recursive: true, force: true });
  }
}

const many = 200;

async function askMany(world: World, _target: number, dice: Dice): Promise<void> {
  const sessions = Array.from({ length: many }, (_none, index) =>
    world.addSession(10_000 + index, dice.uuid(), dice.pick(world.places)),
  );
  const twins: Twin[] = [];
  for (const session of sessions) {
    const { id, cwd } = session;
    const header = recordLine("session", { version: 1, id, cwd, model: "demo-1", parent: null });
    appendFileSync(world.recordPath(session), `${header}${recordLine("prompt", { text: "one of many" })}`);
    const twin = await world.startTwin(session, ["--session-id", id], { raised: "here" });
    await world.announce(twin);
    twins.push(twin);
  }
  await askNow(world);
  for (const twin of twins) {
    world.retract(twin);
    await signal(twin, "SIGKILL");
  }
  for (const session of sessions) {
    rmSync(world.recordPath(session));
    world.sessions.delete(session.number);
  }
}

/** Processes named like the agent come and go while agentctl reads: it may see some of them, and must not stumble. */
async function askInChurn(world: World): Promise<void> {
  const place = join(world.root, "churn");
  mkdirSync(place, { recursive: true });
  const expected = { ...expectNow(world), complete: null };
  const script = join(world.root, "bin", "demo-agent");
  const loop = ["/bin/sh", "-c", 'while :; do "$0" --no-announce </dev/null; done', script];
  const loops = [1, 2].map(() =>
    Bun.spawn(loop, { cwd: place, env: world.environment, stdin: "ignore", stdout: "ignore", stderr: "ignore" }),
  );
  try {
    for (let round = 0; round < 3; round++) await askNow(world, expected, {}, (text) => withoutPassers(world, text));
  } finally {
    for (const each of loops) each.kill("SIGKILL");
    await Promise.all(loops.map((each) => each.exited));
    await until("the end of the churn", () => !kinOf(world).some(({ cwd }) => cwd === place));
  }
}

function withoutPassers(world: World, text: string): string {
  const list = JSON.parse(text) as { sessions: { id: string | null; process: { pid: number } | null }[] };
  const known = new Set(world.twins.map(({ pid }) => pid));
  const sessions = list.sessions.filter(({ id, process }) => id !== null || known.has(process?.pid ?? 0));
  return JSON.stringify({ ...list, sessions });
}

/** Home and cache on a file system without a free byte: every answer stays true, and nothing is begun. */
async function askOnFullDisk(world: World): Promise<void> {
  const place = join(world.root, "full");
  mkdirSync(place, { recursive: true });
  const mounted = await Bun.spawn(["mount", "-t", "tmpfs", "-o", "size=16k,mode=0700", "tmpfs", place], {
    stderr: "ignore",
  }).exited;
  if (mounted !== 0) {
    sideOf(world).tally["faults skipped"]++;
    return;
  }
  try {
    fill(join(place, "filler"));
    const env = { AGENTCTL_HOME: join(place, "home"), XDG_CACHE_HOME: join(place, "cache") };
    await askNow(world, expectNow(world), { env });
    const before = kinOf(world).filter(isDemoAgent).length;
    const told = await tell(world, ["launch", "demo", "--share", "--cwd", world.root, "-p", "work:100000"], { env });
    judge(world, told.exit === 1 ? null : `launch on a full disk: exit ${told.exit}: ${told.stderr.trim()}`);
    judge(
      world,
      kinOf(world).filter(isDemoAgent).length === before ? null : "launch on a full disk has started an agent",
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
async function spoilNotes(world: World, _target: number, dice: Dice): Promise<void> {
  const folder = join(world.agentctlHome, "launches");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const names = [...readdirSync(folder), `${dice.uuid()}.json`, `${dice.uuid()}.exit`];
  for (const name of names.filter(() => dice.chance(0.7))) {
    const path = join(folder, name);
    const text = absentAsNull(() => (statSync(path).isFile() ? readFileSync(path, "utf8") : "")) ?? "";
    rmSync(path, { recursive: true, force: true });
    const manner = dice.pick(["garbage", "half", "schema", "folder", "fifo", "lie"] as const);
    if (manner === "folder") mkdirSync(path);
    else if (manner === "fifo") await world.makeFifo(path);
    else if (manner === "garbage") writeFileSync(path, dice.bytes(200));
    else if (manner === "half") writeFileSync(path, text.slice(0, text.length / 2));
    else if (manner === "schema") writeFileSync(path, '{"schema":99,"sessions":["x"]}');
    else writeFileSync(path, falseNote(world, dice));
  }
}

/** Whole, and of a launch that never was: it may name a session, and must not make one. */
function falseNote(world: World, dice: Dice): string {
  const session = dice.chance(0.5) ? dice.uuid() : ([...world.sessions.values()][0]?.id ?? null);
  const note = {
    schema: 1,
    id: dice.uuid(),
    agent: "demo",
    home: world.agentHome,
    session,
    name: "ghost",
    group: null,
  };
  return JSON.stringify({ ...note, labels: {}, at: new Date().toISOString(), permission: null, prompt: "boo" });
}

function settingsPath(world: World): string {
  return join(world.userHome, ".config", "agentctl", "config.json");
}

function isDemo({ format }: Session): boolean {
  return format.agent === "demo";
}

/** A document that says who has it is not for others to write. */
function isOfLines({ format }: Session): boolean {
  return format.documents === undefined;
}

function isWhole(world: World): boolean {
  return !world.sessionsBroken && !world.liveBroken;
}

function isRecordFile(world: World, session: Session): boolean {
  return isWhole(world) && world.hasFile(session);
}

function withLaunched(fits: (world: World, twin: Twin) => boolean): (world: World) => number[] {
  return (world) => numbersOf(world, (session) => launched(world, session).some((twin) => fits(world, twin)));
}

function pick(world: World, target: number, dice: Dice, find: (twin: Twin) => Kin | null): Kin {
  return dice.pick(launched(world, world.session(target)).flatMap((twin) => find(twin) ?? []));
}
