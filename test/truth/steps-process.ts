// Steps that start, stop and disturb processes.
import { writeFileSync } from "node:fs";
import { noteTag } from "./allowances.ts";
import { aroundStartMs } from "./directory.ts";
import type { Format, Manner } from "./format.ts";
import { changeMemory, readMemory } from "./gateway.ts";
import { errorCode, ignoresTerm, readProcStat, until } from "./proc.ts";
import type { Dice } from "./random.ts";
import type { Action } from "./schedule.ts";
import { appendLine, beginRecord, writeHeldBack } from "./steps-record.ts";
import {
  giveChild,
  isAlive,
  isSuspended,
  leave,
  makeDeaf,
  signal,
  suspend,
  type Twin,
  takesOrders,
  wake,
} from "./twin.ts";
import type { Session, World } from "./world.ts";

const mostSessions = 6;

export const processSteps: Record<string, Action> = {
  start: {
    weight: 9,
    targets: (world) => (world.sessions.size < mostSessions ? [nextNumber(world)] : []),
    run: start,
  },
  "start-hub": {
    weight: 6,
    targets: (world) => (hublessIn(world).length > 0 ? [0] : []),
    async run(world, _target, dice) {
      await world.startHub(dice.pick(hublessIn(world)), dice.pick(world.places));
    },
  },
  nest: {
    weight: 2,
    targets: sessionsWith((_world, twin) => mayNest(twin)),
    async run(world, target, dice) {
      const parent = pickTwin(world, target, dice, mayNest);
      const { format } = parent;
      const session = world.addSession(sideNumber(world, dice), format.newId(dice), parent.cwd, format);
      const twin = await world.startNested(parent, session);
      if (dice.chance(0.6) && world.canAnnounce(twin)) await world.announce(twin);
      if (dice.chance(0.7)) writeBeginning(world, session, dice);
    },
  },
  resume: {
    weight: 5,
    // What only an older version kept is not found by the newer one.
    targets: (world) => numbers(world, ({ scratch }) => scratch["old"] !== true),
    async run(world, target, dice) {
      const session = world.session(target);
      leaveNothingHeldBack(world, session);
      const host = hostOf(world, session.format);
      if (host !== null && (host.memory !== null || dice.chance(0.3))) {
        host.hosted?.add(session.id);
        if (dice.chance(0.7)) appendLine(world, session, "prompt", { text: "go on" });
        return;
      }
      const twin = await begin(world, session, "resume", dice);
      const speaks = dice.chance(0.8);
      if (speaks && world.canAnnounce(twin)) await world.announce(twin);
      else if (speaks) await world.announceInVain(twin);
      if (dice.chance(0.4) && world.mayWrite(twin)) appendLine(world, session, "prompt", { text: "go on" });
    },
  },
  clear: {
    // A person types /clear, or /new: the same process goes on under a new id, and says so.
    weight: 1,
    targets: sessionsWith(isAnnouncedAwake),
    async run(world, target, dice) {
      const twin = pickTwin(world, target, dice, (each) => isAnnouncedAwake(world, each));
      const { format } = twin;
      leaveNothingHeldBack(world, world.session(target));
      const session = world.addSession(sideNumber(world, dice), format.newId(dice), twin.cwd, format);
      if (twin.word.status !== null) twin.word = { status: "idle", waitingFor: null };
      await world.goOn(twin, session);
      if (dice.chance(0.7)) writeBeginning(world, session, dice);
    },
  },
  exit: {
    weight: 3,
    targets: sessionsWith((_world, twin) => !isSuspended(twin)),
    async run(world, target, dice) {
      const twin = pickTwin(world, target, dice, (each) => !isSuspended(each));
      world.retract(twin);
      await leave(twin);
    },
  },
  kill: {
    // Under a careless parent or another twin this leaves a zombie.
    weight: 6,
    targets: sessionsWith(() => true),
    async run(world, target, dice) {
      const twin = pickTwin(world, target, dice, () => true);
      await signal(twin, "SIGKILL");
      if (twin.raised === "careless" && readProcStat(twin.pid)?.state !== "Z") {
        throw new Error("harness: a twin killed under a careless parent is no zombie");
      }
    },
  },
  term: {
    weight: 2,
    targets: sessionsWith((_world, twin) => !isSuspended(twin)),
    async run(world, target, dice) {
      const twin = pickTwin(world, target, dice, (each) => !isSuspended(each));
      const { runs, manner } = twin.memory === null ? { runs: [], manner: null } : readMemory(twin.memory.path);
      // What works without a gateway lets nothing end first.
      const isAtWork = runs.length > 0 && manner !== "local";
      if (isAtWork) changeMemory(twin, () => ({ manner: "draining" }));
      if (isAtWork || ignoresTerm(twin.pid)) {
        process.kill(twin.pid, "SIGTERM");
        return;
      }
      if (twin.format.tidiesOnTerm || twin.hosted !== null) world.retract(twin);
      await signal(twin, "SIGTERM");
    },
  },
  suspend: {
    weight: 3,
    targets: sessionsWith((_world, twin) => !isSuspended(twin)),
    run: (world, target, dice) => suspend(pickTwin(world, target, dice, (twin) => !isSuspended(twin))),
  },
  wake: {
    weight: 4,
    targets: sessionsWith((_world, twin) => isSuspended(twin)),
    run: (world, target, dice) => wake(pickTwin(world, target, dice, isSuspended)),
  },
  child: {
    weight: 1,
    targets: sessionsWith((_world, twin) => takesOrders(twin)),
    async run(world, target, dice) {
      const twin = pickTwin(world, target, dice, takesOrders);
      await giveChild(twin);
      world.noteChildren(twin);
    },
  },
  deaf: {
    weight: 1,
    targets: sessionsWith((_world, twin) => takesOrders(twin)),
    run: (world, target, dice) => makeDeaf(pickTwin(world, target, dice, takesOrders)),
  },
  "wrapper-kill": {
    // What it started goes on.
    weight: 3,
    targets: sessionsWith((_world, twin) => twin.wrapper !== null && isAlive(twin.wrapper)),
    async run(world, target, dice) {
      const { wrapper } = pickTwin(world, target, dice, (twin) => twin.wrapper !== null && isAlive(twin.wrapper));
      if (wrapper === null) return;
      process.kill(wrapper.pid, "SIGKILL");
      await until("the death of a wrapper", () => !isAlive(wrapper));
    },
  },
  "reuse-pid": {
    weight: 3,
    targets: sessionsWith((_world, twin) => twin.raised === "here"),
    run: reusePid,
  },
};

