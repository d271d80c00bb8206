// Runs a hook of a launch, as a process of its own that outlives whoever started it. At least once: its beginning is written
// down before, its end after; one that was begun and has no end is run again by the next command that acts.
import { closeSync, constants, existsSync, fstatSync, openSync, statSync } from "node:fs";
import { adapters } from "../adapters/registry.ts";
import { launchOf } from "../core/family.ts";
import type { Session, SessionList } from "../core/session.ts";
import { deadlineIn, pause } from "../lib/deadline.ts";
import { failureText, isGone } from "../observe/failure.ts";
import type { Environment } from "../observe/homes.ts";
import { lookAtSessions } from "../observe/observe.ts";
import { readProcess } from "../observe/processes.ts";
import { withIds } from "../observe/wanted.ts";
import { tryLock } from "../sys/file-lock.ts";
import { git } from "./git.ts";
import { type HookKind, type HookRun, writeHookRun } from "./hook-runs.ts";
import { handedLock, hookEnvironment } from "./hooks.ts";
import { launchFiles, type ReadNote, readNote } from "./notes.ts";
import { performHook } from "./perform-hook.ts";
import { waitFor } from "./wait.ts";

const limits = { limitMs: 5 * 60_000, graceMs: 5_000, mostBytes: 1024 * 1024 };

/** Its launcher has handed over the lock. */
export async function runStartHook(launch: string, directory: string, env: Environment): Promise<void> {
  const note = readNote(env, launch);
  if (note === null) return;
  const session = sessionOf(note, await look(hookEnvironment(env, note), note.session));
  await run({ kind: "start", note, session, directory, late: false, lock: handedLock }, env);
}

/** The holder calls: the program that it started has ended. */
export async function runExitHook(launch: string, directory: string, env: Environment): Promise<void> {
  await untilGone(launch, env);
  const lock = await claim(launch, env, patienceMs);
  // On-start may still be at it, and it may be a start that failed: then there is no note any more.
  const note = lock === null ? null : readNote(env, launch);
  if (lock === null || note === null) return;
  const session = await settled(note, env);
  await run({ kind: "exit", note, session, directory, late: false, lock }, env);
}

/** A later command calls: the agent is gone, and nobody has run it. */
export async function runLateHook(launch: string, env: Environment): Promise<void> {
  const lock = await claim(launch, env, 0);
  const note = lock === null ? null : readNote(env, launch);
  if (lock === null || note === null) return;
  const session = sessionOf(note, await look(hookEnvironment(env, note), note.session));
  await run({ kind: "exit", note, session, directory: session?.cwd ?? null, late: true, lock }, env);
}

/** Longer than a hook may take. */
const patienceMs = 10 * 60_000;
const againMs = 50;

/** null: there is nothing to run any more, or somebody else is at it. */
async function claim(launch: string, env: Environment, mostMs: number): Promise<number | null> {
  const deadline = deadlineIn(mostMs);
  for (;;) {
    const fd = readNote(env, launch) === null ? null : openLock(launchFiles(env, launch).hookLock);
    if (fd === null || tryLock(fd)) return fd;
    closeSync(fd);
    if (deadline.isOver()) return null;
    await pause(againMs);
  }
}

/** Makes nothing: where it is gone, so is the launch, maybe since we read its note. */
function openLock(path: string): number | null {
  try {
    const fd = openSync(path, constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    if (fstatSync(fd).isFile()) return fd;
    closeSync(fd);
    return null;
  } catch (error) {
    if (isGone(error)) return null;
    throw error;
  }
}

/** Of a program that left its agent behind: until that is gone, too. */
async function untilGone(launch: string, env: Environment): Promise<void> {
  const note = readNote(env, launch);
  if (note === null) return;
  const mine = (list: SessionList | null): Session[] =>
    (list?.sessions ?? []).filter(({ processes }) => processes.some((row) => launchOf(row) === launch));
  await waitFor({
    look: () => look(hookEnvironment(env, note), note.session),
    isEnough: (list) => mine(list).length === 0,
    sessions: mine,
    timeoutMs: null,
  });
}

/** A wrapper, or a writer of the agent's own, may write the last line of the record when the agent is gone. */
const settleMs = 2_000;

async function settled(note: ReadNote, env: Environment): Promise<Session | null> {
  const deadline = deadlineIn(settleMs);
  for (;;) {
    const session = sessionOf(note, await look(hookEnvironment(env, note), note.session));
    const outcome = outcomeOf(session);
    if ((outcome !== null && outcome !== "cut-off") || deadline.isOver()) return session;
    await pause(againMs);
  }
}

/** That nobody could look is no reason not to run what is due. */
async function look(env: Environment, session: string | null): Promise<SessionList | null> {
  try {
    return await lookAtSessions({ adapters, env, wanted: withIds([session]) });
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return null;
  }
}

const sessionOf = ({ agent, home, session }: ReadNote, list: SessionList | null): Session | null =>
  list?.sessions.find((each) => each.id === session && each.agent === agent && each.home === home) ?? null;

const outcomeOf = (session: Session | null) => (session?.status.state === "stopped" ? session.status.outcome : null);

interface Due {
  kind: HookKind;
  note: ReadNote;
  session: Session | null;
  /** Where the session was begun; null: nobody knows. */
  directory: string | null;
  late: boolean;
  lock: number;
}

/** A hook that ends its runner each time is not run for ever. */
const mostAttempts = 3;

async function run(due: Due, env: Environment): Promise<void> {
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
  // Where the note is gone meanwhile, nothing is to come back.
  const write = (news: Partial<HookRun>): void => {
    if (existsSync(files.note)) writeHookRun(file, { ...begun, ...news });
  };
  if (attempts > mostAttempts) {
    const problem = `it was cut off ${mostAttempts} times; it is not run again`;
    return write({ attempts: mostAttempts, endedAt: now(), problem });
  }
  write({});
  const cwd = [due.directory, env["HOME"]].find((path) => path != null && isDirectory(path)) ?? "/";
  try {
    const order = { command, cwd, env: { ...(await variables(due, env)), PWD: cwd }, log };
    const { status, timedOut, drained } = await performHook({ ...order, ...limits }, (pid) =>
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

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return false;
  }
}

/** Empty where it is not known. */
async function variables({ kind, note, session, directory, late }: Due, env: Environment) {
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

/** For agents that write it down late, or not at all. */
async function branchAt(directory: string | null, env: Environment): Promise<string> {
  if (directory === null) return "";
  try {
    const { ok, out } = await git(directory, ["symbolic-ref", "--quiet", "--short", "HEAD"], env);
    return ok ? out.trim() : "";
  } catch (error) {
    // No reason not to run it.
    if (!(error instanceof Error)) throw error;
    return "";
  }
}
