// Who is calling: a person, or an agent from inside of its session. An agent may do less: its permissions end at `edit`,
// and it acts only on sessions below its own.

import type { Order } from "../adapters/invocation.ts";
import { adapterNamed } from "../adapters/registry.ts";
import { isMultiplexer } from "../core/family.ts";
import { AgentctlError } from "../core/problem.ts";
import type { ProcessRow, ProcessTable } from "../core/process.ts";
import { isHosted, type Session } from "../core/session.ts";
import { type Environment, readSettings } from "../observe/homes.ts";
import type { Hooks, LaunchNote } from "./notes.ts";
import { lookAround, type Surroundings } from "./surroundings.ts";

export interface Caller {
  /** This process and everything above it. */
  pids: ReadonlySet<number>;
  /** The sessions that we run in, nearest first. */
  within: Session[];
  isGuarded: boolean;
}

export function callerOf({ list, table }: Surroundings, env: Environment): Caller {
  const above = ancestors(table, process.pid);
  const pids = new Set([process.pid, ...above.map((row) => row.identity.pid)]);
  const running = list.sessions.filter(({ status }) => status.state === "running");
  // Of a host's many sessions the one that marked our environment; elsewhere the process alone says it.
  const byProcess = above.flatMap(({ identity }) =>
    running.filter(
      (session) =>
        session.processes.some((row) => row.identity.pid === identity.pid) &&
        (!isHosted(session) || isMarked(session, env)),
    ),
  );
  // Below a multiplexer people work, whoever started it.
  const isPane = above.some(isMultiplexer);
  const byMark = isPane ? [] : running.filter((session) => isMarked(session, env) && !byProcess.includes(session));
  const isBelowAgent = above.some((row) =>
    running.some(({ processes }) => processes.some((each) => samePid(each, row))),
  );
  const inside = isBelowAgent || byMark.length > 0;
  const isFree = readSettings(env).settings.insideAgents === "free";
  return { pids, within: [...byProcess, ...byMark], isGuarded: inside && !isFree };
}

const samePid = (a: ProcessRow, b: ProcessRow): boolean => a.identity.pid === b.identity.pid;

/** What a tool started may have left the tree; its environment still says whose it is. */
export function isMarked({ agent, id }: Session, env: Environment): boolean {
  const mark = adapterNamed(agent)?.invocation.childMark ?? null;
  return id !== null && mark !== null && env[mark] === id;
}

function ancestors(table: ProcessTable, pid: number): ProcessRow[] {
  const byPid = new Map(table.rows.map((row) => [row.identity.pid, row]));
  const above: ProcessRow[] = [];
  let row = byPid.get(byPid.get(pid)?.parent ?? process.ppid);
  while (row !== undefined && !above.includes(row)) {
    above.push(row);
    row = byPid.get(row.parent);
  }
  return above;
}

export const lift = 'a person can lift this: {"insideAgents": "free"} in agentctl\'s config.json';

/** Also by its own setting; and what is handed on to the agent could be anything. */
export function guardPermission(
  { permission, extra }: Pick<Order, "permission" | "extra">,
  ownIsBypass: boolean,
  caller: Caller,
): void {
  if (!caller.isGuarded) return;
  const refuse = (what: string) =>
    new AgentctlError("refused", `called from inside an agent's session: ${what}`, { hint: lift });
  if (permission === "bypass") throw refuse("at most --permission edit");
  if (permission === null && ownIsBypass)
    throw refuse("the agent's own setting allows everything; say --permission edit or read");
  if (extra.length > 0) throw refuse("no arguments of the agent's own");
}

/** They are run outside of every session, where nobody guards them. */
export function guardHooks(hooks: Hooks, caller: Caller): void {
  if (!caller.isGuarded || (hooks.start === null && hooks.exit === null)) return;
  throw new AgentctlError("refused", "called from inside an agent's session: no --on-start, no --on-exit", {
    hint: lift,
  });
}

/** Throws unless the session is below the caller's. */
export function guardTarget(
  target: Session,
  ref: string,
  caller: Caller,
  around: Surroundings,
  notes: readonly LaunchNote[],
): void {
  if (!caller.isGuarded || isBelow(target, caller, around, notes)) return;
  const message = `called from inside an agent's session: ${ref} is not one of its own`;
  throw new AgentctlError("refused", message, { hint: lift });
}

function isBelow(target: Session, caller: Caller, { table }: Surroundings, notes: readonly LaunchNote[]): boolean {
  const own = caller.within.filter((session) => session !== target);
  const ownPids = new Set(own.flatMap(({ processes }) => processes.map((row) => row.identity.pid)));
  const byTree = target.processes.some(({ identity }) =>
    ancestors(table, identity.pid).some((row) => ownPids.has(row.identity.pid)),
  );
  if (caller.within.some((session) => session === target)) return false;
  return byTree || launchers(target, notes).some((name) => own.some((session) => nameOf(session) === name));
}

/** Whoever launched it, and whoever launched that one, as far as the launch notes know. */
function launchers(target: Session, notes: readonly LaunchNote[]): string[] {
  const chain: string[] = [];
  let name = nameOf(target);
  for (;;) {
    const note = notes.find((each) => `${each.agent}:${each.session}` === name && each.launchedBy !== null);
    if (note?.launchedBy == null || chain.includes(note.launchedBy)) return chain;
    chain.push(note.launchedBy);
    name = note.launchedBy;
  }
}

export const nameOf = ({ agent, id }: Session): string => `${agent}:${id}`;

/** What a person keeps or discards is not an agent's to decide. */
export async function refuseInside(what: string, env: Environment): Promise<void> {
  if (callerOf(await lookAround(env), env).isGuarded)
    throw new AgentctlError("refused", `called from inside an agent's session: no ${what}`, { hint: lift });
}