async function start(world: World, number: number, dice: Dice): Promise<void> {
  const format = dice.pick(world.cast);
  const session = world.addSession(number, format.newId(dice), dice.pick(world.places), format);
  const host = hostOf(world, format);
  if (host !== null && (host.memory !== null || dice.chance(0.5))) {
    host.hosted?.add(session.id);
    writeBeginning(world, session, dice);
    return;
  }
  const manner = dice.pick(["announced", "announced", "announced", "argv", "nameless"] as const);
  const twin = await begin(world, session, manner, dice);
  if (speaks(manner, format) && world.canAnnounce(twin)) await world.announce(twin);
  // Else the record comes late, or never.
  if (dice.chance(0.85)) writeBeginning(world, session, dice);
}

/** A gateway has every session; a hub, those that are begun or opened in it. */
function hostOf(world: World, format: Format): Twin | null {
  const isHost = (twin: Twin) => twin.hosted !== null && (twin.memory === null ? takesOrders(twin) : isAlive(twin));
  return world.twins.find((twin) => twin.format === format && isHost(twin)) ?? null;
}

function hublessIn(world: World): Format[] {
  const isThere = (format: Format) =>
    world.twins.some((twin) => twin.format === format && twin.hosted && isAlive(twin));
  return world.cast.filter((format) => format.hub !== undefined && !isThere(format));
}

/** What a hub's tools start would be a hub, too. */
const mayNest = (twin: Twin): boolean => takesOrders(twin) && twin.hosted === null;

/** Who cannot be given a new session in its arguments announces it. */
function speaks(manner: Manner, { lock }: Format): boolean {
  return manner === "announced" || (manner === "argv" && lock?.isExclusive === true);
}

function writeBeginning(world: World, session: Session, dice: Dice): void {
  if (world.actor(session) === null) return;
  beginRecord(world, session);
  const mode = dice.pick(["default", "bypass", "plan"]);
  if (dice.chance(0.85)) appendLine(world, session, "prompt", { text: "do it", mode });
  const next = session.turnOpen ? dice.pick(["nothing", "tool", "end"]) : "nothing";
  if (next === "tool") appendLine(world, session, "tool", { name: "shell", input: "ls" });
  if (next === "end") appendLine(world, session, "end", { outcome: "completed", text: "done" });
}

