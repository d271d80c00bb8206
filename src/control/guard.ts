// What a caller may do. A call from inside an agent's session is guarded: permissions end at `edit`, and it may act only on
// sessions that its own session started.

import type { Order } from "../agents/invocation.ts";
import { adapterNamed } from "../agents/registry.ts";
import { Failure, type GuardRule } from "../core/failure.ts";
import { isMultiplexer } from "../core/family.ts";
import { chainIn, type ProcessRow, type ProcessTable } from "../core/process.ts";
import { isServed, type Session } from "../core/session.ts";
import { type Environment, readSettings } from "../observe/homes.ts";
import { type Hooks, type LaunchNote, wantsHooks } from "./notes.ts";
import { type Snapshot, takeSnapshot } from "./snapshot.ts";

/**
 * The origin of a call, which each front door passes with every call. In a daemon the caller is not the daemon's own process.
 * person: a person for certain, like the owner of a web page. process: a process, with its environment.
 */
export type Caller = { kind: "person" } | { kind: "process"; pid: number; env: Environment };

export interface ResolvedCaller {
  /** The calling process, this process, and all their ancestors: an act must not end them. */
  pids: ReadonlySet<number>;
  /** The sessions that the caller runs in, nearest first. */
  within: Session[];
  isGuarded: boolean;
}

export function resolveCaller(caller: Caller, { list, table }: Snapshot, env: Environment): ResolvedCaller {
  const own = [process.pid, ...ancestors(table, process.pid).map((row) => row.identity.pid)];
  if (caller.kind === "person") return { pids: new Set(own), within: [], isGuarded: false };
  const isFree = readSettings(env).settings.insideAgents === "free";
  // An agent may call the service itself, not only through its tools. The own process is agentctl, which may run as the demo agent.
  const callers = caller.pid === process.pid ? [] : table.rows.filter(({ identity }) => identity.pid === caller.pid);
  const above = [...callers, ...ancestors(table, caller.pid)];
  const pids = new Set([caller.pid, ...above.map((row) => row.identity.pid), ...own]);
  const isGone = caller.pid !== process.pid && !table.rows.some(({ identity }) => identity.pid === caller.pid);
  // The ancestors of a process that has exited are not known, so it may have been a tool of an agent.
  if (isGone) return { pids, within: [], isGuarded: !isFree };
  const running = list.sessions.filter(({ status }) => status.state === "running");
  // A server serves many sessions: only the agent's variable in the environment says which of them calls.
  const byProcess = above.flatMap(({ identity }) =>
    running.filter(
      (session) =>
        session.processes.some((row) => row.identity.pid === identity.pid) &&
        (!isServed(session) || isToolEnvironment(session, caller.env)),
    ),
  );
  // A person works in the panes of a multiplexer, even if an agent started it.
  const isPane = above.some(isMultiplexer);
  const byVariable = isPane
    ? []
    : running.filter((session) => isToolEnvironment(session, caller.env) && !byProcess.includes(session));
  const agentPids = new Set(running.flatMap(({ processes }) => processes.map((row) => row.identity.pid)));
  const isBelowAgent = above.some(({ identity }) => agentPids.has(identity.pid));
  const inside = isBelowAgent || byVariable.length > 0;
  return { pids, within: [...byProcess, ...byVariable], isGuarded: inside && !isFree };
}

/** A process that a tool started may have left the process tree; the agent's variable in its environment still names the session. */
export function isToolEnvironment({ agent, id }: Session, env: Environment): boolean {
  const variable = adapterNamed(agent)?.invocation.sessionVariable ?? null;
  return id !== null && variable !== null && env[variable] === id;
}

function ancestors(table: ProcessTable, pid: number): ProcessRow[] {
  const [own, ...above] = chainIn(table, pid);
  return own === undefined && pid === process.pid ? chainIn(table, process.ppid) : above;
}

export const guarded = (rule: GuardRule, subject: string | null = null): Failure =>
  new Failure("guarded-caller", { rule, subject });

/** Checks the agent's own setting, too. Arguments for the agent itself are refused: they could allow anything. */
export function guardPermission(
  { permission, extra }: Pick<Order, "permission" | "extra">,
  ownIsBypass: boolean,
  caller: ResolvedCaller,
): void {
  if (!caller.isGuarded) return;
  if (permission === "bypass") throw guarded("permission-bypass");
  if (permission === null && ownIsBypass) throw guarded("own-setting-bypass");
  if (extra.length > 0) throw guarded("agent-arguments");
}

/** Hooks run outside of every session, so no guard would apply to them. */
export function guardHooks(hooks: Hooks, caller: ResolvedCaller): void {
  if (caller.isGuarded && wantsHooks(hooks)) throw guarded("hooks");
}

/** Throws unless the caller's session started the target. */
export function guardTarget(
  target: Session,
  ref: string,
  caller: ResolvedCaller,
  snapshot: Snapshot,
  notes: readonly LaunchNote[],
): void {
  if (!caller.isGuarded || isBelow(target, caller, snapshot, notes)) return;
  throw guarded("session-of-others", ref);
}

function isBelow(target: Session, caller: ResolvedCaller, { table }: Snapshot, notes: readonly LaunchNote[]): boolean {
  if (caller.within.includes(target)) return false;
  const ownPids = new Set(caller.within.flatMap(({ processes }) => processes.map((row) => row.identity.pid)));
  const byTree = target.processes.some(({ identity }) =>
    ancestors(table, identity.pid).some((row) => ownPids.has(row.identity.pid)),
  );
  return byTree || launchers(target, notes).some((name) => caller.within.some((session) => nameOf(session) === name));
}

/** The session that launched the target, the session that launched that one, and so on, by the launch notes. */
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

/** For acts that only a person may decide, like discarding files. */
export async function refuseInside(command: string, caller: Caller, env: Environment): Promise<void> {
  if (caller.kind === "process" && resolveCaller(caller, await takeSnapshot(env), env).isGuarded)
    throw guarded("command", command);
}
