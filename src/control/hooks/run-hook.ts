// The runner of a hook: a separate process, which outlives the process that started it. A hook runs at least once: the runner
// records its start and its end, and if the end is not recorded, the next acting command runs the hook again.
import { closeSync, constants, existsSync, fstatSync, openSync, statSync } from "node:fs";
import { adapters } from "../../agents/registry.ts";
import { launchOf } from "../../core/family.ts";
import { isSameSession, type Session, type SessionList } from "../../core/session.ts";
import { deadlineIn, pause } from "../../lib/deadline.ts";
import { failureText, isError, isGone, tryOr } from "../../lib/errors.ts";
import type { Environment } from "../../observe/homes.ts";
import { listSessions } from "../../observe/observe.ts";
import { readProcess } from "../../observe/processes.ts";
import { selectIds } from "../../observe/selection.ts";
import { tryLock } from "../../sys/file-lock.ts";
import { git } from "../git/git.ts";
import { launchFiles, type ReadNote, readNote, sessionOfNote } from "../notes.ts";
import { waitFor } from "../wait.ts";
import { runHookCommand } from "./hook-command.ts";
import { type HookKind, type HookRun, writeHookRun } from "./hook-run.ts";
import { hookEnvironment, inheritedLock } from "./start-runner.ts";

const limits = { limitMs: 5 * 60_000, graceMs: 5_000, maxBytes: 1024 * 1024 };

/** Called by the launcher, which passes on the lock. */
export async function runStartHook(launch: string, directory: string, env: Environment): Promise<void> {
  const note = readNote(env, launch);
  if (note === null) return;
  const session = await findSession(note, env);
  await run({ kind: "start", note, session, directory, late: false, lock: inheritedLock }, env);
}

/** Called by the holder, after the program that it started has exited. */
export async function runExitHook(launch: string, directory: string, env: Environment): Promise<void> {
  await untilGone(launch, env);
  const taken = await takeLock(launch, env, patienceMs);
  if (taken === null) return;
  const session = await settled(taken.note, env);
  await run({ kind: "exit", ...taken, session, directory, late: false }, env);
}

/** Called by a later command: the agent is gone, and its on-exit hook was not run. */
export async function runLateHook(launch: string, env: Environment): Promise<void> {
  const taken = await takeLock(launch, env, 0);
  if (taken === null) return;
  const session = await findSession(taken.note, env);
  await run({ kind: "exit", ...taken, session, directory: session?.cwd ?? null, late: true }, env);
}

/** Longer than the time limit of a hook. */
const patienceMs = 10 * 60_000;
const againMs = 50;

/** null: the launch is gone, or another process keeps the lock. */
async function takeLock(launch: string, env: Environment, maxMs: number) {
  const deadline = deadlineIn(maxMs);
  for (;;) {
    const lock = readNote(env, launch) === null ? null : openLock(launchFiles(env, launch).hookLock);
    if (lock === null) return null;
    // Read again under the lock: a launch that failed may have removed its note, and on-start may have ended.
    const note = tryLock(lock) ? readNote(env, launch) : null;
    if (note !== null) return { lock, note };
    closeSync(lock);
    if (deadline.isOver()) return null;
    await pause(againMs);
  }
}

/** Never creates the file: if it is gone, so is the launch. */
function openLock(path: string): number | null {
  const fd = tryOr(null, () => openSync(path, constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK), isGone);
  if (fd === null || fstatSync(fd).isFile()) return fd;
  closeSync(fd);
  return null;
}

/** Waits until the agent is gone, too: the program that the holder started may have left its agent running. */
async function untilGone(launch: string, env: Environment): Promise<void> {
  const note = readNote(env, launch);
  if (note === null) return;
  const mine = (list: SessionList | null): Session[] =>
    (list?.sessions ?? []).filter(({ processes }) => processes.some((row) => launchOf(row) === launch));
  await waitFor({
    look: () => look(note, env),
    isEnough: (list) => mine(list).length === 0,
    sessions: mine,
    timeoutMs: null,
  });
}

/** A wrapper or a helper of the agent may write the last line of the record after the agent has exited. */
const settleMs = 2_000;

async function settled(note: ReadNote, env: Environment): Promise<Session | null> {
  const deadline = deadlineIn(settleMs);
  for (;;) {
    const session = await findSession(note, env);
    const outcome = outcomeOf(session);
    if ((outcome !== null && outcome !== "cut-off") || deadline.isOver()) return session;
    await pause(againMs);
  }
}