/** Lines that a dead process had not written are lost once another one goes on; a live one writes them first. */
function leaveNothingHeldBack(world: World, session: Session): void {
  if (world.liveWriters(session).length > 0) writeHeldBack(world, session);
  session.heldBack = null;
}

async function reusePid(world: World, target: number, dice: Dice): Promise<void> {
  const victim = pickTwin(world, target, dice, (twin) => twin.raised === "here");
  await signal(victim, "SIGKILL");
  await until("the pid to be free", () => readProcStat(victim.pid) === null);
  // Two identities within one clock tick (10 ms) cannot be told apart: a documented limit.
  await Bun.sleep(victim.format.documents === undefined ? 30 : 2 * aroundStartMs);
  world.pidReuses++;
  if (!(await occupy(world, victim, target, dice))) world.pidReusesSkipped++;
}

async function occupy(world: World, victim: Twin, target: number, dice: Dice): Promise<boolean> {
  const setNextPid = () => writeFileSync("/proc/sys/kernel/ns_last_pid", String(victim.pid - 1));
  try {
    const manner: Manner | "stranger" = dice.pick(["stranger", "argv", "announced", "nameless", "resume"] as const);
    if (manner === "stranger") {
      return await world.startStrangerAt(victim.pid, ["sleep", "1000000"], victim.cwd, setNextPid);
    }
    const session = manner === "resume" ? world.session(target) : newcomer(world, victim, dice);
    leaveNothingHeldBack(world, session);
    const argv = session.format.argv(manner, session.id, dice);
    const twin = await world.startTwinAt(victim.pid, session, argv, setNextPid);
    if (twin === null) return false;
    if (speaks(manner, session.format) && world.canAnnounce(twin)) await world.announce(twin);
    if (manner !== "resume" && dice.chance(0.6)) writeBeginning(world, session, dice);
    return true;
  } catch (error) {
    if (["EACCES", "EPERM", "ENOENT", "EROFS"].includes(errorCode(error))) return false;
    throw error;
  }
}

/** Mostly of the same agent, where the old number is the worst trap. */
function newcomer(world: World, victim: Twin, dice: Dice): Session {
  const others = world.cast.filter((each) => each.gateway === undefined || hostOf(world, each) === null);
  const format = dice.chance(0.7) || others.length === 0 ? victim.format : dice.pick(others);
  return world.addSession(sideNumber(world, dice), format.newId(dice), dice.pick(world.places), format);
}

/** By hand or, where an agent wears a guise, as agentctl starts it; with or without what else starts it. */
async function begin(world: World, session: Session, manner: Manner, dice: Dice): Promise<Twin> {
  const { format, id } = session;
  const argv = format.argv(manner, id, dice);
  if (format.gateway !== undefined) return await world.startTwin(session, argv, { raised: "here" });
  const raised = dice.chance(0.3) ? "careless" : "here";
  if (typeof format.program === "string") return await world.startTwin(session, argv, { raised });
  const wrapped = dice.chance(0.6);
  const mayTag = format.choosesId !== false || manner === "resume";
  if (raised === "careless" || !mayTag || dice.chance(0.7))
    return await world.startTwin(session, argv, { raised, wrapped });
  const twin = await world.startTwin(session, argv, { raised, wrapped, tag: "true" });
  twin.argvSession = id;
  noteTag(twin);
  return twin;
}

/** For a session that comes out of another step than start: high, so that a shortened list keeps its other numbers. */
function sideNumber(world: World, dice: Dice): number {
  const number = 100 + dice.below(900);
  return world.sessions.has(number) ? sideNumber(world, dice) : number;
}

function nextNumber(world: World): number {
  return Math.max(0, ...[...world.sessions.keys()].filter((number) => number < 100)) + 1;
}

function numbers(world: World, fits: (session: Session) => boolean): number[] {
  return [...world.sessions.values()].filter(fits).map((session) => session.number);
}

function sessionsWith(fits: (world: World, twin: Twin) => boolean): (world: World) => number[] {
  return (world) => numbers(world, (session) => world.liveWriters(session).some((twin) => fits(world, twin)));
}

function pickTwin(world: World, target: number, dice: Dice, fits: (twin: Twin) => boolean): Twin {
  return dice.pick(world.liveWriters(world.session(target)).filter(fits));
}

function isAnnouncedAwake(world: World, twin: Twin): boolean {
  if (!isAlive(twin) || isSuspended(twin) || !world.isAnnounced(twin)) return false;
  if (twin.format.documents?.mayClear(twin) === false) return false;
  return twin.also === null && (twin.format.lock === null || takesOrders(twin));
}
