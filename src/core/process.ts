// What a process is to us: an identity (never a bare pid), its place in the tree, and for candidates a few details.
import type { Problem } from "./problem.ts";

/** Start is the kernel's start time in clock ticks (Linux) or microseconds (macOS), kept as text: it is compared, not computed with. */
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
  /** null: no agent asked for this process. */
  detail: ProcessDetail | null;
}

/** A field is null where it could not be read; `unread` says which and why. */
export interface ProcessDetail {
  /** The user that it belongs to wholly; null: its real, effective, saved and file system uid differ, or could not be read. */
  uid: number | null;
  /** All of its uids are ours. false: what we cannot read of it is no gap in our knowledge, and nothing in its environment is used. */
  ours: boolean;
  argv: string[] | null;
  exe: string | null;
  cwd: string | null;
  /** Whitelisted keys only. Nothing else of an environment is ever kept. */
  env: Record<string, string> | null;
  /** Files open with a kernel lock on them, among those an agent asked for. */
  lockedFiles: string[];
  /** Its pid namespace, and the pid it knows itself by there. */
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
  /** Whose processes are "ours". */
  uid: number;
  /** Our pid namespace; initial = nothing on this machine is hidden from us by a namespace. */
  namespace: { id: string | null; initial: boolean };
  rows: readonly ProcessRow[];
  /** Why the table may not be whole. Empty = it was read to the end and every process was seen or was gone. */
  gaps: Problem[];
  /** Claimed pids that exist although the table does not show them (hidepid). */
  hidden: number[];
}

/** Ours, or of a user that could not be read. */
export const mayBeOurs = ({ ours, uid, unread }: ProcessDetail): boolean => ours || (uid === null && unread.length > 0);

/** A zombie keeps its stat line, start ticks included, but it is dead. */
export const isLive = (row: ProcessRow): boolean => row.state !== "Z" && row.state !== "X" && row.state !== "x";

export const isSuspended = (row: ProcessRow): boolean => row.state === "T" || row.state === "t";

export const sameProcess = (a: ProcessIdentity, b: ProcessIdentity): boolean =>
  a.pid === b.pid && a.start === b.start && a.boot === b.boot;

/** What matching asks a table for, again and again in one look. There may be thousands of processes, and few are anybody's. */
interface Index {
  /** Live ones that somebody looked at closely. */
  examined: readonly (ProcessRow & { detail: ProcessDetail })[];
  liveByPid: ReadonlyMap<number, ProcessRow>;
}

const indexes = new WeakMap<readonly ProcessRow[], Index>();

function indexOf({ rows }: ProcessTable): Index {
  const known = indexes.get(rows);
  if (known !== undefined) return known;
  const live = rows.filter(isLive);
  const index: Index = {
    examined: live.filter((row): row is Index["examined"][number] => row.detail !== null),
    // The first of a pid stands, as it would in a search.
    liveByPid: new Map(live.toReversed().map((row) => [row.identity.pid, row])),
  };
  indexes.set(rows, index);
  return index;
}

export const examinedIn = (table: ProcessTable): Index["examined"] => indexOf(table).examined;

export const livePid = (table: ProcessTable, pid: number): ProcessRow | null =>
  indexOf(table).liveByPid.get(pid) ?? null;
