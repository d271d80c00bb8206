// Starts an agent under a holder and waits until the agent confirms its session. Returns the agent's own session id, or throws and
// leaves nothing running.

import { closeSync, mkdirSync, openSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Adapter } from "../agents/adapter.ts";
import type { Order } from "../agents/invocation.ts";
import { Failure } from "../core/failure.ts";
import type { Leftover } from "../core/family.ts";
import type { Notice } from "../core/notice.ts";
import type { Session } from "../core/session.ts";
import { writeFileAtomically, writeWhole } from "../lib/atomic-file.ts";
import { deadlineIn, unlessAborted, within } from "../lib/deadline.ts";
import { errorCode, failureText } from "../lib/errors.ts";
import { asFailure, failureOf } from "../observe/failure.ts";
import type { Environment } from "../observe/homes.ts";
import { selfCommand } from "../sys/self.ts";
import type { SpawnedHolder } from "../sys/spawn.ts";
import { callerEnvironment } from "./child-environment.ts";
import { endLaunch } from "./end-launch.ts";
import type { Caller } from "./guard.ts";
import { startHolder } from "./holder.ts";
import { homeVariable, startOnStartHook, takeHookLock } from "./hooks/start-runner.ts";
import { agentctlHome, checkOwn, forgetLaunch, type LaunchNote, launchFiles, wantsHooks, writeNote } from "./notes.ts";
import { prepareSession, removePreparedFile, undoPreparation } from "./prepare-session.ts";
import { type Sign, StartConfirmation } from "./start-confirmation.ts";
import type { StopReport } from "./stop.ts";
import type { NewWorktree } from "./worktrees/add-worktree.ts";

/**
 * What will be started: the request of a person, checked and resolved. The adapter turns its `Order` into a command line;
 * `LaunchNote` is the part that is kept.
 */
export type LaunchPlan = Order & {
  caller: Caller;
  adapter: Adapter;
  command: readonly string[];
  prompt: string;
  env: Environment;
  note: Pick<LaunchNote, "name" | "group" | "labels" | "launchedBy" | "spec" | "worktree" | "commit" | "hooks">;
  /** null: the session starts in `cwd`. */
  newWorktree: NewWorktree | null;
  maxTimeMs: number | null;
  startTimeoutMs: number;
  /** The agent is stopped when this process exits. */
  tied: boolean;
  /** The session to continue, as it was before; null: a new one. */
  before: Session | null;
  /** The reference by which a person named the session to continue. */
  ref: string | null;
  /** Start even if another session is active in the same place. */
  share: boolean;
  /** Without --permission, the agent's own setting allows everything. */
  ownIsBypass: boolean;
};

export interface Launched {
  id: string;
  launch: string;
  /** When the agent was started, before its session was confirmed. */
  at: number;
  /** null: the session lives in a server, and no process was started. */
  holder: SpawnedHolder | null;
  /** The note could not be written, or --on-start not run. */
  notices: Notice[];
}

export interface StartedAgent {
  /** Throws, and leaves nothing running, if the agent does not begin its session. */
  confirmed(signal: AbortSignal): Promise<Launched>;
}

/** Returns as soon as the holder is in the process table: from then on every other launch sees it. */
export function startAgent(wanted: LaunchPlan): StartedAgent {
  const plan = withStart(wanted);
  const launch = crypto.randomUUID();
  let hookLock: number | null = null;
  let confirmation: StartConfirmation | null = null;
  try {
    if (wantsHooks(plan.note.hooks)) hookLock = takeHookLock(plan.env, launch);
    saveNote(plan, launch, plan.session);
    // Created before the agent starts: everything that appears from now on is the agent's.
    confirmation = new StartConfirmation(plan, launch);
    const started = { launch, hookLock, confirmation, holder: spawn(plan, launch) };
    return { confirmed: (signal) => confirm(plan, started, signal) };
  } catch (error) {
    confirmation?.giveUp();
    forgetLaunch(plan.env, launch);
    removePreparedFile(plan);
    if (hookLock !== null) closeSync(hookLock);
    throw startError(error, plan);
  }
}

/** Adds the time of the start and, if the session is new and the agent accepts an id, its id. */
function withStart(plan: LaunchPlan): LaunchPlan {
  const at = Date.now();
  if (plan.kind === "continue") return { ...plan, at };
  return { ...plan, at, session: plan.session ?? plan.adapter.invocation.chooseId?.(crypto.randomUUID(), at) ?? null };
}

interface Started {
  launch: string;
  /** The lock on its hooks, until its session has begun; null: it has no hooks. */
  hookLock: number | null;
  confirmation: StartConfirmation;
  holder: SpawnedHolder;
}

async function confirm(plan: LaunchPlan, started: Started, signal: AbortSignal): Promise<Launched> {
  const { launch, hookLock, confirmation, holder } = started;
  const { adapter, home, note, cwd, env, at } = plan;
  try {
    const sign = await unlessAborted(signal, confirmation.untilBegun(holder.pid));
    if (sign.kind !== "begun") throw failedStart(sign, plan);
    const notices = [
      sign.session === plan.session ? null : noteOrNotice(plan, launch, sign.session),
      hookLock === null
        ? null
        : startOnStartHook(hookLock, launch, { agent: adapter.agent, home, hooks: note.hooks, cwd, env }),
    ].filter((notice) => notice !== null);
    return { id: sign.session, launch, at, holder, notices };
  } catch (error) {
    confirmation.giveUp();
    const ended = leftoverNotices(await endLaunch(launch, plan.caller, env));
    // The holder writes its exit file last: removed earlier, the file would come back.
    await within(deadlineIn(holderPatienceMs), holder.exited);
    forgetLaunch(env, launch);
    const left = [...ended, ...(await undoPreparation(plan))];
    if (hookLock !== null) closeSync(hookLock);
    if (left.length === 0 || !(error instanceof Failure)) throw error;
    throw new Failure(error.code, error.facts, { cause: error, notices: left });
  }
}

