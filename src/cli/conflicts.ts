// Conflicts between sessions, as a few lines of text.
import type { Session } from "../core/session.ts";
import { oneLine, someOf } from "../lib/width.ts";
import type { SessionConflict, SessionConflicts } from "../service/conflicts.ts";
import type { SessionRow } from "../service/look.ts";

const shownConflicts = 5;
const shownFiles = 3;
const shownSessions = 3;
const shownPlaces = 3;

export const conflictsJson = ({ conflicts }: SessionConflicts) =>
  conflicts.map(({ kind, sessions, files }) => ({ kind, sessions: sessions.map(({ id }) => id), files }));

export function conflictLines({ conflicts, omitted, unseen }: SessionConflicts, rows: readonly SessionRow[]): string {
  const refs = new Map(rows.map(({ session, ref }) => [session, ref]));
  const more = conflicts.length - Math.min(conflicts.length, shownConflicts) + omitted;
  const lines = [
    ...conflicts.slice(0, shownConflicts).map((conflict) => conflictText(conflict, refs)),
    ...(more > 0 ? [`… and ${more} more conflicts; agentctl list --json shows more`] : []),
    ...(unseen.length > 0 ? [unseenText(unseen)] : []),
  ];
  return lines.map((line) => `agentctl: ${line}\n`).join("");
}

export const unseenText = (unseen: readonly string[]): string =>
  oneLine(`changed files were not compared, git did not answer: ${someOf(unseen, shownPlaces)}`);

export function conflictText({ kind, sessions, files }: SessionConflict, refs: ReadonlyMap<Session, string>): string {
  const names = sessions
    .slice(0, sessions.length === shownSessions + 1 ? sessions.length : shownSessions)
    .map((session) => `${session.agent} ${refs.get(session) ?? session.id ?? "?"}`);
  const last = sessions.length > names.length ? `${sessions.length - names.length} more` : names.pop();
  const all = `${names.join(", ")} and ${last}`;
  if (kind === "index") return oneLine(`${all} work in the same worktree: ${sessions[0]?.cwd ?? ""}`);
  return oneLine(`${all} have ${sessions.length === 2 ? "both" : "all"} changed ${someOf(files, shownFiles)}`);
}
