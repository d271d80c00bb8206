// The raw readings. A status may depend on everything in `Evidence`, and on nothing else.
import type { Problem, Reading } from "./problem.ts";
import type { ProcessIdentity, ProcessTable } from "./process.ts";
import type { RunningReason, TurnReason } from "./reason.ts";

export type Activity = "working" | "waiting" | "idle" | "unclear";
export type Outcome = "completed" | "failed" | "interrupted" | "cut-off";

/** What an agent wants from a person, in its own words. */
export interface Waiting {
  kind: "permission" | "question" | "plan" | "trust" | "login" | "limit" | "other";
  text: string | null;
  tool: string | null;
  options: string[];
}

export interface Background {
  shells: number;
  subagents: number;
}

/** How far the last turn got, by the agent's own record. */
export type Turn =
  | { state: "none" }
  /** `doubt`: why an open turn may be waiting for a person although the record does not say so. */
  | { state: "open"; since: number | null; doubt: TurnReason | null }
  /**
   * `needs`: by the agent's own record, only a person can fix the cause of the failure.
   * `doubt`: why a live owner may still continue it by itself (an agent that retries).
   */
  | {
      state: "closed";
      at: number | null;
      outcome: Outcome | null;
      needs?: { kind: "login" | "limit"; text: string };
      doubt?: TurnReason;
    }
  | { state: "unclear"; why: TurnReason };

export interface Tokens {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
}

/** Shown, never used to decide a state. */
export interface Facts {
  model: string | null;
  title: string | null;
  prompt: string | null;
  branch: string | null;
  agentVersion: string | null;
  permission: string | null;
  denied: number | null;
  tokens: Tokens | null;
  costUsd: number | null;
}

export interface NativeRecord {
  id: string;
  source: string;
  cwd: string | null;
  createdAt: number | null;
  /** By the record's own clock. A file's mtime is not a message: other processes touch files. */
  lastMessageAt: number | null;
  /** mtime of the record. */
  writtenAt: number | null;
  turn: Turn;
  waiting: (Waiting & { since: number | null }) | null;
  /** The pending tool call. It shows what a waiting owner waits for, but does not prove that the owner waits. */
  pending: Waiting | null;
  background: Background | null;
  parent: string | null;
  continuedBy: string | null;
  /** The session whose subagent wrote this record. A subagent has no row; it is background work of that session. */
  subagentOf: string | null;
  facts: Facts;
  /** The number of broken lines that were skipped. */
  skippedLines: number;
  /** The newest line was not complete when we looked. */
  torn: boolean;
  /** The number of lines of an unknown kind. */
  unknownLines: number;
  /** Its name in the agent's own interface, if that is not its id. */
  opensAs?: string;
  /** The record says that no process has the session any more; a process that reopens it writes that first. */
  isOver?: boolean;
  /** One of several files that form the record one after the other. The newest file has the state. */
  isSegment?: boolean;
}

/** A record of which only its file is known. */
export const emptyRecord = ({ id, path, writtenAt, torn }: RecordSource): NativeRecord => ({
  ...{ id, source: path, cwd: null, createdAt: null, lastMessageAt: null, writtenAt, turn: { state: "none" } },
  ...{ waiting: null, pending: null, background: null, parent: null, continuedBy: null, subagentOf: null },
  ...{ facts: noFacts, skippedLines: 0, torn, unknownLines: 0 },
});

interface RecordSource extends Pick<NativeRecord, "id" | "writtenAt" | "torn"> {
  path: string;
}

export const noFacts: Facts = {
  ...{ model: null, title: null, prompt: null, branch: null, agentVersion: null, permission: null },
  ...{ denied: null, tokens: null, costUsd: null },
};

