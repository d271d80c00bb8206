// Steps that start, stop and disturb processes.
import { writeFileSync } from "node:fs";
import { noteTag } from "./allowed-answers.ts";
import {
  type FakeAgent,
  giveChild,
  isAlive,
  isSuspended,
  leave,
  makeDeaf,
  signal,
  suspend,
  takesOrders,
  wake,
} from "./fake-agent.ts";
import type { Format, Manner } from "./format.ts";
import { changeMemory, readMemory } from "./gateway.ts";
import { aroundStartMs } from "./oracle-directory.ts";
import { errorCode, ignoresTerm, readProcStat, until } from "./proc.ts";
import type { Dice } from "./random.ts";
import type { Action } from "./schedule.ts";
import type { Session, SimulatedHost } from "./simulated-host.ts";
import { appendLine, beginRecord, writeHeldBack } from "./steps-record.ts";

const mostSessions = 6;

export const processSteps: Record<string, Action> = {
  start: {
    weight: 9,
    targets: (host) => (host.sessions.size < mostSessions ? [nextNumber(host)] : []),
    run: start,
  },
  "start-hub": {
    weight: 6,
    targets: (host) => (hublessIn(host).length > 0 ? [0] : []),
    async run(host, _target, dice) {
      await host.startHub(dice.pick(hublessIn(host)), dice.pick(host.places));
    },
  },
  nest: {
    weight: 2,
    targets: sessionsWith((_host, fake) => mayNest(fake)),
    async run(host, target, dice) {
      const parent = pickFake(host, target, dice, mayNest);
      const { format } = parent;
      const session = host.addSession(sideNumber(host, dice), format.newId(dice), parent.cwd, format);
      const fake = await host.startNested(parent, session);
      if (dice.chance(0.6) && host.canAnnounce(fake)) await host.announce(fake);
      if (dice.chance(0.7)) writeBeginning(host, session, dice);
    },
  },
  resume: {
    weight: 5,
    // What only an older version kept is not found by the newer one.
    targets: (host) => numbers(host, ({ scratch }) => scratch["old"] !== true),
    async run(host, target, dice) {
      const session = host.session(target);
      leaveNothingHeldBack(host, session);
      const server = serverOf(host, session.format);
      if (server !== null && (server.memory !== null || dice.chance(0.3))) {
        server.served?.add(session.id);
        if (dice.chance(0.7)) appendLine(host, session, "prompt", { text: "go on" });
        return;
      }
      const fake = await begin(host, session, "resume", dice);
      const speaks = dice.chance(0.8);
      if (speaks && host.canAnnounce(fake)) await host.announce(fake);
      else if (speaks) await host.announceInVain(fake);
      if (dice.chance(0.4) && host.mayWrite(fake)) appendLine(host, session, "prompt", { text: "go on" });
    },
  },
  clear: {
    // A person types /clear, or /new: the same process goes on under a new id, and says so.
    weight: 1,
    targets: sessionsWith(isAnnouncedAwake),
    async run(host, target, dice) {
      const fake = pickFake(host, target, dice, (each) => isAnnouncedAwake(host, each));
      const { format } = fake;
      leaveNothingHeldBack(host, host.session(target));
      const session = host.addSession(sideNumber(host, dice), format.newId(dice), fake.cwd, format);
      if (fake.word.status !== null) fake.word = { status: "idle", waitingFor: null };
      await host.goOn(fake, session);
      if (dice.chance(0.7)) writeBeginning(host, session, dice);
    },
  },
  exit: {
    weight: 3,
    targets: sessionsWith((_host, fake) => !isSuspended(fake)),
    async run(host, target, dice) {
      const fake = pickFake(host, target, dice, (each) => !isSuspended(each));
      host.retract(fake);
      await leave(fake);
    },
  },
  kill: {
    // Under a careless parent or another fake agent this leaves a zombie.
    weight: 6,
    targets: sessionsWith(() => true),
    async run(host, target, dice) {
      const fake = pickFake(host, target, dice, () => true);
      await signal(fake, "SIGKILL");
      if (fake.raised === "careless" && readProcStat(fake.pid)?.state !== "Z") {
        throw new Error("harness: a fake agent killed under a careless parent is no zombie");
      }
    },
  },
  term: {
    weight: 2,
    targets: sessionsWith((_host, fake) => !isSuspended(fake)),
    async run(host, target, dice) {
      const fake = pickFake(host, target, dice, (each) => !isSuspended(each));
      const { runs, manner } = fake.memory === null ? { runs: [], manner: null } : readMemory(fake.memory.path);
      // What works without a gateway lets nothing end first.
      const isAtWork = runs.length > 0 && manner !== "local";
      if (isAtWork) changeMemory(fake, () => ({ manner: "draining" }));
      if (isAtWork || ignoresTerm(fake.pid)) {
        process.kill(fake.pid, "SIGTERM");
        return;
      }
      if (fake.format.tidiesOnTerm || fake.served !== null) host.retract(fake);
      await signal(fake, "SIGTERM");
    },
  },
  suspend: {
    weight: 3,
    targets: sessionsWith((_host, fake) => !isSuspended(fake)),
    run: (host, target, dice) => suspend(pickFake(host, target, dice, (fake) => !isSuspended(fake))),
  },
  wake: {
    weight: 4,
    targets: sessionsWith((_host, fake) => isSuspended(fake)),
    run: (host, target, dice) => wake(pickFake(host, target, dice, isSuspended)),
  },
  child: {
    weight: 1,
    targets: sessionsWith((_host, fake) => takesOrders(fake)),
    async run(host, target, dice) {
      const fake = pickFake(host, target, dice, takesOrders);
      await giveChild(fake);
      host.noteChildren(fake);
    },
  },
  deaf: {
    weight: 1,
    targets: sessionsWith((_host, fake) => takesOrders(fake)),
    run: (host, target, dice) => makeDeaf(pickFake(host, target, dice, takesOrders)),
  },
  "wrapper-kill": {
    // What it started goes on.
    weight: 3,
    targets: sessionsWith((_host, fake) => fake.wrapper !== null && isAlive(fake.wrapper)),
    async run(host, target, dice) {
      const { wrapper } = pickFake(host, target, dice, (fake) => fake.wrapper !== null && isAlive(fake.wrapper));
      if (wrapper === null) return;
      process.kill(wrapper.pid, "SIGKILL");
      await until("the death of a wrapper", () => !isAlive(wrapper));
    },
  },
  "reuse-pid": {
    weight: 3,
    targets: sessionsWith((_host, fake) => fake.raised === "here"),
    run: reusePid,
  },
};

