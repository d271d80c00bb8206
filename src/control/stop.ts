// Ends sessions: the agent's own way or the gentlest signal first, then what it left running, by the rules of core/family.
// What is said afterwards is looked up anew.
import type { Adapter } from "../adapters/adapter.ts";
import { adapterNamed, adapters } from "../adapters/registry.ts";
import { type Family, familyOf, type Leftover, launchToEnd, ownedBy } from "../core/family.ts";
import { AgentctlError } from "../core/problem.ts";
import { isLive, type ProcessIdentity, type ProcessRow, sameProcess } from "../core/process.ts";
import { isHosted, type Kin, type Session } from "../core/session.ts";
import type { Environment } from "../observe/homes.ts";
import { readMaps } from "../observe/maps.ts";
import { withIds } from "../observe/wanted.ts";
import { runCommand } from "../sys/spawn.ts";
import { commandOf } from "./binary.ts";
import { type Ended, type Ending, endProcesses, type Outcome, type Step, type Survivor, stuck } from "./end.ts";
import { agentEnvironment } from "./environment.ts";
import { interruptHosted } from "./hosted.ts";
import { lookAround, type Surroundings } from "./surroundings.ts";
import { waitFor } from "./wait.ts";

export interface StopOptions {
  graceMs: number;
  /** No gentle signal: SIGKILL at once. */
  now: boolean;
  /** End the leftovers, too. */
  leftovers: boolean;
  /** End the server of a session that lives in one, and with it every other session there. */
  server: boolean;
}

export interface StopTarget {
  session: Kin;
  /** Its launches, as the notes know them. */
  launches: readonly string[];
}

/**
 * turn-interrupted, tools-stopped: the session lives on in its server, without a turn. nothing-to-stop: it was idle there.
 * still-running: something of it has not ended.
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

export interface Stopped {
  result: StopResult;
  /** As it is now. null: nothing is recorded of it any more. */
  session: Session | null;
  ended: Ended[];
  leftovers: Leftover[];
  /** What could not be ended. */
  survivors: Survivor[];
  /** What its host or its supervisor said to it. */
  said: string | null;
  /** Why its host or its supervisor could not be asked. */
  failure: AgentctlError | null;
}

const killPatienceMs = 5_000;
const memberPatienceMs = 3_000;
const mostRounds = 4;

export async function stopSessions(
  targets: readonly StopTarget[],
  options: StopOptions,
  around: Surroundings,
  callerPids: ReadonlySet<number>,
  env: Environment,
): Promise<Stopped[]> {
  const courses = targets.map((target) => new StopCourse(target, around, callerPids, options));
  await Promise.all(courses.map((course) => course.askItself(env)));
  const owners = await endProcesses(onceEach(courses.flatMap((course) => course.ownerEndings())));
  for (const course of courses) course.take(owners);

  const wanted = withIds(targets.map(({ session }) => session.id));
  const look = () => lookAround(env, wanted);
  let { value: now } = await waitFor({
    look,
    isEnough: (seen) => !courses.some((course) => course.isEnding(seen)),
    sessions: (seen) => courses.flatMap((course) => (course.isEnding(seen) ? (course.sessionIn(seen) ?? []) : [])),
    timeoutMs: options.graceMs,
  });
  for (let round = 1; round <= mostRounds; round += 1) {
    const endings = courses.flatMap((course) => course.memberEndings(now));
    if (endings.length === 0) break;
    const members = await endProcesses(onceEach(endings));
    for (const course of courses) course.take(members);
    now = await look();
  }
  return courses.map((course) => course.answer(now));
}

/** Sessions may share a process: their host, or what both have marked. A second SIGINT means something else than one. */
const onceEach = (endings: readonly Ending[]): Ending[] => [
  ...new Map(endings.map((ending) => [ending.process.pid, ending])).values(),
];

const isHost = ({ name, detail }: ProcessRow): boolean =>
  detail !== null &&
  adapters.some(({ processNames, role }) => processNames.includes(name) && role(name, detail) === "host");

