// An agent is data: where its records are, how to read one, which of its processes are sessions and which are helpers.
// Everything that is not specific to an agent belongs to observe/ or control/.

import type { Announcement, NativeRecord, ServedSession, Succession, Tokens } from "../core/evidence.ts";
import type { RequestAnswer } from "../core/failure.ts";
import type { Reading } from "../core/problem.ts";
import type { ProcessDetail, ProcessRow } from "../core/process.ts";
import type { AgentRules } from "../core/rules.ts";
import type { Fields } from "./fields.ts";
import type { Invocation, Order } from "./invocation.ts";

/** A complete line of a record: parsed JSON, or broken (not JSON, or too long to be worth reading). */
export type Line = { ok: true; value: unknown } | { ok: false };

/** One record file as a parser sees it. Lines are read lazily: ask for as few as you need. */
export interface RecordFile {
  id: string;
  path: string;
  size: number;
  writtenAt: number;
  /** Oldest first. */
  forward(): Iterable<Line>;
  /**
   * Newest first, up to a limit far above the length of a turn. Parsing is most of the work, so a line whose bytes fail `mayMatter`
   * is not parsed, and is returned as a broken line.
   */
  backward(mayMatter?: (line: Buffer) => boolean): Iterable<Line>;
  tailBytes: number;
  /** There are bytes after the last newline: a line is being written, or was cut. */
  torn: boolean;
  /** The file begins like JSON lines. Without a complete line, it may be a first line that is still being written. */
  startsLikeJson: boolean;
  /** The text of a small file near the record, by its path from the record's folder; null: missing or unreadable. */
  beside(path: string): string | null;
}

/** Files below a home, by folder pattern ("projects/*") and name. The only group of the name, `id` or `pid`, identifies the file. */
export interface FileSet {
  folder: string;
  name: RegExp;
  /** The id or pid is in the name of the folder instead; files in folders with other names are ignored. */
  inside?: RegExp;
}

/** Where records are. Without `assembled` each file is one record of JSON lines. */
export interface RecordSet extends FileSet {
  /** The name of the file has only a part of the id; the whole id is in its first line. */
  idIn?(first: unknown): string | null;
  /** The beginning of the id, from the group of the name; null: unknown. For files whose first line cannot be read. */
  idBegins?(named: string): string | null;
  assembled?: Assembly;
  /** Written by older versions: counts only if no other set has the session. */
  isOld?: boolean;
}

/** A record that is not a file of JSON lines is read like one: its lines are assembled from a database or from other files. */
export interface Assembly {
  /** The sessions in a file; with `like`, at least the matching ones. null: a file has one session, with the id in its name. */
  sessions: ((reader: Reader, like: LikeNames | null) => Iterable<ListedSession>) | null;
  /** The time of its newest entry, found faster than by reading the record; absent or null: the record must be read. */
  newest?(reader: Reader, id: string): number | null;
  /** Oldest first. A line never changes after it was returned: an entry that may still change is not a line yet. */
  forward(reader: Reader, id: string): Iterable<unknown>;
  /** For the status: newest first, including unfinished entries; callers stop when they know enough. */
  backward(reader: Reader, id: string): Iterable<unknown>;
}

/** Sessions with one of these ids or beginnings (in lower case), or in one of these directories, or whose directory is unknown. */
export interface LikeNames {
  ids: readonly string[];
  beginnings: readonly string[];
  directories: readonly string[];
}

export interface ListedSession {
  id: string;
  /** Its directory and the approximate time of its last change, if they are known with the name. */
  cwd?: string | null;
  updatedAt?: number | null;
}

/** The sources of an assembled record. Throws if reading fails: that costs the record, not the list. */
export interface Reader {
  /** Rows of the SQLite database that the file is. */
  rows(sql: string, ...values: (string | number)[]): Fields[];
  /** One by one, for callers that need only a few of many rows. */
  each(sql: string, ...values: (string | number)[]): Iterable<Fields>;
  /** A JSON file by its path from the folder of the file; without a path, the file itself. undefined: missing. */
  json(path?: string): unknown;
  /** The names in a folder, sorted; none if the folder is missing. */
  names(folder: string): string[];
  /** The text of a value that was compressed with Zstandard. */
  unpacked(bytes: Uint8Array): string;
}

export interface AnnouncementFiles extends FileSet {
  /** Must not throw on any input. */
  parse(file: AnnouncementFile): Reading<Announcement>;
}

export interface AnnouncementFile {
  /** From the name of the file; null: only the content has it. */
  pid: number | null;
  path: string;
  writtenAt: number;
  value: unknown;
}

/** One entry of a conversation, as people read it. */
export interface Message {
  at: number | null;
  role: "user" | "agent" | "tool" | "result" | "note";
  text: string;
  /** The tool's name, of calls and results. */
  tool: string | null;
}

/** The messages and counts in one line of a record. */
export interface LineFacts {
  messages: Message[];
  /** Tokens under a key: a later line with the same key replaces an earlier one, different keys add up. */
  usage: {
    key: string;
    tokens: Tokens;
    model: string | null;
    /** The cost of these tokens, if the agent wrote it. */
    costUsd?: number | null;
  } | null;
  /** A running total that the agent wrote itself. */
  costUsd: number | null;
  /** Tool calls refused in this line. */
  denied: number;
}

