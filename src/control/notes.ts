// Launch notes: the facts of a launch that no agent records (name, group, labels, prompt). They are added to rows after statuses
// are derived: a note never creates a row and never changes a status.
import { fsyncSync, unlinkSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { fieldsIn, fieldsOf, isUuid, textIn } from "../agents/fields.ts";
import { type Permission, permissions } from "../agents/invocation.ts";
import { Failure } from "../core/failure.ts";
import type { Problem, ProblemDetail } from "../core/problem.ts";
import type { Session } from "../core/session.ts";
import { writeFileAtomically } from "../lib/atomic-file.ts";
import { isError, isGone, tryOr } from "../lib/errors.ts";
import { failureOf } from "../observe/failure.ts";
import { findFiles, readWhole } from "../observe/files.ts";
import type { Environment } from "../observe/homes.ts";
import { distrustOf, readOwnJson, withOwnFile } from "../observe/own-files.ts";
import { type HookKind, type ReadHookRun, readHookRun } from "./hooks/hook-run.ts";

export interface LaunchNote {
  id: string;
  /** agentctl did not launch the session: a person named or labelled it later. */
  byHand?: boolean;
  agent: string;
  home: string;
  /** null: not known yet; until then the tag of the agent's process ties it to the launch. */
  session: string | null;
  name: string | null;
  group: string | null;
  labels: Record<string, string>;
  at: string;
  permission: Permission | null;
  /** The first characters of the prompt. */
  prompt: string | null;
  /** The session that launched this one; null: a person did. */
  launchedBy: string | null;
  /** The path of the specification, as the person wrote it. */
  spec: string | null;
  worktree: string | null;
  commit: string | null;
  hooks: Hooks;
}

/** A person's commands: one to run when the session's id is known, one after the agent has exited. */
export interface Hooks {
  start: string | null;
  exit: string | null;
}

/** The session of a note, to be compared with `isSameSession`. */
export const sessionOfNote = ({ agent, home, session }: Pick<LaunchNote, "agent" | "home" | "session">) => ({
  ...{ agent, home },
  id: session,
});

export const wantsHooks = ({ start, exit }: Hooks): boolean => start !== null || exit !== null;

/** The newest launch; notes of sessions that were started by hand do not count. */
export const newestLaunch = <N extends LaunchNote>(notes: readonly N[]): N | undefined =>
  notes.find(({ byHand }) => byHand !== true);

/** A launch without any of a person's facts. */
export const unsaid: Omit<LaunchNote, "id" | "agent" | "home" | "session" | "at"> = {
  ...{ name: null, group: null, labels: {}, permission: null, prompt: null, launchedBy: null },
  ...{ spec: null, worktree: null, commit: null, hooks: { start: null, exit: null } },
};

export interface ReadNote extends LaunchNote {
  /** As the holder's shell reports it: 143 may be an exit status or a SIGTERM. null: not over, or the holder was killed. */
  exit: { status: number } | null;
  /** null: not begun, or the launch has no such hook. */
  hookRuns: Record<HookKind, ReadHookRun | null>;
}

const schema = 1;
const noteLimit = 8 * 1024 * 1024;

export const agentctlHome = (env: Environment): string =>
  resolve(env["AGENTCTL_HOME"] || join(env["HOME"] ?? "/", ".agentctl"));

/** The folder of files that agents are started with, written again for every start. */
export const supportFolder = (env: Environment): string => join(agentctlHome(env), "support");

/** Why a folder of agentctl is not used; null: it is used, or does not exist yet. */
export const distrustOfOwn = (env: Environment, name: string): ProblemDetail | null =>
  distrustOf(agentctlHome(env)) ?? distrustOf(join(agentctlHome(env), name));

/** Call it before a file in a folder of agentctl is written or removed. */
export function checkOwn(env: Environment, name: string): void {
  const why = distrustOfOwn(env, name);
  if (why === null) return;
  throw new Failure("write-failed", { path: agentctlHome(env), detail: why, variable: "AGENTCTL_HOME" });
}

export function launchFiles(env: Environment, id: string) {
  const home = agentctlHome(env);
  const beside = (kind: string): string => join(home, "launches", `${id}.${kind}`);
  const log = (kind: string): string => join(home, "logs", `${id}.${kind}`);
  return {
    ...{ note: beside("json"), exit: beside("exit"), out: log("out"), err: log("err"), environment: log("env") },
    ...{ hookLock: beside("hook-lock"), startRun: beside("on-start"), exitRun: beside("on-exit") },
    ...{ startLog: log("on-start"), exitLog: log("on-exit"), prepared: log("import") },
  };
}

/** Does not wait for the disk: a start must be fast. `keepNote` waits, after the launch has answered. */
export function writeNote(env: Environment, note: LaunchNote): void {
  checkOwn(env, "launches");
  writeFileAtomically(launchFiles(env, note.id).note, `${JSON.stringify({ schema, ...note })}\n`, "soon");
}

/** Syncs the note to the disk. Ignores a note that was removed. */
export function keepNote(env: Environment, id: string): void {
  const sync = () =>
    withOwnFile(launchFiles(env, id).note, ({ bytes }) => {
      if (typeof bytes === "number") fsyncSync(bytes);
    });
  tryOr(undefined, sync, isGone);
}

export function forgetLaunch(env: Environment, id: string): void {
  // The folder may not exist. Other errors are ignored, too: the caller already has an error to report.
  for (const path of Object.values(launchFiles(env, id))) tryOr(undefined, () => unlinkSync(path));
}

/** Newest first. */
export function readNotes(env: Environment): { notes: ReadNote[]; problems: Problem[] } {
  const set = { folder: "launches", name: /^(?<id>[0-9a-f-]{36})\.json$/ };
  const { values, problems } = readOwnFiles(env, set, (path) => readNoteAt(env, path), { code: "not-a-note" });
  return { notes: values.sort((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0)), problems };
}

/** Reads a set of agentctl's files. A broken file, or one of another user, becomes a problem and is skipped. */
export function readOwnFiles<T>(
  env: Environment,
  set: { folder: string; name: RegExp },
  read: (path: string) => T | null,
  unlike: ProblemDetail,
): { values: T[]; problems: Problem[] } {
  const values: T[] = [];
  const problems: Problem[] = [];
  const broken = (source: string, detail: ProblemDetail) =>
    problems.push({ code: "note-unreadable", agent: null, source, detail });
  const distrust = distrustOfOwn(env, set.folder);
  if (distrust !== null) broken(agentctlHome(env), distrust);
  const { files, failures } = distrust === null ? findFiles(agentctlHome(env), set) : { files: [], failures: [] };
  for (const { path, detail } of failures) broken(path, detail);
  for (const { path } of files) {
    try {
      const value = read(path);
      if (value === null) broken(path, unlike);
      else values.push(value);
    } catch (error) {
      if (!isGone(error)) broken(path, failureOf(error));
    }
  }
  return { values, problems };
}

/** Notes of launches with hooks. Their lock files name them, so that other notes need not be read. */
export function readHookedNotes(env: Environment): ReadNote[] {
  if (distrustOfOwn(env, "launches") !== null) return [];
  const { files } = findFiles(agentctlHome(env), { folder: "launches", name: /^(?<id>[0-9a-f-]{36})\.hook-lock$/ });
  return files.flatMap(({ path }) => readNote(env, basename(path, ".hook-lock")) ?? []);
}

/** null: there is no such note, or it cannot be read. */
export const readNote = (env: Environment, id: string): ReadNote | null =>
  tryOr(
    null,
    () => (distrustOfOwn(env, "launches") === null ? readNoteAt(env, launchFiles(env, id).note) : null),
    isError,
  );

function readNoteAt(env: Environment, path: string): ReadNote | null {
  const note = parseNote(readOwnJson(path, noteLimit));
  if (note === null) return null;
  const { startRun, exitRun, exit } = launchFiles(env, note.id);
  const hookRuns = {
    start: note.hooks.start === null ? null : readHookRun(startRun),
    exit: note.hooks.exit === null ? null : readHookRun(exitRun),
  };
  return { ...note, exit: readExit(exit), hookRuns };
}

function parseNote(value: unknown): LaunchNote | null {
  const fields = fieldsOf(value);
  if (fields === null || fields["schema"] !== schema) return null;
  const text = (key: string) => textIn(fields, key);
  const [id, agent, home, session, at] = [text("id"), text("agent"), text("home"), text("session"), text("at")];
  if (id === null || !isUuid(id) || agent === null || home === null || at === null) return null;
  const labels = Object.fromEntries(
    Object.entries(fieldsIn(fields, "labels")).filter(
      (entry): entry is [string, string] => typeof entry[1] === "string",
    ),
  );
  const permission = permissions.find((each) => each === fields["permission"]) ?? null;
  const [name, group, prompt, launchedBy] = [text("name"), text("group"), text("prompt"), text("launchedBy")];
  const [spec, worktree, commit] = [text("spec"), text("worktree"), text("commit")];
  const wished = fieldsIn(fields, "hooks");
  const hooks = { start: textIn(wished, "start"), exit: textIn(wished, "exit") };
  const facts = { name, group, labels, permission, prompt, launchedBy, spec, worktree, commit, hooks };
  return { id, agent, home, session, at, ...facts, ...(fields["byHand"] === true ? { byHand: true } : {}) };
}

function readExit(path: string): ReadNote["exit"] {
  const text = tryOr("", () => withOwnFile(path, (file) => readWhole(file, 64).toString("latin1")), isError);
  return /^\d{1,3}\n$/.test(text) ? { status: Number(text) } : null;
}

/** True for a launched process that has released its session and is about to exit: it has no other session. */
export function hasReleasedSession(
  { id, processes }: Session,
  notes: readonly Pick<LaunchNote, "id" | "session">[],
  isOver: (id: string) => boolean,
): boolean {
  if (id !== null) return false;
  const tags = processes.map(({ detail }) => detail?.env?.["AGENTCTL_TAG"]);
  const released = notes.find((note) => tags.includes(note.id))?.session ?? null;
  return released !== null && isOver(released);
}

/** For a list that has all live sessions: a session that is not in it is not live. */
export function notLiveIn(sessions: readonly Session[]): (id: string) => boolean {
  const live = new Set(sessions.filter(({ status }) => status.state !== "stopped").map(({ id }) => id));
  return (id) => !live.has(id);
}
