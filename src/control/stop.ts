// Stops sessions: asks the agent's server or supervisor, or sends the gentlest signal first; then ends the processes that belong
// to the session by the rules of core/family. The report comes from a new snapshot.
import type { Adapter } from "../agents/adapter.ts";
import { adapterNamed, adapters } from "../agents/registry.ts";
import { Failure, type RequestAnswer } from "../core/failure.ts";
import { type Family, familyOf, type Leftover, launchToEnd, ownedBy } from "../core/family.ts";
import { isLive, type ProcessIdentity, type ProcessRow, sameProcess } from "../core/process.ts";
import type { SpareReason } from "../core/reason.ts";
import { isSameSession, isServed, type Kin, type Session } from "../core/session.ts";
import type { Environment } from "../observe/homes.ts";
import { readMaps } from "../observe/open-files.ts";
import { selectIds } from "../observe/selection.ts";
import { runCommand } from "../sys/spawn.ts";
import { commandOf } from "./agent-program.ts";
import { agentEnvironment } from "./child-environment.ts";
import {
  type EndReport,
  endProcesses,
  type ProcessToEnd,
  type SignalStep,
  stuck,
  termThenKill,
} from "./end-processes.ts";
import { type Snapshot, takeSnapshot } from "./snapshot.ts";
import { interruptServed } from "./talk-to-server.ts";
import { waitFor } from "./wait.ts";

export interface StopOptions {
  graceMs: number;
  /** SIGKILL at once. */
  now: boolean;
  /** End the leftovers, too: processes that may belong to others. */
  leftovers: boolean;
  /** End the server of a served session, and with it every other session there. */
  server: boolean;
}

export interface StopTarget {
  session: Kin;
  /** The ids of its launches, by the notes. */
  launches: readonly string[];
}

/**
 * turn-interrupted, tools-stopped: the session stays in its server, without a turn. nothing-to-stop: it was idle there.
 * still-running: at least one of its processes has not exited.
 */
export type StopResult =
  | "stopped"
  | "already-stopped"
  | "turn-interrupted"
  | "tools-stopped"
  | "nothing-to-stop"
  | "still-running"
  | "unknown"
  | "failed";

export interface StopReport extends EndReport {
  result: StopResult;
  /** The session now. null: it has no record and no process. */
  session: Session | null;
  leftovers: Leftover[];
  /** The answer of its server or its supervisor. */
  said: RequestAnswer | null;
  /** Why its server or its supervisor could not be asked. */
  failure: Failure | null;
}

const killPatienceMs = 5_000;
const memberPatienceMs = 3_000;
const maxRounds = 4;

export async function stopSessions(
  targets: readonly StopTarget[],
  options: StopOptions,
  snapshot: Snapshot,
  callerPids: ReadonlySet<number>,
  env: Environment,
  signal?: AbortSignal,
): Promise<StopReport[]> {
  const courses = targets.map((target) => new StopRun(target, snapshot, callerPids, options));
  await Promise.all(courses.map((course) => course.askToStop(env)));
  const owners = await endProcesses(onceEach(courses.flatMap((course) => course.ownersToEnd())), signal);
  for (const course of courses) course.record(owners);

  const wanted = selectIds(targets.map(({ session }) => session.id));
  const look = () => takeSnapshot(env, wanted);
  let { value: now } = await waitFor({
    look,
    isEnough: (seen) => !courses.some((course) => course.isEnding(seen)),
    sessions: (seen) => courses.flatMap((course) => (course.isEnding(seen) ? (course.sessionIn(seen) ?? []) : [])),
    timeoutMs: options.graceMs,
    ...(signal === undefined ? {} : { signal }),
  });
  for (let round = 1; round <= maxRounds; round += 1) {
    const found = courses.flatMap((course) => course.membersToEnd(now));
    if (found.length === 0) break;
    const members = await endProcesses(onceEach(found), signal);
    for (const course of courses) course.record(members);
    now = await look();
  }
  return courses.map((course) => course.answer(now));
}

/** Sessions may share a process. It must get each signal once: agents treat a second SIGINT differently. */
const onceEach = (found: readonly ProcessToEnd[]): ProcessToEnd[] => [
  ...new Map(found.map((each) => [each.process.pid, each])).values(),
];

const roleIn = ({ processNames, role }: Adapter, { name, detail }: ProcessRow) =>
  detail !== null && processNames.includes(name) ? role(name, detail) : null;

