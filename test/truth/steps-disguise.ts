// Steps with agents that are not what they look like: renamed, under another argv, in another's directory, under a wrapper,
// with the tag of another agent.
import { join } from "node:path";
import { adopt, type Bearing, freeNumber } from "./adopted-agents.ts";
import { isAlive, type spawnQuiet } from "./fake-agent.ts";
import { processesOf } from "./launched-processes.ts";
import { readProcChildren, readProcName, until } from "./proc.ts";
import type { Dice } from "./random.ts";
import type { Action } from "./schedule.ts";
import type { Session, SimulatedHost } from "./simulated-host.ts";
import { appendLine } from "./steps-record.ts";

const mostSessions = 8;

export const disguiseSteps: Record<string, Action> = {
  "start-renamed": {
    weight: 1,
    targets: (host) => (canStart(host) ? [0] : []),
    async run(host, _target, dice) {
      const name = dice.pick(["node", "a) R 1 (b", "python3", "sh"]);
      const body = `printf '%s' '${name}' >/proc/self/comm; while read -r order rest; do [ "$order" != leave ] || exit 0; done`;
      const born = spawn(host, ["/bin/sh", "-c", body, "sh"], dice.pick(host.places));
      await until("a renamed agent", () => readProcName(born.child.pid) === name);
      await announceOnly(host, born, dice);
    },
  },
  "start-other-argv": {
    weight: 1,
    targets: (host) => (canStart(host) ? [0] : []),
    async run(host, _target, dice) {
      const word = dice.pick(["-bash", "", "demo-agent serve", "node /usr/bin/x --session-id"]);
      const body = 'while read -r order rest; do [ "$order" != leave ] || exit 0; done';
      const command = ["bash", "-c", 'exec -a "$1" /bin/sh -c "$2"', "bash", word, body];
      const born = spawn(host, command, dice.pick(host.places));
      await until("an agent with another argv", () => readProcName(born.child.pid) === "sh");
      await announceOnly(host, born, dice);
    },
  },
  "start-elsewhere": {
    // Its record says one directory, it sits in another, where others are.
    weight: 1,
    targets: (host) => (canStart(host) ? [0] : []),
    async run(host, _target, dice) {
      const session = host.addSession(freeNumber(host, dice), dice.uuid(), dice.pick(host.places));
      const place = dice.pick(host.places);
      const argv = ["--session-id", session.id];
      const born = spawn(host, [join(host.root, "bin", "demo-agent"), ...argv], place);
      const bearing = { cwd: place, argv, argvSession: session.id, raised: "here", child: born.child } as const;
      const fake = adopt(host, session, born.child.pid, born.bornMs, bearing);
      if (dice.chance(0.5)) await host.announce(fake);
      appendLine(host, session, "prompt", { text: "where am I" });
    },
  },
  "start-wrapped": {
    // Killed in the same step, its wrapper leaves it to the first process.
    weight: 1,
    targets: (host) => (canStart(host) ? [0] : []),
    async run(host, _target, dice) {
      const session = host.addSession(freeNumber(host, dice), dice.uuid(), dice.pick(host.places));
      const argv = ["--session-id", session.id];
      const words = [join(host.root, "bin", "demo-agent"), ...argv];
      const { child, bornMs } = spawn(host, ["/bin/sh", "-c", '"$@"; exit $?', "wrapper", ...words], session.cwd);
      const find = () => readProcChildren(child.pid).find((pid) => readProcName(pid) === "demo-agent");
      await until("a wrapped agent", () => find() !== undefined);
      const bearing = { cwd: session.cwd, argv, argvSession: session.id, raised: "nested", child } as const;
      const fake = adopt(host, session, find() ?? 0, bornMs, bearing);
      if (dice.chance(0.5)) await host.announce(fake);
      if (dice.chance(0.7)) appendLine(host, session, "prompt", { text: "do it" });
      const name = dice.pick(["SIGKILL", "SIGTERM", "SIGSTOP", null] as const);
      if (name !== null) process.kill(child.pid, name);
      if (name === "SIGKILL" || name === "SIGTERM") await child.exited;
    },
  },
  "inherited-tag": {
    // What a daemon or a multiplexer handed on: the tag of a launch, in a kernel session that it was not given to.
    weight: 2,
    targets: (host) => [...host.sessions.keys()],
    async run(host, target, dice) {
      const victim = host.session(target);
      const { format } = victim;
      const tag = tagOf(host, victim, dice);
      const place = dice.pick(host.places);
      if (dice.chance(0.4) || !canStart(host) || format.gateway !== undefined) {
        spawn(host, ["sleep", "100000"], place, { ...host.environment, ...tag }, "own session");
        return;
      }
      // A separate agent that announces nothing.
      const session = host.addSession(freeNumber(host, dice), format.newId(dice), place, format);
      const argv = format.argv("nameless", session.id, dice);
      const fake = await host.startFake(session, argv, { raised: "here", tag });
      if (dice.chance(0.5) && host.mayWrite(fake)) appendLine(host, session, "prompt", { text: "who am I" });
    },
  },
};

/** The true tag of the victim's launch, if it has one; else one of the same shape. */
function tagOf(host: SimulatedHost, victim: Session, dice: Dice): Record<string, string> {
  const name = `${victim.format.agent}:${victim.id}`;
  const owner = processesOf(host).find(({ env }) => env.get("AGENTCTL_TAG_SESSION") === name);
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
async function announceOnly(host: SimulatedHost, { child, bornMs }: Born, dice: Dice): Promise<void> {
  const session = host.addSession(freeNumber(host, dice), dice.uuid(), dice.pick(host.places));
  const argvSession = "nothing that it says";
  const bearing: Bearing = { cwd: session.cwd, argv: [], argvSession, raised: "here", child: null };
  await host.announce(adopt(host, session, child.pid, bornMs, bearing));
  if (dice.chance(0.8)) appendLine(host, session, "prompt", { text: "it is me" });
}

type Child = ReturnType<typeof spawnQuiet>;

interface Born {
  child: Child;
  bornMs: number;
}

/** A child without a holder may lose its stdin and exit. */
const held = new WeakMap<SimulatedHost, Child[]>();

function spawn(
  host: SimulatedHost,
  command: string[],
  cwd: string,
  env = host.environment,
  kernelSession = "ours",
): Born {
  const bornMs = Date.now();
  const streams = { stdin: "pipe", stdout: "ignore", stderr: "ignore" } as const;
  const child = Bun.spawn(command, { cwd, env, ...streams, detached: kernelSession !== "ours" });
  held.set(host, [...(held.get(host) ?? []), child]);
  return { child, bornMs };
}

function canStart(host: SimulatedHost): boolean {
  return !host.liveBroken && !host.sessionsBroken && host.fakes.filter(isAlive).length < mostSessions;
}
