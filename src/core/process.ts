// A process: an identity (never a bare pid), its parent, and for possible agents some details.
import type { Problem } from "./problem.ts";

/** Start is the kernel's start time in clock ticks (Linux) or microseconds (macOS), kept as text because it is only compared. */
export interface ProcessIdentity {
  pid: number;
  start: string;
  boot: string;
}

export interface ProcessRow {
  identity: ProcessIdentity;
  parent: number;
  /** The kernel's session id (setsid), not an agent's. */
  session: number;
  /** The kernel's one-letter state. */
  state: string;
  name: string;
  /** "/dev/pts/3", or null without a controlling terminal. */
  tty: string | null;
  startedAt: number;
  /** null: no agent uses this process name, so its details were not read. */
  detail: ProcessDetail | null;
}

/** A field is null where it could not be read; `unread` says which and why. */
export interface ProcessDetail {
  /** Its uid; null: its real, effective, saved and file system uids differ, or could not be read. */
  uid: number | null;
  /** All of its uids are ours. false: unreadable parts are no problem, and its environment is not used. */
  ours: boolean;
  argv: string[] | null;
  exe: string | null;
  cwd: string | null;
  /** Whitelisted keys only. Nothing else of an environment is ever kept. */
  env: Record<string, string> | null;
  /** Files open with a kernel lock on them, among those an agent asked for. */
  lockedFiles: string[];
  /** Its pid namespace, and its pid in that namespace. */
  namespace: string | null;
  innerPid: number | null;
  /** false: it lives in another mount namespace, so paths in its environment are not our paths. */
  sameFiles: boolean;
  /** The pid, mount and user namespaces that it lives in, where one of them is not ours: a sandbox or a container. null: it lives in ours. */
  confinement: string | null;
  unread: Problem[];
}

export interface ProcessTable {
  boot: string;
  uid: number;
  /** Our pid namespace; initial = nothing on this host is hidden from us by a namespace. */
  namespace: { id: string | null; initial: boolean };
  rows: readonly ProcessRow[];
  /** Why the table may be incomplete. Empty = every process was read or was gone. */
  gaps: Problem[];
  /** Announced pids that exist although the table does not show them (hidepid). */
  hidden: number[];
}

/** Ours, or its uid could not be read. */
export const mayBeOurs = ({ ours, uid, unread }: ProcessDetail): boolean => ours || (uid === null && unread.length > 0);

/** Parses an identity that was written to a file; null: it is not one. */
export function parseIdentity(value: unknown): ProcessIdentity | null {
  if (typeof value !== "object" || value === null) return null;
  const { pid, start, boot } = value as Record<string, unknown>;
  const isPid = typeof pid === "number" && Number.isInteger(pid) && pid > 0 && pid <= 0x7fffffff;
  return isPid && typeof start === "string" && typeof boot === "string" ? { pid, start, boot } : null;
}

/** A zombie keeps its stat line, start ticks included, but it is dead. */
export const isLive = (row: ProcessRow): boolean => row.state !== "Z" && row.state !== "X" && row.state !== "x";

export const isSuspended = (row: ProcessRow): boolean => row.state === "T" || row.state === "t";

export const sameProcess = (a: ProcessIdentity, b: ProcessIdentity): boolean =>
  a.pid === b.pid && a.start === b.start && a.boot === b.boot;

/** An index for matching, because thousands of processes may be listed and few belong to agents. */
interface Index {
  /** Live processes whose details were read. */
  examined: readonly (ProcessRow & { detail: ProcessDetail })[];
  liveByPid: ReadonlyMap<number, ProcessRow>;
  byPid: ReadonlyMap<number, ProcessRow>;
}

/** A process and those above it, nearest first. A table is not read in one instant: reused pids may form a circle, where it ends. */
export function withAncestors(
  row: ProcessRow | null | undefined,
  parentOf: (row: ProcessRow) => ProcessRow | null | undefined,
): ProcessRow[] {
  const found = new Map<number, ProcessRow>();
  for (let at = row; at != null && !found.has(at.identity.pid); at = parentOf(at)) found.set(at.identity.pid, at);
  return [...found.values()];
}

/** The process with this pid and those above it, dead ones included. */
export function chainIn(table: ProcessTable, pid: number): ProcessRow[] {
  const { byPid } = indexOf(table);
  return withAncestors(byPid.get(pid), ({ parent }) => byPid.get(parent));
}

const indexes = new WeakMap<readonly ProcessRow[], Index>();

function indexOf({ rows }: ProcessTable): Index {
  const known = indexes.get(rows);
  if (known !== undefined) return known;
  const live = rows.filter(isLive);
  const index: Index = {
    examined: live.filter((row): row is Index["examined"][number] => row.detail !== null),
    // The first row of a pid counts.
    liveByPid: new Map(live.toReversed().map((row) => [row.identity.pid, row])),
    byPid: new Map(rows.map((row) => [row.identity.pid, row])),
  };
  indexes.set(rows, index);
  return index;
}

export const examinedIn = (table: ProcessTable): Index["examined"] => indexOf(table).examined;

export const livePid = (table: ProcessTable, pid: number): ProcessRow | null =>
  indexOf(table).liveByPid.get(pid) ?? null;