const isServer = (row: ProcessRow): boolean => adapters.some((adapter) => roleIn(adapter, row) === "server");

function isOfAgent(row: ProcessRow, agent: string): boolean {
  const adapter = adapterNamed(agent);
  return adapter !== null && roleIn(adapter, row) !== null;
}

const sessionVariables = new Map(
  adapters.flatMap(({ agent, invocation: { sessionVariable } }) =>
    sessionVariable === null ? [] : [[agent, sessionVariable] as const],
  ),
);

class StopRun {
  private readonly adapter: Adapter;
  private readonly family: Family;
  private readonly ended: EndReport["ended"] = [];
  private readonly survivors: EndReport["survivors"] = [];
  /** Every process that we tried to end for this session. */
  private readonly wanted: ProcessRow[] = [];
  private said: RequestAnswer | null = null;
  private failure: Failure | null = null;

  constructor(
    private readonly target: StopTarget,
    snapshot: Snapshot,
    private readonly callerPids: ReadonlySet<number>,
    private readonly options: StopOptions,
  ) {
    const adapter = adapterNamed(target.session.agent);
    if (adapter === null) throw new Error(`no adapter ${target.session.agent}`);
    this.adapter = adapter;
    this.family = this.familyIn(snapshot);
  }

  /** Asks the server of a served session, or the supervisor of a background job. A failure must not prevent other stops. */
  async askToStop(env: Environment): Promise<void> {
    try {
      this.said = await this.sendRequest(env);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      this.failure = error;
    }
  }

  private async sendRequest(env: Environment): Promise<RequestAnswer | null> {
    const { session } = this.target;
    if (session.status?.state !== "running") return null;
    if (isServed(session)) return this.options.server ? null : await interruptServed(session, this.adapter);
    if (this.options.now) return null;
    const words = session.job === null ? null : (this.adapter.invocation.ownStop?.(session.job) ?? null);
    if (words === null) return null;
    const { status, text } = await runCommand([...commandOf(this.adapter, env), ...words], {
      cwd: "/",
      env: agentEnvironment(env, this.adapter, session.home),
      maxMs: this.options.graceMs,
    });
    if (status === 0) return null;
    const command = [this.adapter.command, ...words].join(" ");
    throw new Failure("own-stop-failed", { command, detail: text.trim() });
  }

  /** Its server has agreed to end the turn, but has not done it yet. */
  isEnding(now: Snapshot): boolean {
    const status = this.said !== null && isServed(this.target.session) ? this.sessionIn(now)?.status : undefined;
    return status?.state === "unknown" || (status?.state === "running" && status.activity !== "idle");
  }

  ownersToEnd(): ProcessToEnd[] {
    const { session } = this.target;
    const staysInServer = isServed(session) && !this.options.server;
    if (session.status?.state !== "running" || this.failure !== null || staysInServer) return [];
    const isAsked = session.job !== null && !this.options.now;
    const steps = isAsked ? [{ signal: null, patienceMs: this.options.graceMs }] : this.ladder();
    return this.toEnd(session.processes, steps);
  }

  membersToEnd(now: Snapshot): ProcessToEnd[] {
    const { processes } = this.target.session;
    const ownerStays = this.survivors.some(({ row }) => isAmong(row, processes));
    if (ownerStays || this.failure !== null) return [];
    const before = this.toEndOf(this.family);
    // Since the first snapshot a shell may have become the agent of another session.
    const stillThere = now.table.rows.filter((row) => isAmong(row, before) && this.takenBy(row, now) === null);
    const found = [...stillThere, ...this.toEndOf(this.familyIn(now))];
    const isFresh = (row: ProcessRow) => isLive(row) && !this.wasTried(row) && !this.callerPids.has(row.identity.pid);
    const fresh = [...new Map(found.map((row) => [row.identity.pid, row])).values()].filter(isFresh);
    return this.toEnd(fresh, termThenKill(this.options.now ? null : memberPatienceMs, killPatienceMs));
  }

  private toEndOf({ members, leftovers }: Family): ProcessRow[] {
    return this.options.leftovers ? [...members, ...leftovers.map(({ row }) => row)] : members;
  }

