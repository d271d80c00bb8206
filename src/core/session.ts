// The answer: one session with its status and the evidence for it.
import type { Activity, Background, NativeRecord, Outcome, Waiting } from "./evidence.ts";
import type { Problem } from "./problem.ts";
import type { ProcessIdentity, ProcessRow } from "./process.ts";

/** How sure we are that a process has a session, strongest first. */
export const linkStrengths = ["announced", "assigned", "argv", "cwd"] as const;
export type Link = (typeof linkStrengths)[number];

export type Owner =
  /** link null: the process lives, but nobody can say which session it has. */
  | { kind: "process"; processes: ProcessIdentity[]; link: Link | null }
  | { kind: "host"; process: ProcessIdentity | null; address: string };

export type Status =
  | { state: "running"; owner: Owner; activity: Activity }
  | { state: "stopped"; outcome: Outcome | null }
  | { state: "unknown"; why: string };

/** One proof: which fact, with which value, seen where, used by which rule. */
export interface Proof {
  fact: string;
  value: string;
  source: string;
  rule: string;
  at: number | null;
}

export interface Session {
  agent: string;
  home: string;
  /** null: a live process of this agent without a session that we can name. */
  id: string | null;
  status: Status;
  reason: string | null;
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
  /** Whose file the record is; absent or null: there is none, or it cannot be seen. */
  recordOwner?: number | null;
  /** The name under which the agent's own supervisor runs it, and would start it again. */
  job: string | null;
  /** The owners' rows, for display (tty, argv are not part of a status). */
  processes: ProcessRow[];
  /** Things that do not fit together, in words. */
  conflicts: string[];
  evidence: Proof[];
  /** What would have to happen for this status to change. */
  wouldChange: string[];
}

type SessionName = Pick<Session, "agent" | "home" | "id">;

/** What is needed to end a session and what belongs to it. status null: nothing was derived of it, only its name is known. */
export interface Kin extends SessionName, Pick<Session, "processes" | "job" | "recordOwner"> {
  status: Status | null;
}

/** It lives in a process that serves many. */
export const isHosted = ({ status }: Pick<Kin, "status">): boolean =>
  status?.state === "running" && status.owner.kind === "host";

/** The same conversation of the same agent in the same home. Without an id there is nothing to compare. */
export const isSameSession = (a: SessionName, b: SessionName): boolean =>
  a === b || (a.id !== null && a.id === b.id && a.agent === b.agent && a.home === b.home);

/** References are at least so long: sessions that begin alike so far could be taken for each other. */
export const likeness = 8;

export interface SessionList {
  at: number;
  complete: boolean;
  sessions: Session[];
  /** Ids of sessions that are not running, and that nobody asked about; of which ones, `Store.unopened` says. */
  unopened: { agent: string; ids: readonly string[] }[];
  problems: Problem[];
}

/** Somebody else would be in its way: whatever is not known to be idle. */
export const isBusy = ({ status }: Session): boolean => status.state !== "running" || status.activity !== "idle";