async function start(host: SimulatedHost, number: number, dice: Dice): Promise<void> {
  const format = dice.pick(host.cast);
  const session = host.addSession(number, format.newId(dice), dice.pick(host.places), format);
  const server = serverOf(host, format);
  if (server !== null && (server.memory !== null || dice.chance(0.5))) {
    server.served?.add(session.id);
    writeBeginning(host, session, dice);
    return;
  }
  const manner = dice.pick(["announced", "announced", "announced", "argv", "nameless"] as const);
  const fake = await begin(host, session, manner, dice);
  if (speaks(manner, format) && host.canAnnounce(fake)) await host.announce(fake);
  // Else the record comes late, or never.
  if (dice.chance(0.85)) writeBeginning(host, session, dice);
}

/** A gateway has every session; a hub, those that are begun or opened in it. */
function serverOf(host: SimulatedHost, format: Format): FakeAgent | null {
  const isServer = (fake: FakeAgent) =>
    fake.served !== null && (fake.memory === null ? takesOrders(fake) : isAlive(fake));
  return host.fakes.find((fake) => fake.format === format && isServer(fake)) ?? null;
}

function hublessIn(host: SimulatedHost): Format[] {
  const isThere = (format: Format) => host.fakes.some((fake) => fake.format === format && fake.served && isAlive(fake));
  return host.cast.filter((format) => format.hub !== undefined && !isThere(format));
}

/** What a hub's tools start would be a hub, too. */
const mayNest = (fake: FakeAgent): boolean => takesOrders(fake) && fake.served === null;

/** An agent that takes no session id as an argument announces its new session. */
function speaks(manner: Manner, { lock }: Format): boolean {
  return manner === "announced" || (manner === "argv" && lock?.isExclusive === true);
}

function writeBeginning(host: SimulatedHost, session: Session, dice: Dice): void {
  if (host.actor(session) === null) return;
  beginRecord(host, session);
  const mode = dice.pick(["default", "bypass", "plan"]);
  if (dice.chance(0.85)) appendLine(host, session, "prompt", { text: "do it", mode });
  const next = session.turnOpen ? dice.pick(["nothing", "tool", "end"]) : "nothing";
  if (next === "tool") appendLine(host, session, "tool", { name: "shell", input: "ls" });
  if (next === "end") appendLine(host, session, "end", { outcome: "completed", text: "done" });
}

/** Lines that a dead process had not written are lost once another one goes on; a live one writes them first. */
function leaveNothingHeldBack(host: SimulatedHost, session: Session): void {
  if (host.liveWriters(session).length > 0) writeHeldBack(host, session);
  session.heldBack = null;
}

