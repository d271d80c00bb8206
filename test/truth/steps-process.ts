// Steps that start, stop and disturb processes.
import { writeFileSync } from "node:fs";
import { errorCode, ignoresTerm, readProcStat, until } from "./proc.ts";
import type { Dice } from "./random.ts";
import type { Action } from "./schedule.ts";
import { appendLine, beginRecord } from "./steps-record.ts";
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
  nest: {
    weight: 2,
    targets: sessionsWith((_world, twin) => takesOrders(twin)),
    async run(world, target, dice) {
      const parent = pickTwin(world, target, dice, takesOrders);
      const session = world.addSession(sideNumber(world, dice), dice.uuid(), parent.cwd);
      const twin = await world.startNested(parent, session);
      if (!world.liveBroken && dice.chance(0.6)) world.announce(twin);
      if (dice.chance(0.7)) writeBeginning(world, session, dice);
    },
  },
  resume: {
    weight: 5,
    targets: (world) => numbers(world, () => true),
    async run(world, target, dice) {
      const session = world.session(target);
      const twin = await world.startTwin(session, ["--resume", session.id], raising(dice));
      if (!world.liveBroken && dice.chance(0.8)) world.announce(twin);
      if (dice.chance(0.4)) appendLine(world, session, "prompt", { text: "go on" });
    },
  },
  clear: {
    // A person types /clear: the same process goes on under a new id, and says so.
    weight: 1,
    targets: (world) => (world.liveBroken ? [] : sessionsWith(isAnnouncedAwake)(world)),
    async run(world, target, dice) {
      const twin = pickTwin(world, target, dice, (each) => isAnnouncedAwake(world, each));
      const session = world.addSession(sideNumber(world, dice), dice.uuid(), twin.cwd);
      twin.session = session.id;
      world.announce(twin);
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
      if (ignoresTerm(twin.pid)) {
        process.kill(twin.pid, "SIGTERM");
        return;
      }
      world.retract(twin);
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
  "reuse-pid": {
    weight: 3,
    targets: sessionsWith((_world, twin) => twin.raised === "here"),
    run: reusePid,
  },
};

async function start(world: World, number: number, dice: Dice): Promise<void> {
  const session = world.addSession(number, dice.uuid(), dice.pick(world.places));
  const manner = dice.pick(["announced", "announced", "announced", "argv", "nameless"] as const);
  const named = ["--session-id", session.id];
  const argv = { announced: dice.chance(0.5) ? named : [], argv: ["--no-announce", ...named], nameless: silence(dice) };
  const twin = await world.startTwin(session, argv[manner], raising(dice));
  if (manner === "announced" && !world.liveBroken) world.announce(twin);
  // Else the record comes late, or never.
  if (dice.chance(0.75)) writeBeginning(world, session, dice);
}

function writeBeginning(world: World, session: Session, dice: Dice): void {
  if (world.sessionsBroken) return;
  beginRecord(world, session);
  if (dice.chance(0.75)) appendLine(world, session, "prompt", { text: "do it" });
  if (session.turnOpen && dice.chance(0.3)) appendLine(world, session, "end", { outcome: "completed", text: "done" });
}

async function reusePid(world: World, target: number, dice: Dice): Promise<void> {
  const victim = pickTwin(world, target, dice, (twin) => twin.raised === "here");
  await signal(victim, "SIGKILL");
  await until("the pid to be free", () => readProcStat(victim.pid) === null);
  // Two identities within one clock tick (10 ms) cannot be told apart: a documented limit.
  await Bun.sleep(30);
  world.pidReuses++;
  if (!(await occupy(world, victim, target, dice))) world.pidReusesSkipped++;
}

async function occupy(world: World, victim: Twin, target: number, dice: Dice): Promise<boolean> {
  const setNextPid = () => writeFileSync("/proc/sys/kernel/ns_last_pid", String(victim.pid - 1));
  try {
    const manner = dice.pick(["stranger", "argv", "announced", "nameless", "resume"] as const);
    if (manner === "stranger") {
      return await world.startStrangerAt(victim.pid, ["sleep", "1000000"], victim.cwd, setNextPid);
    }
    const old = world.session(target);
    const session =
      manner === "resume" ? old : world.addSession(sideNumber(world, dice), dice.uuid(), dice.pick(world.places));
    const flags = {
      argv: ["--session-id", session.id],
      resume: ["--resume", session.id],
      announced: [],
      nameless: silence(dice),
    };
    const twin = await world.startTwinAt(victim.pid, session, flags[manner], setNextPid);
    if (twin === null) return false;
    if (manner === "announced" && !world.liveBroken) world.announce(twin);
    if (manner !== "resume" && dice.chance(0.6)) writeBeginning(world, session, dice);
    return true;
  } catch (error) {
    if (["EACCES", "EPERM", "ENOENT", "EROFS"].includes(errorCode(error))) return false;
    throw error;
  }
}

// Told to be silent, or a talker that has not spoken yet: only the first may be linked by its directory.
function silence(dice: Dice): string[] {
  return dice.chance(0.5) ? ["--no-announce"] : [];
}

function raising(dice: Dice): "here" | "careless" {
  return dice.chance(0.2) ? "careless" : "here";
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
  return isAlive(twin) && !isSuspended(twin) && world.isAnnounced(twin);
}
