// The answer: one session with its status and the evidence for it.
import type { Activity, Background, NativeRecord, Outcome, Waiting } from "./evidence.ts";
import type { Problem } from "./problem.ts";
import type { ProcessIdentity, ProcessRow } from "./process.ts";
import type { Proof, StatusTrigger } from "./proof.ts";
import type { Contradiction, OwnerDoubt, StatusReason } from "./reason.ts";

/** How sure we are that a process has a session, strongest first. */
export const linkStrengths = ["announced", "assigned", "argv", "cwd"] as const;
export type Link = (typeof linkStrengths)[number];

export type Owner =
  /** link null: the process is live, but its session is not known. */
  | { kind: "process"; processes: ProcessIdentity[]; link: Link | null }
  | { kind: "server"; process: ProcessIdentity | null; address: string };

export type Status =
  | { state: "running"; owner: Owner; activity: Activity }
  | { state: "stopped"; outcome: Outcome | null }
  | { state: "unknown"; why: OwnerDoubt };

export interface Session {
  agent: string;
  home: string;
  /** null: a live process of this agent whose session is not known. */
  id: string | null;
  status: Status;
  reason: StatusReason | null;
  since: number | null;
  waiting: Waiting | null;
  background: Background | null;
  cwd: string | null;
  startedAt: number | null;
  updatedAt: number | null;
  endedAt: number | null;
  parent: string | null;
  continuedBy: string | null;
  record: NativeRecord | null;
  /** The uid that owns the file of the record; absent or null: no record, or its owner cannot be read. */
  recordOwner?: number | null;
  /** Its name in the agent's own supervisor, which would restart it. */
  job: string | null;
  /** The owners' rows, for display (tty, argv are not part of a status). */
  processes: ProcessRow[];
  /** Facts that contradict each other. */
  conflicts: Contradiction[];
  evidence: Proof[];
  /** What would have to happen for this status to change. */
  wouldChange: StatusTrigger[];
}

type SessionName = Pick<Session, "agent" | "home" | "id">;

/** The facts that are needed to end a session with its processes. status null: only the name of the session is known. */
export interface Kin extends SessionName, Pick<Session, "processes" | "job" | "recordOwner"> {
  status: Status | null;
}

export const isServed = ({ status }: Pick<Kin, "status">): boolean =>
  status?.state === "running" && status.owner.kind === "server";

/** The same conversation of the same agent in the same home. Without an id there is nothing to compare. */
export const isSameSession = (a: SessionName, b: SessionName): boolean =>
  a === b || (a.id !== null && a.id === b.id && a.agent === b.agent && a.home === b.home);

/** The least length of a reference: ids that begin with the same characters up to here could be confused. */
export const likeness = 8;

/**
 * Ids that begin with a time share their first characters with every id of the same minute. Their references reach to the end of
 * the time: the milliseconds of a UUIDv7, the milliseconds and the counter of an id like OpenCode's `ses_…`.
 */
export function referenceLength(id: string): number {
  if (/^[0-9a-f]{8}-[0-9a-f]{4}-7/.test(id)) return 13;
  return /^[a-z]{3}_[0-9a-f]{12}/.test(id) ? 16 : likeness;
}

export interface SessionList {
  at: number;
  complete: boolean;
  sessions: Session[];
  /** Ids of stopped sessions whose records were not read, because the caller did not select them (see `Store.unopened`). */
  unopened: { agent: string; ids: readonly string[] }[];
  problems: Problem[];
}

/** A second session in the same place could disturb this one, unless this one is known to be idle. */
export const isBusy = ({ status }: Session): boolean => status.state !== "running" || status.activity !== "idle";
