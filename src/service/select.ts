// Selects the sessions that a command is about. Filters are data; `list` and the commands that act use the same ones.
import type { Session } from "../core/session.ts";
import { placeOf } from "../observe/place.ts";
import { liveOnly, type Selection, selectWrittenSince } from "../observe/selection.ts";
import { launchedSessions, type SessionRow } from "./look.ts";
import type { ReferenceContext } from "./reference.ts";
import { statusWord } from "./session-json.ts";

/** A session is selected if it meets every criterion that is set. */
export interface SessionFilter {
  agents: readonly string[];
  /** Words for a status, or states. */
  statuses: readonly string[];
  group: string | null;
  labels: readonly (readonly [key: string, value: string])[];
  /** A directory: selects the sessions in its git worktree, or in itself. */
  cwd: string | null;
  needsPerson: boolean;
  served: boolean;
  text: string | null;
}

const stoppedWords = ["stopped", "completed", "failed", "interrupted", "cut-off"];
export const statusWords = ["running", "working", "waiting", "idle", "starting", "unclear", "unknown", ...stoppedWords];

/** True if the filter names a status that only stopped sessions have. */
export const selectsStopped = ({ statuses }: SessionFilter): boolean =>
  statuses.some((word) => stoppedWords.includes(word));

/** True if the filter can be applied only after reading the record or the launch note of each session. */
const needsRecords = ({ statuses, labels, group, cwd, text }: SessionFilter): boolean =>
  statuses.length + labels.length > 0 || group !== null || cwd !== null || text !== null;

export function matcherOf(filter: SessionFilter): (row: SessionRow) => boolean {
  const { agents, statuses, group, labels, needsPerson, served } = filter;
  const place = filter.cwd === null ? null : placeOf(filter.cwd);
  const text = filter.text?.toLowerCase() ?? null;
  const isServed = ({ status }: Session): boolean => status.state === "running" && status.owner.kind === "server";
  return ({ session, launch }) =>
    (agents.length === 0 || agents.includes(session.agent)) &&
    (statuses.length === 0 || statuses.includes(statusWord(session)) || statuses.includes(session.status.state)) &&
    (group === null || launch?.group === group) &&
    labels.every(([key, value]) => launch?.labels[key] === value) &&
    (filter.cwd === null || (place !== null && placeOf(session.cwd) === place)) &&
    (!needsPerson || statusWord(session) === "waiting") &&
    (!served || isServed(session)) &&
    (text === null || searchedText(session).toLowerCase().includes(text));
}

/** `text` is searched in the session's own texts, not in sentences of agentctl. */
const searchedText = ({ record, waiting, cwd }: Session): string =>
  [record?.facts.title, record?.facts.prompt, waiting?.text, cwd].filter((each) => each != null).join("\n");

/**
 * The stopped sessions that a list must read. Sessions that were written before `since` are only counted: their names are enough
 * for that, unless a filter needs their records.
 */
export function listSelection(filter: SessionFilter, wantsStopped: boolean, since: number): Selection {
  if (!wantsStopped) return liveOnly;
  return needsRecords(filter) ? "all" : selectWrittenSince(since);
}

/** The stopped sessions that an acting command must read: a group or a label may name sessions that have stopped. */
export function selectionOf(filter: SessionFilter | null, context: ReferenceContext): Selection {
  if (filter === null) return liveOnly;
  if (filter.group !== null || filter.labels.length > 0) return launchedSessions(context);
  return selectsStopped(filter) ? "all" : liveOnly;
}

/**
 * The sessions that an acting command means by a filter: with a group, a label or a status all that match, otherwise only those
 * that are running. `unknown` are then the matching sessions that may be running.
 */
export function selectRows(
  filter: SessionFilter,
  rows: readonly SessionRow[],
): { selected: SessionRow[]; unknown: SessionRow[] } {
  const matching = rows.filter(matcherOf(filter));
  const { group, labels, statuses } = filter;
  if (group !== null || labels.length + statuses.length > 0) return { selected: matching, unknown: [] };
  const inState = (state: string) => matching.filter(({ session }) => session.status.state === state);
  return { selected: inState("running"), unknown: inState("unknown") };
}
