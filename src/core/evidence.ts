// What was seen, before anyone thinks about it. Everything a status may depend on is in `Evidence`, and nothing else is.
import type { Problem, Reading } from "./problem.ts";
import type { ProcessIdentity, ProcessTable } from "./process.ts";

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
  /** `doubt`: why an open turn may be waiting for someone although the record does not say so ("tool call pending"). */
  | { state: "open"; since: number | null; doubt: string | null }
  /**
   * `needs`: why it failed is something that only a person can mend, by the agent's own word.
   * `doubt`: why a live owner may go on with it by itself all the same (an agent that tries again).
   */
  | {
      state: "closed";
      at: number | null;
      outcome: Outcome | null;
      needs?: { kind: "login" | "limit"; text: string };
      doubt?: string;
    }
  | { state: "unclear"; why: string };

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
  /** What the pending tool call is about. It says what a waiting owner waits for, never that it waits. */
  pending: Waiting | null;
  background: Background | null;
  parent: string | null;
  continuedBy: string | null;
  /** A subagent of this session keeps its own record: no row, but background work of its session. */
  subagentOf: string | null;
  facts: Facts;
  /** Lines that were broken and passed over. */
  skippedLines: number;
  /** The newest line was not complete when we looked. */
  torn: boolean;
  /** Lines of a kind that these rules do not know. */
  unknownLines: number;
  /** What the agent's own interface calls it, where that is not its id. */
  opensAs?: string;
  /** By the agent's own word nobody has it any more; whoever takes it up again writes that first. */
  isOver?: boolean;
  /** One of several files that make up the record one after the other: the newest speaks, the others are its past. */
  isSegment?: boolean;
}

/** A process's own word, found in the agent's store: "pid P, started at S, has session X". */
export interface PidClaim {
  session: string;
  pid: number;
  /** null: the agent writes no start time; then the process must be the agent's and older than the claim. */
  start: string | null;
  boot: string | null;
  namespace: string | null;
  /** The id of the machine that the process runs on; absent or null: the agent does not write it. */
  host?: string | null;
  source: string;
  writtenAt: number | null;
  cwd: string | null;
  /** What the process says it is doing; null: it does not say. */
  says: { activity: Activity; reason: string | null; since: number | null } | null;
  waiting: Waiting | null;
  background: Background | null;
  /** The name under which the agent's own supervisor runs it; null: it runs by itself. */
  job: string | null;
  /**
   * When the process began the session, where it has one at a time and leaves its word about each of them: of several that are not
   * over it has the newest, and who took up the others is not said.
   */
  begunAt?: number | null;
  /** By its own word the process has left the session, and may live on without it. */
  isOver?: boolean;
}

/** The agent wrote that this session was left for a new one at that moment in that directory (`/clear`). */
export interface Succession {
  from: string;
  /** null: a new session of that directory, to be told by its beginning. */
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
  /** On a file system that other hosts may write to: a process that has a session of this store may run on another host. */
  isShared?: boolean;
  /** Its folder is not ours, or others may write to it: records in it may be other users'. */
  mayHoldOthers?: boolean;
  /** The confinements whose processes alone name this home: its files count for them, and for no process outside. Absent: others know it, too. */
  namedOnlyIn?: readonly string[];
  /** Which sessions are recorded here. Unread: there may be more than `rows` shows. */
  listing: Reading<number>;
  /** Of the file itself, known even where its content is not: when it was written, and whose it is. */
  rows: { id: string; reading: Reading<NativeRecord>; writtenAt: number | null; uid: number | null }[];
  /** Records that cannot be read and tell only how their session's id begins: of one of those, or of one that nobody can name. */
  nameless?: { begins: string; problem: Problem; writtenAt: number | null }[];
  /**
   * Sessions whose records nobody needed to open: nobody has them, and nobody asked for them. All of those where the question is
   * about times; else those that begin like one in the answer.
   */
  unopened?: string[];
  /**
   * A pid in the file's name is known even where the content is not; so is the session that it is about, where that is the name.
   * `uid`: whose file it is; null: that could not be seen.
   */
  claims: { pid: number; reading: Reading<PidClaim>; uid: number | null; session?: string }[];
  successions: Succession[];
}

export interface HostedSession {
  id: string;
  activity: Activity;
  waiting: Waiting | null;
}

/** A process (or a gateway elsewhere) that serves many sessions, and what it answered. */
export interface HostAnswer {
  agent: string;
  home: string;
  address: string;
  process: ProcessIdentity | null;
  startedAt: number | null;
  answer: Reading<HostedSession[]>;
}

export interface Evidence {
  at: number;
  /** The id of this machine, as agents write it into their announcements; absent or null: not known, or no announcement names one. */
  host?: string | null;
  /** This system hides other users' processes from us (hidepid). */
  othersAreHidden?: boolean;
  processes: Reading<ProcessTable>;
  stores: Store[];
  hosts: HostAnswer[];
  dialogs: StartDialog[];
  /**
   * What directories really are (device and inode), by path; "/proc/<pid>/cwd" is where a process stands. null: not there, or
   * not to be seen. Looked up only where a silent process and a record name different paths.
   */
  directories: Readonly<Record<string, string | null>>;
  /** Readings that failed before they could belong to a store (configuration, worker). */
  problems: Problem[];
}