/** The session has begun, so a note that cannot be written is only a notice. */
export function noteOrNotice(plan: LaunchPlan, launch: string, session: string): Notice | null {
  try {
    saveNote(plan, launch, session);
    return null;
  } catch (error) {
    return { code: "note-not-saved", facts: { failure: asFailure(error) } };
  }
}

/** Its time is always that of the start: everything that the agent wrote since then is its own. */
function saveNote(plan: LaunchPlan, launch: string, session: string | null): void {
  const { adapter, home, env, note, permission } = plan;
  const prompt = plan.prompt.slice(0, promptKept);
  const at = new Date(plan.at).toISOString();
  writeNote(env, { ...note, id: launch, agent: adapter.agent, home, session, at, permission, prompt });
}

function spawn(plan: LaunchPlan, launch: string): SpawnedHolder {
  const { adapter, cwd, home, env, permission, note, maxTimeMs, tied } = plan;
  const { invocation } = adapter;
  const permitted = permission === null ? null : invocation.permissions[permission];
  const files = launchFiles(env, launch);
  for (const folder of ["logs", "support"]) checkOwn(env, folder);
  mkdirSync(join(agentctlHome(env), "logs"), { recursive: true, mode: 0o700 });
  const opened: number[] = [];
  const open = (fd: number): number => {
    opened.push(fd);
    return fd;
  };
  try {
    return startHolder({
      launch,
      sessionName: plan.session === null ? null : `${adapter.agent}:${plan.session}`,
      exitFile: files.exit,
      limitMs: maxTimeMs,
      tied,
      hasExitHook: note.hooks.exit !== null,
      ...wholeEnvironment(
        prepareSession(plan, files.prepared),
        { ...callerEnvironment(env, adapter, home), ...homeVariable(env), PWD: cwd },
        files.environment,
      ),
      agentOnly: { ...invocation.environment, ...permitted?.environment?.(env, plan) },
      cwd,
      files: {
        stdin: invocation.promptBy === "stdin" ? open(promptFile(env, launch, plan.prompt)) : null,
        stdout: open(openSync(files.out, "wx", 0o600)),
        stderr: open(openSync(files.err, "wx", 0o600)),
      },
    });
  } finally {
    for (const fd of opened) closeSync(fd);
  }
}

/**
 * A shell drops variables whose names are not identifiers (exported functions, npm settings). They go through a file, from which
 * `agentctl exec-agent` restores them before it becomes the agent.
 */
function wholeEnvironment(command: string[], env: Record<string, string>, file: string) {
  const odd = Object.entries(env).filter(([name]) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name));
  if (odd.length === 0) return { command, env };
  writeFileAtomically(file, JSON.stringify(Object.fromEntries(odd)), "soon");
  return { command: [...selfCommand(), "exec-agent", file, ...command], env };
}

export const leftoverNotices = (stopped: readonly StopReport[]): Notice[] =>
  stopped.flatMap(({ session, failure, leftovers, survivors }): Notice[] => [
    ...(failure === null ? [] : [{ code: "not-stopped", facts: { failure } } as const]),
    ...(session?.status.state === "unknown"
      ? [{ code: "stop-unconfirmed", facts: { why: session.status.why } } as const]
      : []),
    ...processNotices("still-running", survivors),
    ...processNotices("left-running", leftovers),
  ]);

const processNotices = (code: "still-running" | "left-running", rows: readonly Leftover[]): Notice[] =>
  rows.length === 0
    ? []
    : [{ code, facts: { processes: rows.map(({ row, why }) => ({ pid: row.identity.pid, name: row.name, why })) } }];

const promptKept = 4_000;
const holderPatienceMs = 2_000;

/** An open descriptor of a file that is already unlinked: only the agent can read the prompt. */
function promptFile(env: Environment, launch: string, prompt: string): number {
  const path = join(agentctlHome(env), "logs", `${launch}.prompt`);
  const writing = openSync(path, "wx", 0o600);
  try {
    writeWhole(writing, prompt);
    return openSync(path, "r");
  } finally {
    closeSync(writing);
    rmSync(path, { force: true });
  }
}

function startError(error: unknown, { env, command, cwd }: LaunchPlan): unknown {
  if (!(error instanceof Error) || error instanceof Failure) return error;
  const code = errorCode(error);
  const folder = agentctlHome(env);
  if (code === "ENOSPC" || code === "EDQUOT") return new Failure("no-disk-space", { folder }, { cause: error });
  if (code === "E2BIG") return new Failure("arguments-too-long", {}, { cause: error });
  if ("syscall" in error && String(error.syscall).startsWith("posix_spawn"))
    return new Failure(
      "program-not-started",
      { program: command[0] ?? "", cwd, detail: failureText(error) },
      { cause: error },
    );
  const facts = { path: folder, detail: failureOf(error), variable: "AGENTCTL_HOME" };
  return new Failure("write-failed", facts, { cause: error });
}

function failedStart(sign: Exclude<Sign, { kind: "begun" }>, { adapter, startTimeoutMs }: LaunchPlan): Failure {
  const { title: agent, command: program } = adapter;
  const output = sign.lastWords;
  if (sign.kind === "silent") return new Failure("start-timed-out", { agent, seconds: startTimeoutMs / 1000, output });
  const known = adapter.invocation.startFailures.find(({ pattern }) => pattern.test(output));
  if (known === undefined) return new Failure("agent-exited", { agent, status: sign.status, output });
  const { pattern: _, ...problem } = known;
  return new Failure("agent-refused-to-start", { agent, program, problem, output });
}