async function reusePid(host: SimulatedHost, target: number, dice: Dice): Promise<void> {
  const victim = pickFake(host, target, dice, (fake) => fake.raised === "here");
  await signal(victim, "SIGKILL");
  await until("the pid to be free", () => readProcStat(victim.pid) === null);
  // Two identities within one clock tick (10 ms) cannot be told apart: a documented limit.
  await Bun.sleep(victim.format.documents === undefined ? 30 : 2 * aroundStartMs);
  host.pidReuses++;
  if (!(await occupy(host, victim, target, dice))) host.pidReusesSkipped++;
}

async function occupy(host: SimulatedHost, victim: FakeAgent, target: number, dice: Dice): Promise<boolean> {
  const setNextPid = () => writeFileSync("/proc/sys/kernel/ns_last_pid", String(victim.pid - 1));
  try {
    const manner: Manner | "stranger" = dice.pick(["stranger", "argv", "announced", "nameless", "resume"] as const);
    if (manner === "stranger") {
      return await host.startStrangerAt(victim.pid, ["sleep", "1000000"], victim.cwd, setNextPid);
    }
    const session = manner === "resume" ? host.session(target) : newcomer(host, victim, dice);
    leaveNothingHeldBack(host, session);
    const argv = session.format.argv(manner, session.id, dice);
    const fake = await host.startFakeAt(victim.pid, session, argv, setNextPid);
    if (fake === null) return false;
    if (speaks(manner, session.format) && host.canAnnounce(fake)) await host.announce(fake);
    if (manner !== "resume" && dice.chance(0.6)) writeBeginning(host, session, dice);
    return true;
  } catch (error) {
    if (["EACCES", "EPERM", "ENOENT", "EROFS"].includes(errorCode(error))) return false;
    throw error;
  }
}

/** Mostly of the same agent, where the old number is the worst trap. */
function newcomer(host: SimulatedHost, victim: FakeAgent, dice: Dice): Session {
  const others = host.cast.filter((each) => each.gateway === undefined || serverOf(host, each) === null);
  const format = dice.chance(0.7) || others.length === 0 ? victim.format : dice.pick(others);
  return host.addSession(sideNumber(host, dice), format.newId(dice), dice.pick(host.places), format);
}

/** By hand or, where an agent wears a disguise, as agentctl starts it; with or without what else starts it. */
async function begin(host: SimulatedHost, session: Session, manner: Manner, dice: Dice): Promise<FakeAgent> {
  const { format, id } = session;
  const argv = format.argv(manner, id, dice);
  if (format.gateway !== undefined) return await host.startFake(session, argv, { raised: "here" });
  const raised = dice.chance(0.3) ? "careless" : "here";
  if (typeof format.program === "string") return await host.startFake(session, argv, { raised });
  const wrapped = dice.chance(0.6);
  const mayTag = format.choosesId !== false || manner === "resume";
  if (raised === "careless" || !mayTag || dice.chance(0.7))
    return await host.startFake(session, argv, { raised, wrapped });
  const fake = await host.startFake(session, argv, { raised, wrapped, tag: "true" });
  fake.argvSession = id;
  noteTag(fake);
  return fake;
}

/** For a session that comes out of another step than start: high, so that a shortened list keeps its other numbers. */
function sideNumber(host: SimulatedHost, dice: Dice): number {
  const number = 100 + dice.below(900);
  return host.sessions.has(number) ? sideNumber(host, dice) : number;
}

function nextNumber(host: SimulatedHost): number {
  return Math.max(0, ...[...host.sessions.keys()].filter((number) => number < 100)) + 1;
}

function numbers(host: SimulatedHost, fits: (session: Session) => boolean): number[] {
  return [...host.sessions.values()].filter(fits).map((session) => session.number);
}

function sessionsWith(fits: (host: SimulatedHost, fake: FakeAgent) => boolean): (host: SimulatedHost) => number[] {
  return (host) => numbers(host, (session) => host.liveWriters(session).some((fake) => fits(host, fake)));
}

function pickFake(host: SimulatedHost, target: number, dice: Dice, fits: (fake: FakeAgent) => boolean): FakeAgent {
  return dice.pick(host.liveWriters(host.session(target)).filter(fits));
}

function isAnnouncedAwake(host: SimulatedHost, fake: FakeAgent): boolean {
  if (!isAlive(fake) || isSuspended(fake) || !host.isAnnounced(fake)) return false;
  if (fake.format.documents?.mayClear(fake) === false) return false;
  return fake.also === null && (fake.format.lock === null || takesOrders(fake));
}