/** A statement of a process about itself, found in the agent's store: "pid P, started at S, has session X". */
export interface Announcement {
  session: string;
  pid: number;
  /** null: the agent writes no start time; then the process must belong to the agent and be older than the announcement. */
  start: string | null;
  boot: string | null;
  namespace: string | null;
  /** The id of the host that the process runs on; absent or null: the agent does not write it. */
  host?: string | null;
  source: string;
  writtenAt: number | null;
  cwd: string | null;
  /** The activity that the process reports; null: it reports none. */
  says: { activity: Activity; reason: RunningReason | null; since: number | null } | null;
  waiting: Waiting | null;
  background: Background | null;
  /** Its name in the agent's own supervisor; null: it has no supervisor. */
  job: string | null;
  /** When the process began the session, for agents that keep an announcement for each. The process has the newest that is not over. */
  begunAt?: number | null;
  /** The process announced that it has left the session. It may still be live. */
  isOver?: boolean;
}

/** An announcement of a session and a pid without other facts. */
export const emptyAnnouncement = ({ session, pid, path, writtenAt }: AnnouncementSource): Announcement => ({
  ...{ session, pid, start: null, boot: null, namespace: null, source: path, writtenAt },
  ...{ cwd: null, says: null, waiting: null, background: null, job: null },
});

interface AnnouncementSource extends Pick<Announcement, "session" | "pid" | "writtenAt"> {
  path: string;
}

/** The agent recorded that a person left this session for a new one at that time in that directory (`/clear`). */
export interface Succession {
  from: string;
  /** null: a new session of that directory, found by its creation time. */
  to: string | null;
  at: number;
  cwd: string | null;
}

/** A dialog that the agent is known to show before it has a session. */
export interface StartDialog {
  process: ProcessIdentity;
  waiting: Waiting;
  source: string;
}

/** In place of a pid: the folder of announcements could not be read, so any process may have announced anything. */
export const anyPid = -1;

export interface Store {
  agent: string;
  /** The real path; `names` are the paths under which processes and people know it. */
  home: string;
  names: string[];
  /** false: on another device than `/`, where a writer in another pid namespace could not be seen. */
  onRootDevice: boolean;
  /** On a file system that other hosts can write to: the owner of a session may run on another host. */
  isShared?: boolean;
  /** Another user owns the folder or can write to it: it may hold records of other users. */
  mayHoldOthers?: boolean;
  /** Only processes of these confinements name this home, so its files count for those processes alone. Absent: other processes name it, too. */
  namedOnlyIn?: readonly string[];
  /** The number of recorded sessions. Unread: there may be more than `rows` shows. */
  listing: Reading<number>;
  /** `writtenAt` and `uid` are of the file, and known even if its content cannot be read. */
  rows: { id: string; reading: Reading<NativeRecord>; writtenAt: number | null; uid: number | null }[];
  /** Unreadable records whose names hold only the beginning of the session id. */
  nameless?: { begins: string; problem: Problem; writtenAt: number | null }[];
  /**
   * Sessions whose records were not read: no process has them, and the caller did not select them. All of them if the selection is
   * by time; otherwise those whose id begins like the id of a session in the answer.
   */
  unopened?: string[];
  /** `pid` and `session` are known by the file name even if the content cannot be read. `uid` owns the file; null: not readable. */
  announcements: { pid: number; reading: Reading<Announcement>; uid: number | null; session?: string }[];
  successions: Succession[];
}

export interface ServedSession {
  id: string;
  activity: Activity;
  waiting: Waiting | null;
}

/** A process (or a gateway elsewhere) that serves many sessions, and what it answered. */
export interface ServerAnswer {
  agent: string;
  home: string;
  address: string;
  process: ProcessIdentity | null;
  startedAt: number | null;
  answer: Reading<ServedSession[]>;
}

export interface Evidence {
  at: number;
  /** The id of this host, as agents write it into their announcements; absent or null: not known, or no announcement has one. */
  host?: string | null;
  /** This system hides other users' processes from us (hidepid). */
  othersAreHidden?: boolean;
  processes: Reading<ProcessTable>;
  stores: Store[];
  servers: ServerAnswer[];
  dialogs: StartDialog[];
  /**
   * Device and inode of directories, by path; "/proc/<pid>/cwd" is the working directory of a process. null: missing, or not
   * readable. Looked up only if the paths of a process without an announcement and of a record differ.
   */
  directories: Readonly<Record<string, string | null>>;
  /** Readings that failed before they could belong to a store (configuration, worker). */
  problems: Problem[];
}