  private takenBy(row: ProcessRow, { list }: Snapshot): SpareReason | null {
    const other = list.sessions.find(
      (each) =>
        each.status.state === "running" && !isSameSession(each, this.target.session) && isAmong(row, each.processes),
    );
    return other === undefined || this.options.leftovers ? null : ownedBy(other);
  }

  private wasTried = ({ identity }: ProcessRow): boolean =>
    this.survivors.some(({ row }) => sameProcess(row.identity, identity));

  record({ ended, survivors }: EndReport): void {
    const mine = (process: ProcessIdentity) => this.wanted.find((row) => sameProcess(row.identity, process));
    for (const each of ended) if (mine(each.process) !== undefined) this.ended.push(each);
    for (const { row, why } of survivors) {
      const known = mine(row.identity);
      if (known !== undefined) this.survivors.push({ row: { ...row, detail: known.detail }, why });
    }
  }

  answer(now: Snapshot): StopReport {
    const { members, leftovers } = this.familyIn(now);
    const isNew = (row: ProcessRow) => !this.wasTried(row);
    // Processes that were found by their parents alone cannot be found again after the parents exited.
    const taken = this.family.members.map((row) => ({ row, why: this.takenBy(row, now) }));
    const seen = [...this.family.leftovers, ...taken];
    const before = seen.flatMap(({ row, why }) =>
      why !== null && isAmong(row, now.table.rows.filter(isLive)) && !leftovers.some((left) => isAmong(row, [left.row]))
        ? [{ row, why }]
        : [],
    );
    const session = this.sessionIn(now);
    const survivors = [...this.survivors, ...members.filter(isNew).map((row) => ({ row, why: stuck(row) }))];
    return {
      result: survivors.length > 0 && this.failure === null ? "still-running" : this.resultFor(session),
      session,
      ended: this.ended,
      leftovers: [...leftovers, ...before].filter(({ row }) => isNew(row)),
      survivors,
      said: this.said,
      failure: this.failure,
    };
  }

  private resultFor(now: Session | null): StopResult {
    if (this.failure !== null) return "failed";
    const before = this.target.session.status;
    if (now?.status.state === "unknown") return "unknown";
    if (now?.status.state !== "running") return before?.state === "stopped" ? "already-stopped" : "stopped";
    if (!isServed(now) || now.status.activity !== "idle") return "still-running";
    if (before?.state !== "running" || before.activity !== "idle") return "turn-interrupted";
    return this.ended.length > 0 ? "tools-stopped" : "nothing-to-stop";
  }

  private toEnd(rows: readonly ProcessRow[], steps: readonly SignalStep[]): ProcessToEnd[] {
    this.wanted.push(...rows);
    return rows.map((row) => ({ process: row.identity, steps }));
  }

  /** The last gentle signal gets the rest of the grace period; if that is short, all signals share it. */
  private ladder(): SignalStep[] {
    const kill: SignalStep = { signal: "SIGKILL", patienceMs: killPatienceMs };
    if (this.options.now) return [kill];
    let left = this.options.graceMs;
    const gentle = this.adapter.invocation.stopSignals.map(({ signal, patienceMs }, index, all) => {
      const patience = index === all.length - 1 ? left : Math.min(patienceMs, left / (all.length - index));
      left -= patience;
      return { signal, patienceMs: patience };
    });
    return [...gentle, kill];
  }

  sessionIn({ list }: Snapshot): Session | null {
    const { session } = this.target;
    if (session.id !== null) return list.sessions.find((each) => isSameSession(each, session)) ?? null;
    const { agent, home, processes } = session;
    const same = list.sessions.filter((each) => each.agent === agent && each.home === home);
    return same.find((each) => each.processes.some((row) => isAmong(row, processes))) ?? null;
  }

  private familyIn(snapshot: Snapshot): Family {
    const { session, launches } = this.target;
    const now = this.sessionIn(snapshot) ?? { ...session, processes: [] };
    const signs = { sessionVariables, launches: [...launches, ...this.tags()], isServer, isOfAgent, readMaps };
    return familyOf(now, snapshot.list.sessions, snapshot.table, signs, this.callerPids);
  }

  /** The launch tags of its processes in the first snapshot. */
  private tags = (): string[] =>
    isServed(this.target.session) ? [] : this.target.session.processes.flatMap((row) => launchToEnd(row) ?? []);
}

const isAmong = (row: ProcessRow, rows: readonly ProcessRow[]): boolean =>
  rows.some((other) => sameProcess(other.identity, row.identity));