function isOfAgent({ name, detail }: ProcessRow, agent: string): boolean {
  const adapter = adapterNamed(agent);
  if (detail === null || adapter === null) return false;
  return adapter.processNames.includes(name) && adapter.role(name, detail) !== null;
}

const childMarks = new Map(
  adapters.flatMap(({ agent, invocation: { childMark } }) => (childMark === null ? [] : [[agent, childMark] as const])),
);

class StopCourse {
  private readonly adapter: Adapter;
  private readonly family: Family;
  private readonly ended: Ended[] = [];
  private readonly survivors: Survivor[] = [];
  /** Everything that was ever to be ended for this session. */
  private readonly wanted: ProcessRow[] = [];
  private said: string | null = null;
  private failure: AgentctlError | null = null;

  constructor(
    private readonly target: StopTarget,
    around: Surroundings,
    private readonly callerPids: ReadonlySet<number>,
    private readonly options: StopOptions,
  ) {
    const adapter = adapterNamed(target.session.agent);
    if (adapter === null) throw new Error(`no adapter ${target.session.agent}`);
    this.adapter = adapter;
    this.family = this.familyIn(around);
  }

  /** A hosted session through its host, a background job through its supervisor. One that fails costs no other its end. */
  async askItself(env: Environment): Promise<void> {
    try {
      this.said = await this.answerToAsking(env);
    } catch (error) {
      if (!(error instanceof AgentctlError)) throw error;
      this.failure = error;
    }
  }

  private async answerToAsking(env: Environment): Promise<string | null> {
    const { session } = this.target;
    if (session.status?.state !== "running") return null;
    if (isHosted(this.target.session)) return this.options.server ? null : await interruptHosted(session, this.adapter);
    if (this.options.now) return null;
    const words = session.job === null ? null : this.adapter.invocation.ownStop(session.job);
    if (words === null) return null;
    const { status, text } = await runCommand([...commandOf(this.adapter, env), ...words], {
      cwd: "/",
      env: agentEnvironment(env, this.adapter, session.home),
      mostMs: this.options.graceMs,
    });
    if (status !== 0)
      throw new AgentctlError("failed", `${this.adapter.command} ${words.join(" ")} failed: ${text.trim()}`);
    return text.trim();
  }

  /** Its host has agreed to end its turn, and does not say yet that it has. */
  isEnding(now: Surroundings): boolean {
    const status = this.said !== null && isHosted(this.target.session) ? this.sessionIn(now)?.status : undefined;
    return status?.state === "unknown" || (status?.state === "running" && status.activity !== "idle");
  }

  ownerEndings(): Ending[] {
    const { session } = this.target;
    if (
      session.status?.state !== "running" ||
      this.failure !== null ||
      (isHosted(this.target.session) && !this.options.server)
    )
      return [];
    const isAsked = session.job !== null && !this.options.now;
    const steps = isAsked ? [{ signal: null, patienceMs: this.options.graceMs }] : this.ladder();
    return this.endingsOf(session.processes, steps);
  }

  memberEndings(now: Surroundings): Ending[] {
    const { processes } = this.target.session;
    const ownerStays = this.survivors.some(({ row }) => isAmong(row, processes));
    if (ownerStays || this.failure !== null) return [];
    const before = this.unwanted(this.family);
    // Since the first look a shell may have become somebody's agent.
    const stillThere = now.table.rows.filter((row) => isAmong(row, before) && this.takenBy(row, now) === null);
    const found = [...stillThere, ...this.unwanted(this.familyIn(now))];
    const fresh = [...new Map(found.map((row) => [row.identity.pid, row])).values()].filter(
      (row) => isLive(row) && !this.wasTried(row) && !this.callerPids.has(row.identity.pid),
    );
    const gentle: Step[] = this.options.now ? [] : [{ signal: "SIGTERM", patienceMs: memberPatienceMs }];
    return this.endingsOf(fresh, [...gentle, { signal: "SIGKILL", patienceMs: killPatienceMs }]);
  }