/** null: the sessions could not be read. The hook runs anyway. */
async function look(note: ReadNote, env: Environment): Promise<SessionList | null> {
  try {
    return await listSessions({ adapters, env: hookEnvironment(env, note), selection: selectIds([note.session]) });
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return null;
  }
}

const findSession = async (note: ReadNote, env: Environment): Promise<Session | null> =>
  (await look(note, env))?.sessions.find((each) => isSameSession(each, sessionOfNote(note))) ?? null;

const outcomeOf = (session: Session | null) => (session?.status.state === "stopped" ? session.status.outcome : null);

interface DueHook {
  kind: HookKind;
  note: ReadNote;
  session: Session | null;
  /** Where the session began; null: not known. */
  directory: string | null;
  late: boolean;
  lock: number;
}

/** A hook that kills its runner every time must not run forever. */
const maxAttempts = 3;

async function run(due: DueHook, env: Environment): Promise<void> {
  const { kind, note, late, lock } = due;
  const command = note.hooks[kind];
  const before = note.hookRuns[kind];
  const runner = readProcess(process.pid)?.identity;
  if (command === null || runner === undefined || (before !== null && before.state !== "cut-off")) return;
  const files = launchFiles(env, note.id);
  const file = kind === "start" ? files.startRun : files.exitRun;
  const log = kind === "start" ? files.startLog : files.exitLog;
  const attempts = (before?.attempts ?? 0) + 1;
  const begun: HookRun = {
    ...{ runner, process: null, attempts, begunAt: now(), endedAt: null },
    ...{ status: null, timedOut: false, late, problem: null },
  };
  // If the note was removed meanwhile, its record must not be created again.
  const write = (news: Partial<HookRun>): void => {
    if (existsSync(files.note)) writeHookRun(file, { ...begun, ...news });
  };
  if (attempts > maxAttempts) {
    const problem = `was cut off ${maxAttempts} times; not run again`;
    return write({ attempts: maxAttempts, endedAt: now(), problem });
  }
  write({});
  const cwd = [due.directory, env["HOME"]].find((path) => path != null && isDirectory(path)) ?? "/";
  try {
    const order = { command, cwd, env: { ...(await variables(due, env)), PWD: cwd }, log };
    const { status, timedOut, drained } = await runHookCommand({ ...order, ...limits }, (pid) =>
      write({ process: readProcess(pid)?.identity ?? null }),
    );
    write({ endedAt: now(), status, timedOut });
    closeSync(lock);
    await drained;
  } catch (error) {
    write({ endedAt: now(), problem: failureText(error) });
  }
}

const now = (): string => new Date().toISOString();

const isDirectory = (path: string): boolean => tryOr(false, () => statSync(path).isDirectory(), isError);

/** Values that are not known are empty. */
async function variables({ kind, note, session, directory, late }: DueHook, env: Environment) {
  const { AGENTCTL_LATE: _outer, ...plain } = hookEnvironment(env, note) as Record<string, string>;
  const facts = session?.record?.facts;
  return {
    ...plain,
    AGENTCTL_SESSION_ID: note.session ?? "",
    AGENTCTL_AGENT: note.agent,
    AGENTCTL_CWD: directory ?? "",
    AGENTCTL_GROUP: note.group ?? "",
    AGENTCTL_NAME: note.name ?? "",
    AGENTCTL_MODEL: facts?.model ?? "",
    AGENTCTL_BRANCH: facts?.branch ?? (await branchAt(directory, env)),
    AGENTCTL_LAUNCH_ID: note.id,
    AGENTCTL_EXIT_STATUS: kind === "exit" && note.exit !== null ? String(note.exit.status) : "",
    AGENTCTL_OUTCOME: kind === "exit" ? (outcomeOf(session) ?? "") : "",
    ...(late ? { AGENTCTL_LATE: "1" } : {}),
  };
}

/** For agents that record the branch late or never. */
async function branchAt(directory: string | null, env: Environment): Promise<string> {
  if (directory === null) return "";
  try {
    const { ok, out } = await git(directory, ["symbolic-ref", "--quiet", "--short", "HEAD"], env);
    return ok ? out.trim() : "";
  } catch (error) {
    // Without a branch the hook runs anyway.
    if (!(error instanceof Error)) throw error;
    return "";
  }
}
