// Sessions in each other's way, in words and as JSON.
import type { Conflict } from "../control/radar.ts";
import { oneLine } from "../lib/width.ts";
import type { Row } from "./sessions.ts";

const shownFiles = 3;

export const conflictsJson = (conflicts: readonly Conflict[]) =>
  conflicts.map(({ kind, sessions, files }) => ({ kind, sessions: sessions.map(({ id }) => id), files }));

export const conflictLines = (conflicts: readonly Conflict[], rows: readonly Row[]): string =>
  conflicts.map((conflict) => `agentctl: ${conflictText(conflict, rows)}\n`).join("");

export function conflictText({ kind, sessions, files }: Conflict, rows: readonly Row[]): string {
  const [a = "", b = ""] = sessions.map(
    (session) => `${session.agent} ${rows.find((row) => row.session === session)?.ref ?? session.id ?? "?"}`,
  );
  if (kind === "index") return oneLine(`${a} and ${b} are at work in one worktree: ${sessions[0].cwd ?? ""}`);
  const more = files.length > shownFiles ? `, and ${files.length - shownFiles} more` : "";
  return oneLine(`${a} and ${b} have both changed ${files.slice(0, shownFiles).join(", ")}${more}`);
}
