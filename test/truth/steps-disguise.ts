// Steps with agents that are not what they look like: renamed, under another argv, in another's directory, under a wrapper,
// with a tag that was meant for somebody else.
import { join } from "node:path";
import { adopt, type Bearing, freeNumber } from "./arrivals.ts";
import { kinOf } from "./kin.ts";
import { readProcChildren, readProcName, until } from "./proc.ts";
import type { Dice } from "./random.ts";
import type { Action } from "./schedule.ts";
import { appendLine } from "./steps-record.ts";
import { isAlive, type spawnQuiet } from "./twin.ts";
import type { Session, World } from "./world.ts";

const mostSessions = 8;

export const disguiseSteps: Record<string, Action> = {
  "start-renamed": {
    weight: 1,
    targets: (world) => (canStart(world) ? [0] : []),
    async run(world, _target, dice) {
      const name = dice.pick(["node", "a) R 1 (b", "python3", "sh"]);
      const body = `printf '%s' '${name}' >/proc/self/comm; while read -r order rest; do [ "$order" != leave ] || exit 0; done`;
      const born = spawn(world, ["/bin/sh", "-c", body, "sh"], dice.pick(world.places));
      await until("a renamed agent", () => readProcName(born.child.pid) === name);
      await announceOnly(world, born, dice);
    },
  },
  "start-other-argv": {
    weight: 1,
    targets: (world) => (canStart(world) ? [0] : []),
    async run(world, _target, dice) {
      const word = dice.pick(["-bash", "", "demo-agent serve", "node /usr/bin/x --session-id"]);
      const body = 'while read -r order rest; do [ "$order" != leave ] || exit 0; done';
      const command = ["bash", "-c", 'exec -a "$1" /bin/sh -c "$2"', "bash", word, body];
      const born = spawn(world, command, dice.pick(world.places));
      await until("an agent with another argv", () => readProcName(born.child.pid) === "sh");
      await announceOnly(world, born, dice);
    },
  },
  "start-elsewhere": {
    // Its record says one directory, it sits in another, where others are.
    weight: 1,
    targets: (world) => (canStart(world) ? [0] : []),
    async run(world, _target, dice) {
      const session = world.addSession(freeNumber(world, dice), dice.uuid(), dice.pick(world.places));
      const place = dice.pick(world.places);
      const argv = ["--session-id", session.id];
      const born = spawn(world, [join(world.root, "bin", "demo-agent"), ...argv], place);
      const bearing = { cwd: place, argv, argvSession: session.id, raised: "here", child: born.child } as const;
      const twin = adopt(world, session, born.child.pid, born.bornMs, bearing);
      if (dice.chance(0.5)) await world.announce(twin);
      appendLine(world, session, "prompt", { text: "where am I" });
    },
  },
  "start-wrapped": {
    // Killed in the same step, its wrapper leaves it to the first process.
    weight: 1,
    targets: (world) => (canStart(world) ? [0] : []),
    async run(world, _target, dice) {
      const session = world.addSession(freeNumber(world, dice), dice.uuid(), dice.pick(world.places));
      const argv = ["--session-id", session.id];
      const words = [join(world.root, "bin", "demo-agent"), ...argv];
      const { child, bornMs } = spawn(world, ["/bin/sh", "-c", '"$@"; exit $?', "wrapper", ...words], session.cwd);
      const find = () => readProcChildren(child.pid).find((pid) => readProcName(pid) === "demo-agent");
      await until("a wrapped agent", () => find() !== undefined);
      const bearing = { cwd: session.cwd, argv, argvSession: session.id, raised: "nested", child } as const;
      const twin = adopt(world, session, find() ?? 0, bornMs, bearing);
      if (dice.chance(0.5)) await world.announce(twin);
      if (dice.chance(0.7)) appendLine(world, session, "prompt", { text: "do it" });
      const name = dice.pick(["SIGKILL", "SIGTERM", "SIGSTOP", null] as const);
      if (name !== null) process.kill(child.pid, name);
      if (name === "SIGKILL" || name === "SIGTERM") await child.exited;
    },
  },
  "inherited-tag": {
    // What a daemon or a multiplexer handed on: the tag of a launch, in a kernel session that it was not given to.
    weight: 2,
    targets: (world) => [...world.sessions.keys()],
    async run(world, target, dice) {
      const victim = world.session(target);
      const { format } = victim;
      const tag = tagOf(world, victim, dice);
      const place = dice.pick(world.places);
      if (dice.chance(0.4) || !canStart(world) || format.gateway !== undefined) {
        spawn(world, ["sleep", "100000"], place, { ...world.environment, ...tag }, "own session");
        return;
      }
      // An agent of its own that says nothing.
      const session = world.addSession(freeNumber(world, dice), format.newId(dice), place, format);
      const argv = format.argv("nameless", session.id, dice);
      const twin = await world.startTwin(session, argv, { raised: "here", tag });
      if (dice.chance(0.5) && world.mayWrite(twin)) appendLine(world, session, "prompt", { text: "who am I" });
    },
  },
};

/** The true tag of the victim's launch, if it has one; else one of the same shape. */
function tagOf(world: World, victim: Session, dice: Dice): Record<string, string> {
  const name = `${victim.format.agent}:${victim.id}`;
  const owner = kinOf(world).find(({ env }) => env.get("AGENTCTL_TAG_SESSION") === name);
  return {
    AGENTCTL_TAG: owner?.env.get("AGENTCTL_TAG") ?? dice.uuid(),
    AGENTCTL_TAG_SID: owner?.env.get("AGENTCTL_TAG_SID") ?? "1",
    AGENTCTL_TAG_SESSION: name,
  };
}

/**
 * Only its announcement tells what it is: as after /clear, steps that spoil announcements leave it alone. It knows no
 * orders either.
 */
async function announceOnly(world: World, { child, bornMs }: Born, dice: Dice): Promise<void> {
  const session = world.addSession(freeNumber(world, dice), dice.uuid(), dice.pick(world.places));
  const argvSession = "nothing that it says";
  const bearing: Bearing = { cwd: session.cwd, argv: [], argvSession, raised: "here", child: null };
  await world.announce(adopt(world, session, child.pid, bornMs, bearing));
  if (dice.chance(0.8)) appendLine(world, session, "prompt", { text: "it is me" });
}

type Child = ReturnType<typeof spawnQuiet>;

interface Born {
  child: Child;
  bornMs: number;
}

/** A child that nobody holds may lose its stdin, and end. */
const held = new WeakMap<World, Child[]>();

function spawn(world: World, command: string[], cwd: string, env = world.environment, kernelSession = "ours"): Born {
  const bornMs = Date.now();
  const streams = { stdin: "pipe", stdout: "ignore", stderr: "ignore" } as const;
  const child = Bun.spawn(command, { cwd, env, ...streams, detached: kernelSession !== "ours" });
  held.set(world, [...(held.get(world) ?? []), child]);
  return { child, bornMs };
}

function canStart(world: World): boolean {
  return !world.liveBroken && !world.sessionsBroken && world.twins.filter(isAlive).length < mostSessions;
}
