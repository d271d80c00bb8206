// Ends sessions: the agent's own way or the gentlest signal first, then what it left running, by the rules of core/family.
// What is said afterwards is looked up anew.
import type { Adapter } from "../adapters/adapter.ts";
import { adapterNamed } from "../adapters/registry.ts";
import { type Family, familyOf, type Leftover } from "../core/family.ts";
import { AgentctlError } from "../core/problem.ts";
import { type ProcessIdentity, type ProcessRow, sameProcess } from "../core/process.ts";
import type { Session } from "../core/session.ts";
import { deadlineIn, within } from "../lib/deadline.ts";
import type { Environment } from "../observe/homes.ts";
import { converse } from "../observe/hosts.ts";
import { runCommand } from "../sys/spawn.ts";
import { commandOf } from "./binary.ts";
import { type Ended, type Ending, endProcesses, type Step } from "./end.ts";
import { agentEnvironment } from "./environment.ts";
import { lookAround, type Surroundings } from "./surroundings.ts";

export interface StopOptions {
  graceMs: number;
  /** No gentle signal: SIGKILL at once. */
  now: boolean;
  /** End the leftovers, too. */
  leftovers: boolean;
  /** End the host of a hosted session, and with it everything else that it hosts. */
  host: boolean;
}

export interface StopTarget {
  session: Session;
  /** Its launches, as the notes know them. */
  launches: readonly string[];
}

export interface Stopped {
  /** As it is now. null: nothing is recorded of it any more. */
  session: Session | null;
  ended: Ended[];
  leftovers: Leftover[];
  /** What could not be ended. */
  survivors: ProcessRow[];
  /** What its host or its supervisor said to it. */
  said: string | null;
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
  const said = await Promise.all(courses.map((course) => course.askItself(env)));
  const owners = await endProcesses(courses.flatMap((course) => course.ownerEndings()));
  for (const course of courses) course.take(owners);

  let now = await lookAround(env);
  for (let round = 1; round <= mostRounds; round += 1) {
    const endings = courses.flatMap((course) => course.memberEndings(now));
    if (endings.length === 0) break;
    const members = await endProcesses(endings);
    for (const course of courses) course.take(members);
    now = await lookAround(env);
  }
  return courses.map((course, index) => course.answer(now, said[index] ?? null));
}

class StopCourse {
  private readonly adapter: Adapter;
  private readonly family: Family;
  private readonly ended: Ended[] = [];
  private readonly survivors: ProcessRow[] = [];
  /** Everything that was ever to be ended for this session. */
  private readonly wanted: ProcessIdentity[] = [];

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