export interface Adapter extends AgentRules {
  title: string;
  aliases: readonly string[];
  /** The command that people type, looked up in PATH. */
  command: string;
  /** The command that installs it. */
  install: string;
  /** Versions with which these rules were tested. */
  verified: readonly string[];
  /** How a session gets its id, and how its process is found: sentences for `agentctl adapters`. */
  ties: string;
  /** What is known of a running session, from its records and servers. */
  knows: string;
  /** What cannot be known of its sessions. */
  unknowable: readonly string[];
  /** Keys of a process's environment that `home` and the parsers need. */
  environment: readonly string[];
  records: readonly RecordSet[];
  /** Files in which a process says which session it has; absent: the agent writes none. */
  announcements?: AnnouncementFiles;
  /** Open files worth checking for a kernel lock (announcedIds); absent: the agent locks nothing. */
  lockedFiles?: RegExp;
  /** Must not throw on any input; an unknown shape is a problem of this one record. */
  parseRecord(file: RecordFile): Reading<NativeRecord>;
  /** null: a kind of line that these rules do not know. "counts": the caller only counts, so messages may be left out, for speed. */
  parseLine(value: unknown, wanted?: "counts"): LineFacts | null;
  /** The record has its running totals near its end, so that `list` can show them without reading all of it. */
  tokensInTail?: boolean;
  /** The record shows denied calls. */
  countsDenied: boolean;
  /**
   * Every line with usage, a cost or a refusal contains one of these: a text as the agent writes it, or `"key":value`, with or
   * without blanks around the colon. To count, only such lines are parsed. Absent: all lines are parsed.
   */
  countedIn?: readonly string[];
  /** Records of subagents, below the folder that is named like the record; absent: subagents have no separate records. */
  subagentRecords?: FileSet;
  /** The id of the session whose history this record continues (a fork without a copy); absent or null: it has its whole history. */
  historyOf?(file: RecordFile): string | null;
  /** A file below the home that records when a process left a session for another one; absent: the agent has no such file. */
  successions?: {
    file: string;
    /** Every such line contains one of these. */
    words: readonly string[];
    parse(value: unknown): Succession | null;
  };
  /** The trust dialog: its settings file (the first that exists) and whether the agent still has to ask about this directory. */
  trust?: {
    files(home: string): string[];
    /** `repository`: the one that the process's directory is in. */
    mustAsk(text: string, row: ProcessRow, repository: RepositoryRoots | null): boolean;
  };
  /** How to ask a server; absent: this agent has no servers that answer. */
  server?: ServerProtocol;
  /** How to start, continue, interrupt and stop it. */
  invocation: Invocation;
}

export interface RepositoryRoots {
  root: string;
  /** For a worktree, the root of its main repository; else the same as `root`. */
  main: string;
}

/** A conversation with a server, as data: the first messages, and the next ones after each answer. */
export interface Talk<T> {
  opening: string[];
  /** `heard`: all messages so far. Returns what to send next, or the final answer. A plain server answers once and closes the connection. */
  next(heard: readonly string[]): { send: string[] } | { answer: Reading<T> };
}

export interface ServerProtocol {
  /**
   * Where servers listen: sockets below the home (a `pid` group in the name is the server's; with an `id` group the process
   * is unknown), or the TCP ports that its processes have open on loopback.
   */
  at: FileSet | { listens(detail: ProcessDetail): boolean };
  /** "http": a message to the server is an HttpRequest as JSON text, its answer is {status, body} as JSON text. */
  transport: "plain" | "websocket" | "http";
  /** Its password or token, from its own environment or from a file below its home. Never stored, never shown. */
  secret?: { environment: string; file: string; find(text: string): string | null };
  /** The sessions that it runs, and what they are doing. */
  sessions(asked: TalkContext): Talk<ServedSession[]>;
  /** Ends the turn of one session, which stays open. */
  interrupt(session: string, asked: TalkContext): Talk<RequestAnswer>;
  /** Sends a message, with an id of its own, to one session, which starts with it now or after its turn. */
  send(session: string, text: string, messageId: string, asked: TalkContext): Talk<RequestAnswer>;
  /**
   * Begins a session in the server, or a turn of an old one, with a message that has an id of its own, and answers the
   * session's id; absent: sessions are begun and continued by starting a process.
   */
  create?(order: ServerOrder, messageId: string, asked: TalkContext): Talk<string>;
  /** The command that starts a server, for agents whose sessions begin in one. */
  start?: string;
}

/** An order that a server carries out. */
export type ServerOrder = Exclude<Order, { kind: "fork" }> & {
  prompt: string;
  /** The server ends the turn after this time. */
  maxTimeMs: number | null;
};

/** Facts that a conversation with a server may need. */
export interface TalkContext {
  secret: string | null;
  /** The directory of the one session; or those of all sessions that were written to since this server started. */
  directories: readonly string[];
}

export interface HttpRequest {
  method: "GET" | "POST";
  path: string;
  body?: unknown;
  /** For basic authentication, if there is a secret. */
  user?: string;
}
