// Launch notes: what a person said at a launch and no agent knows (name, group, labels, prompt). They decorate rows; they
// never create one and no status looks at them. Deleting them loses labels, nothing else.
import { unlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import { fieldsOf, isUuid, textIn } from "../adapters/fields.ts";
import { type Permission, permissions } from "../adapters/invocation.ts";
import type { Problem } from "../core/problem.ts";
import { writeFileAtomically } from "../lib/atomic-file.ts";
import { errorCode, failureText } from "../observe/failure.ts";
import { findFiles, readWhole, withFile } from "../observe/files.ts";
import type { Environment } from "../observe/homes.ts";

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
}

/** What a note says of its launch now. */
export interface ReadNote extends LaunchNote {
  /** The shell's word: 143 may be an exit or a SIGTERM. null: not over, or its holder was killed. */
  exit: { status: number } | null;
}

const schema = 1;
const noteLimit = 8 * 1024 * 1024;

export const agentctlHome = (env: Environment): string =>
  resolve(env["AGENTCTL_HOME"] || join(env["HOME"] ?? "/", ".agentctl"));

/** Everything that is kept of one launch. */
export function launchFiles(env: Environment, id: string) {
  const home = agentctlHome(env);
  const note = join(home, "launches", `${id}.json`);
  const exit = join(home, "launches", `${id}.exit`);
  const log = (kind: string): string => join(home, "logs", `${id}.${kind}`);
  return { note, exit, out: log("out"), err: log("err"), environment: log("env") };
}

export function writeNote(env: Environment, note: LaunchNote): void {
  writeFileAtomically(launchFiles(env, note.id).note, `${JSON.stringify({ schema, ...note })}\n`);
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
  const set = { folder: "launches", name: /^(?<id>[0-9a-f-]{36})\.json$/ };
  const { files, failures } = findFiles(agentctlHome(env), set);
  for (const { path, message } of failures) broken(path, message);
  for (const { path } of files) {
    try {
      const value: unknown = withFile(path, (file) => JSON.parse(readWhole(file, noteLimit).toString("utf8")));
      const note = parseNote(value);
      if (note === null) broken(path, "not a launch note");
      else notes.push({ ...note, exit: readExit(env, note.id) });
    } catch (error) {
      broken(path, failureText(error));
    }
  }
  notes.sort((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0));
  return { notes, problems };
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
  return { id, agent, home, session, name, group, labels, at, permission, prompt, launchedBy };
}

function readExit(env: Environment, id: string): ReadNote["exit"] {
  try {
    const text = withFile(launchFiles(env, id).exit, (file) => readWhole(file, 64).toString("latin1"));
    return /^\d{1,3}\n$/.test(text) ? { status: Number(text) } : null;
  } catch (error) {
    // Without it nobody knows the status: not over yet, or the holder was killed.
    if (errorCode(error) === "" && !(error instanceof Error)) throw error;
    return null;
  }
}
