// Launch notes: what a person said at a launch and no agent knows (name, group, labels, prompt). They decorate rows; they
// never create one and no status looks at them. Deleting them loses labels, nothing else.
import { fsyncSync, unlinkSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { fieldsOf, isUuid, textIn } from "../adapters/fields.ts";
import { type Permission, permissions } from "../adapters/invocation.ts";
import { AgentctlError, type Problem } from "../core/problem.ts";
import { writeFileAtomically } from "../lib/atomic-file.ts";
import { errorCode, failureText, isGone } from "../observe/failure.ts";
import { findFiles, readWhole } from "../observe/files.ts";
import type { Environment } from "../observe/homes.ts";
import { distrustOf, withOwnFile } from "../observe/own-files.ts";
import { type HookKind, type ReadHookRun, readHookRun } from "./hook-runs.ts";

export interface LaunchNote {
  id: string;
  agent: string;
  home: string;
  /** null: the agent has not told it yet; until then the launch is known by the tag of its process. */
  session: string | null;
  name: string | null;
  group: string | null;
  labels: Record<string, string>;
  at: string;
  permission: Permission | null;
  /** Its beginning. */
  prompt: string | null;
  /** The session that this one was launched from, if it was launched from inside of one. */
  launchedBy: string | null;
  /** The file that says what is to be done, as a person named it. */
  spec: string | null;
  /** The worktree that was made for it. */
  worktree: string | null;
  /** The commit that its place was at. */
  commit: string | null;
  hooks: Hooks;
}

/** Commands that a person wants to be run: when its session's id is known, and when the agent has ended. */
export interface Hooks {
  start: string | null;
  exit: string | null;
}

export const wantsHooks = ({ start, exit }: Hooks): boolean => start !== null || exit !== null;

const noHooks: Hooks = { start: null, exit: null };

/** A launch about which a person said nothing. */
export const unsaid: Omit<LaunchNote, "id" | "agent" | "home" | "session" | "at"> = {
  ...{ name: null, group: null, labels: {}, permission: null, prompt: null, launchedBy: null },
  ...{ spec: null, worktree: null, commit: null, hooks: noHooks },
};

/** What a note says of its launch now. */
export interface ReadNote extends LaunchNote {
  /** The shell's word: 143 may be an exit or a SIGTERM. null: not over, or its holder was killed. */
  exit: { status: number } | null;
  /** null: not begun, or nobody wished for one. */
  hookRuns: Record<HookKind, ReadHookRun | null>;
}

const schema = 1;
const noteLimit = 8 * 1024 * 1024;

export const agentctlHome = (env: Environment): string =>
  resolve(env["AGENTCTL_HOME"] || join(env["HOME"] ?? "/", ".agentctl"));

/** Files that agents are started with, written anew each time. */
export const supportFolder = (env: Environment): string => join(agentctlHome(env), "support");

/** Why a folder in agentctl's own is not used; null: it is, or it is not there yet. */
export const distrustOfOwn = (env: Environment, name: string): string | null =>
  distrustOf(agentctlHome(env)) ?? distrustOf(join(agentctlHome(env), name));

/** Before anything is written to a folder in agentctl's own, or removed from it. */
export function checkOwn(env: Environment, name: string): void {
  const why = distrustOfOwn(env, name);
  if (why === null) return;
  const hint = "AGENTCTL_HOME names another folder";
  throw new AgentctlError("failed", `cannot write to ${agentctlHome(env)}: ${why}`, { hint });
}

/** Everything that is kept of one launch. */
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

/** A start does not wait for the disk; whoever has given its answer does (`keepNote`). */
export function writeNote(env: Environment, note: LaunchNote): void {
  checkOwn(env, "launches");
  writeFileAtomically(launchFiles(env, note.id).note, `${JSON.stringify({ schema, ...note })}\n`, "soon");
}

/** From now on it survives a power cut, too. Where there is none any more, nobody wants it. */
export function keepNote(env: Environment, id: string): void {
  try {
    withOwnFile(launchFiles(env, id).note, ({ bytes }) => {
      if (typeof bytes === "number") fsyncSync(bytes);
    });
  } catch (error) {
    if (!isGone(error)) throw error;
  }
}

/** Nothing stays of a launch that never became a session. */
export function forgetLaunch(env: Environment, id: string): void {
  for (const path of Object.values(launchFiles(env, id)))
    try {
      unlinkSync(path);
    } catch (error) {
      // Where there is no folder there is no file; whoever calls has a more telling error at hand.
      if (errorCode(error) === "") throw error;
    }
}

/** Newest first. A broken or foreign file is said and passed over. */
export function readNotes(env: Environment): { notes: ReadNote[]; problems: Problem[] } {
  const notes: ReadNote[] = [];
  const problems: Problem[] = [];
  const broken = (source: string, message: string) =>
    problems.push({ code: "note-unreadable", agent: null, source, message });
  const distrust = distrustOfOwn(env, "launches");
  if (distrust !== null) {
    broken(agentctlHome(env), distrust);
    return { notes, problems };
  }
  const set = { folder: "launches", name: /^(?<id>[0-9a-f-]{36})\.json$/ };
  const { files, failures } = findFiles(agentctlHome(env), set);
  for (const { path, message } of failures) broken(path, message);
  for (const { path } of files) {
    try {
      const note = readNoteAt(env, path);
      if (note === null) broken(path, "not a launch note");
      else notes.push(note);
    } catch (error) {
      broken(path, failureText(error));
    }
  }
  notes.sort((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0));
  return { notes, problems };
}

/** Of launches with hooks: each has a lock for them beside its note, and all others need not be read. */
export function readHookedNotes(env: Environment): ReadNote[] {
  if (distrustOfOwn(env, "launches") !== null) return [];
  const { files } = findFiles(agentctlHome(env), { folder: "launches", name: /^(?<id>[0-9a-f-]{36})\.hook-lock$/ });
  return files.flatMap(({ path }) => readNote(env, basename(path, ".hook-lock")) ?? []);
}

/** null: there is none, or nobody can read it. */
export function readNote(env: Environment, id: string): ReadNote | null {
  try {
    return distrustOfOwn(env, "launches") === null ? readNoteAt(env, launchFiles(env, id).note) : null;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return null;
  }
}

function readNoteAt(env: Environment, path: string): ReadNote | null {
  const note = parseNote(withOwnFile(path, (file) => JSON.parse(readWhole(file, noteLimit).toString("utf8"))));
  if (note === null) return null;
  const { startRun, exitRun } = launchFiles(env, note.id);
  const { start, exit } = note.hooks;
  const hookRuns = {
    start: start === null ? null : readHookRun(startRun),
    exit: exit === null ? null : readHookRun(exitRun),
  };
  return { ...note, exit: readExit(env, note.id), hookRuns };
}

function parseNote(value: unknown): LaunchNote | null {
  const fields = fieldsOf(value);
  if (fields === null || fields["schema"] !== schema) return null;
  const text = (key: string) => textIn(fields, key);
  const [id, agent, home, session, at] = [text("id"), text("agent"), text("home"), text("session"), text("at")];
  if (id === null || !isUuid(id) || agent === null || home === null || at === null) return null;
  const labels: Record<string, string> = {};
  for (const [key, label] of Object.entries(fieldsOf(fields["labels"]) ?? {}))
    if (typeof label === "string") labels[key] = label;
  const permission = permissions.find((each) => each === fields["permission"]) ?? null;
  const [name, group, prompt, launchedBy] = [text("name"), text("group"), text("prompt"), text("launchedBy")];
  const [spec, worktree, commit] = [text("spec"), text("worktree"), text("commit")];
  const wished = fieldsOf(fields["hooks"]) ?? {};
  const hooks = { start: textIn(wished, "start"), exit: textIn(wished, "exit") };
  const facts = { name, group, labels, permission, prompt, launchedBy, spec, worktree, commit, hooks };
  return { id, agent, home, session, at, ...facts };
}

function readExit(env: Environment, id: string): ReadNote["exit"] {
  try {
    const text = withOwnFile(launchFiles(env, id).exit, (file) => readWhole(file, 64).toString("latin1"));
    return /^\d{1,3}\n$/.test(text) ? { status: Number(text) } : null;
  } catch (error) {
    // Without it nobody knows the status: not over yet, or the holder was killed.
    if (errorCode(error) === "" && !(error instanceof Error)) throw error;
    return null;
  }
}