  /** A hosted session through its host, a background job through its supervisor. */
  async askItself(env: Environment): Promise<string | null> {
    const { session } = this.target;
    if (session.status.state !== "running" || this.options.now) return null;
    if (this.isHosted()) return this.options.host ? null : await interruptHosted(session, this.adapter);
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

  ownerEndings(): Ending[] {
    const { session } = this.target;
    if (session.status.state !== "running" || (this.isHosted() && !this.options.host)) return [];
    const isAsked = session.job !== null && !this.options.now;
    const steps = isAsked ? [{ signal: null, patienceMs: this.options.graceMs }] : this.ladder();
    return this.endingsOf(session.processes, steps);
  }

  memberEndings(now: Surroundings): Ending[] {
    if (
      this.survivors.some((row) =>
        this.target.session.processes.some((owner) => sameProcess(owner.identity, row.identity)),
      )
    )
      return [];
    const family = this.familyIn(now);
    const before = [
      ...this.family.members,
      ...(this.options.leftovers ? this.family.leftovers.map(({ row }) => row) : []),
    ];
    const stillThere = now.table.rows.filter((row) => before.some((old) => sameProcess(old.identity, row.identity)));
    const found = [
      ...stillThere,
      ...family.members,
      ...(this.options.leftovers ? family.leftovers.map(({ row }) => row) : []),
    ];
    const tried = (row: ProcessRow) => this.survivors.some((other) => sameProcess(other.identity, row.identity));
    const fresh = [...new Map(found.map((row) => [row.identity.pid, row])).values()].filter(
      (row) => row.state !== "Z" && row.state !== "X" && !tried(row) && !this.callerPids.has(row.identity.pid),
    );
    const gentle: Step[] = this.options.now ? [] : [{ signal: "SIGTERM", patienceMs: memberPatienceMs }];
    return this.endingsOf(fresh, [...gentle, { signal: "SIGKILL", patienceMs: killPatienceMs }]);
  }

  take({ ended, survivors }: { ended: readonly Ended[]; survivors: readonly ProcessRow[] }): void {
    const mine = (process: ProcessIdentity) => this.wanted.some((wanted) => sameProcess(wanted, process));
    for (const each of ended) if (mine(each.process)) this.ended.push(each);
    for (const row of survivors) if (mine(row.identity)) this.survivors.push(row);
  }

  answer(now: Surroundings, said: string | null): Stopped {
    const { leftovers } = this.familyIn(now);
    return { session: this.sessionIn(now), ended: this.ended, leftovers, survivors: this.survivors, said };
  }

  private endingsOf(rows: readonly ProcessRow[], steps: readonly Step[]): Ending[] {
    this.wanted.push(...rows.map((row) => row.identity));
    return rows.map((row) => ({ process: row.identity, steps }));
  }

  /** The last gentle signal gets what is left of the grace. */
  private ladder(): Step[] {
    const kill: Step = { signal: "SIGKILL", patienceMs: killPatienceMs };
    if (this.options.now) return [kill];
    let left = this.options.graceMs;
    const gentle = this.adapter.invocation.stopSignals.map(({ signal, patienceMs }, index, all) => {
      const patience = index === all.length - 1 ? left : Math.min(patienceMs, left);
      left -= patience;
      return { signal, patienceMs: patience };
    });
    return [...gentle, kill];
  }

  private isHosted(): boolean {
    const { status } = this.target.session;
    return status.state === "running" && status.owner.kind === "host";
  }

  private sessionIn({ list }: Surroundings): Session | null {
    const { agent, home, id, processes } = this.target.session;
    const same = list.sessions.filter((session) => session.agent === agent && session.home === home);
    if (id !== null) return same.find((session) => session.id === id) ?? null;
    return (
      same.find((session) =>
        session.processes.some((row) => processes.some((old) => sameProcess(old.identity, row.identity))),
      ) ?? null
    );
  }

  private familyIn(around: Surroundings): Family {
    const { session, launches } = this.target;
    const now = this.sessionIn(around) ?? { ...session, processes: [] };
    const marks = { childMark: this.adapter.invocation.childMark, launches: [...launches, ...this.tags()] };
    return familyOf(now, around.list.sessions, around.table, marks, this.callerPids);
  }

  /** Its live processes carried them when we began. */
  private tags = (): string[] =>
    this.isHosted() ? [] : this.target.session.processes.flatMap((row) => row.detail?.env?.["AGENTCTL_TAG"] ?? []);
}

const hostPatienceMs = 10_000;

/** Ends the turn of a hosted session; the session stays loaded. */
export async function interruptHosted(session: Session, adapter: Adapter): Promise<string> {
  const { status } = session;
  if (adapter.host === null || session.id === null || status.state !== "running" || status.owner.kind !== "host")
    throw new Error(`${session.id} has no host to ask`);
  if (!status.owner.address.startsWith("/"))
    throw new AgentctlError(
      "refused",
      `its host (${status.owner.address}) can only be spoken to by the program that started it`,
    );
  const { answer, hangUp } = converse(status.owner.address, adapter.host.transport, adapter.host.interrupt(session.id));
  try {
    const said = await within(deadlineIn(hostPatienceMs), answer);
    if (said === null) throw new AgentctlError("timed-out", `its host ${status.owner.address} does not answer`);
    if (!said.ok) throw new AgentctlError("failed", `its host refused: ${said.problem.message}`);
    return said.value;
  } finally {
    hangUp();
  }
}