  /** What is to be ended of a family. */
  private unwanted({ members, leftovers }: Family): ProcessRow[] {
    return this.options.leftovers ? [...members, ...leftovers.map(({ row }) => row)] : members;
  }

  /** Another session that has this process by now. */
  private takenBy(row: ProcessRow, { list }: Surroundings): string | null {
    const { agent, home, id } = this.target.session;
    const other = list.sessions.find(
      (each) =>
        each.status.state === "running" &&
        !(id !== null && each.id === id && each.agent === agent && each.home === home) &&
        isAmong(row, each.processes),
    );
    return other === undefined || this.options.leftovers ? null : ownedBy(other);
  }

  private wasTried = (row: ProcessRow): boolean =>
    isAmong(
      row,
      this.survivors.map((each) => each.row),
    );

  take({ ended, survivors }: Outcome): void {
    const mine = (process: ProcessIdentity) => this.wanted.find((row) => sameProcess(row.identity, process));
    for (const each of ended) if (mine(each.process) !== undefined) this.ended.push(each);
    for (const { row, why } of survivors) {
      const known = mine(row.identity);
      if (known !== undefined) this.survivors.push({ row: { ...row, detail: known.detail }, why });
    }
  }

  answer(now: Surroundings): Stopped {
    const { members, leftovers } = this.familyIn(now);
    const isNew = (row: ProcessRow) => !this.wasTried(row);
    // What was known by its place in the tree alone is not found again once the tree is gone.
    const seen = [
      ...this.family.leftovers,
      ...this.family.members.map((row) => ({ row, why: this.takenBy(row, now) })),
    ];
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
    if (!isHosted(now) || now.status.activity !== "idle") return "still-running";
    if (before?.state !== "running" || before.activity !== "idle") return "turn-interrupted";
    return this.ended.length > 0 ? "tools-stopped" : "nothing-to-stop";
  }

  private endingsOf(rows: readonly ProcessRow[], steps: readonly Step[]): Ending[] {
    this.wanted.push(...rows);
    return rows.map((row) => ({ process: row.identity, steps }));
  }

  /** The last gentle signal gets what is left of the grace; where that is short, each gets its share. */
  private ladder(): Step[] {
    const kill: Step = { signal: "SIGKILL", patienceMs: killPatienceMs };
    if (this.options.now) return [kill];
    let left = this.options.graceMs;
    const gentle = this.adapter.invocation.stopSignals.map(({ signal, patienceMs }, index, all) => {
      const patience = index === all.length - 1 ? left : Math.min(patienceMs, left / (all.length - index));
      left -= patience;
      return { signal, patienceMs: patience };
    });
    return [...gentle, kill];
  }

  sessionIn({ list }: Surroundings): Session | null {
    const { agent, home, id, processes } = this.target.session;
    const same = list.sessions.filter((session) => session.agent === agent && session.home === home);
    if (id !== null) return same.find((session) => session.id === id) ?? null;
    return same.find((session) => session.processes.some((row) => isAmong(row, processes))) ?? null;
  }

  private familyIn(around: Surroundings): Family {
    const { session, launches } = this.target;
    const now = this.sessionIn(around) ?? { ...session, processes: [] };
    const marks = { childMarks, launches: [...launches, ...this.tags()], isHost, isOfAgent, readMaps };
    return familyOf(now, around.list.sessions, around.table, marks, this.callerPids);
  }

  /** Its live processes carried them when we began. */
  private tags = (): string[] =>
    isHosted(this.target.session) ? [] : this.target.session.processes.flatMap((row) => launchToEnd(row) ?? []);
}

const isAmong = (row: ProcessRow, rows: readonly ProcessRow[]): boolean =>
  rows.some((other) => sameProcess(other.identity, row.identity));
