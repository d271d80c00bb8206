// Launch notes: what a person said at a launch and no agent knows (name, group, labels, prompt). They decorate rows; they
// never create one and no status looks at them. Deleting them loses labels, nothing else.
import { join } from "node:path";
import { fieldsOf, isUuid, textIn } from "../adapters/fields.ts";
import type { Problem } from "../core/problem.ts";
import { writeFileAtomically } from "../lib/atomic-file.ts";
import { failureText } from "../observe/failure.ts";
import { findFiles, readWhole, withFile } from "../observe/files.ts";
import type { Environment } from "../observe/homes.ts";

export interface LaunchNote {
  id: string;
  agent: string;
  home: string;
  session: string;
  name: string | null;
  group: string | null;
  labels: Record<string, string>;
  at: string;
}

const schema = 1;
const noteLimit = 8 * 1024 * 1024;

export const agentctlHome = (env: Environment): string => env["AGENTCTL_HOME"] || join(env["HOME"] ?? "/", ".agentctl");

export function writeNote(env: Environment, note: LaunchNote): void {
  const path = join(agentctlHome(env), "launches", `${note.id}.json`);
  writeFileAtomically(path, `${JSON.stringify({ schema, ...note })}\n`);
}

/** Newest first. A broken or foreign file is said and passed over. */
export function readNotes(env: Environment): { notes: LaunchNote[]; problems: Problem[] } {
  const notes: LaunchNote[] = [];
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
      else notes.push(note);
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
  if (id === null || !isUuid(id) || agent === null || home === null || session === null || at === null) return null;
  const labels: Record<string, string> = {};
  for (const [key, label] of Object.entries(fieldsOf(fields["labels"]) ?? {}))
    if (typeof label === "string") labels[key] = label;
  return { id, agent, home, session, name: text("name"), group: text("group"), labels, at };
}
