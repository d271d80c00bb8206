// An agent is data: where its records are, how to read one, how its processes are told from helpers.
// Everything that is not specific to an agent belongs to observe/ or control/.
import type { HostedSession, NativeRecord, PidClaim, Succession, Tokens } from "../core/evidence.ts";
import type { Reading } from "../core/problem.ts";
import type { ProcessDetail, ProcessRow } from "../core/process.ts";
import type { AgentRules } from "../core/rules.ts";
import type { Fields } from "./fields.ts";
import type { Invocation, OrderFacts, Place } from "./invocation.ts";

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
   * Newest first, at most so many bytes back: a limit far above what a turn takes. Parsing is most of the work: a line of which
   * its bytes alone show that it does not matter comes as a broken one.
   */
  backward(mayMatter?: (line: Buffer) => boolean): Iterable<Line>;
  tailBytes: number;
  /** Bytes stand after the last newline: a line is being written, or was cut. */
  torn: boolean;
  /** The file begins as JSON lines do. Without any complete line: a first line in the making rather than something else. */
  startsLikeJson: boolean;
  /** The text of a small file near the record, by its path from the record's folder; null: not there, or not to be read. */
  beside(path: string): string | null;
}

/** Files below a home, by folder pattern ("projects/*") and name; the name's only group, `id` or `pid`, is what it identifies. */
export interface FileSet {
  folder: string;
  name: RegExp;
  /** What is identified stands in the name of the file's folder instead; files in folders of other names are not meant. */
  inside?: RegExp;
}

/** Where records are. Without `assembled` each file is one record of JSON lines. */
export interface RecordSet extends FileSet {
  /** The file's name holds only a part of the id; the whole one is in its first line. */
  idIn?(first: unknown): string | null;
  /** How the id begins, by what the name identifies; null: nobody can tell. For files whose first line cannot be read. */
  idBegins?(named: string): string | null;
  assembled?: Assembly;
  /** Kept from older versions: counts only where no other set has the session. */
  isOld?: boolean;
}

/** A record that is no file of JSON lines is read as if it were one: its lines are put together out of what is there. */
export interface Assembly {
  /** Which sessions a file holds, with `like` at least those of them; null: the one that its name identifies. */
  sessions: ((reader: Reader, like: LikeNames | null) => Iterable<SessionName>) | null;
  /** Nothing in the record is younger than this, told for less than reading it; absent, or null: reading it tells. */
  newest?(reader: Reader, id: string): number | null;
  /** Oldest first. A line that has been given stays as it is: what may still change is not a line yet. */
  forward(reader: Reader, id: string): Iterable<unknown>;
  /** For the status: newest first, also what is still in the making; the callers stop when they know enough. */
  backward(reader: Reader, id: string): Iterable<unknown>;
}

/** Sessions with one of these ids, or whose id begins so, in small letters; or that work in one of these directories, or nobody says where. */
export interface LikeNames {
  ids: readonly string[];
  beginnings: readonly string[];
  directories: readonly string[];
}

export interface SessionName {
  id: string;
  /** Where it works, and when it was about last written to, where that is told with the name. */
  cwd?: string | null;
  updatedAt?: number | null;
}

/** What an assembled record may be put together from. Throws where reading fails: that costs the record, not the list. */
export interface Reader {
  /** Rows of the SQLite database that the file is. */
  rows(sql: string, ...values: (string | number)[]): Fields[];
  /** One by one, for those who may need a few of very many. */
  each(sql: string, ...values: (string | number)[]): Iterable<Fields>;
  /** A JSON file by its path from the file's folder; the file itself without a path. undefined: not there. */
  json(path?: string): unknown;
  /** The names in a folder, sorted; none where it is not there. */
  names(folder: string): string[];
  /** The text of a value that was compressed with Zstandard. */
  unpacked(bytes: Uint8Array): string;
}

export interface ClaimFile {
  /** By the file's name; null: only its content says. */
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

/** What one line of a record says, for conversations and totals. */
export interface LineFacts {
  messages: Message[];
  /** Tokens under a key: a later line with the same key replaces an earlier one, different keys add up. */
  usage: {
    key: string;
    tokens: Tokens;
    model: string | null;
    /** Of these tokens alone, where the agent wrote it. */
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
  /** What to do when it is not installed. */
  install: string;
  /** Versions that these rules were seen to hold for. */
  verified: readonly string[];
  /** How a session gets its id and a process is tied to it, in a sentence for `agentctl adapters`. */
  ties: string;
  /** What its records and hosts tell about a running session, in a sentence. */
  knows: string;
  /** What cannot be known about this agent, in sentences. */
  unknowable: readonly string[];
  /** Keys of a process's environment that `home` and the parsers need. */
  environment: readonly string[];
  records: readonly RecordSet[];
  claims: FileSet | null;
  /** Open files worth checking for a kernel lock (announcedIds); null: the agent locks nothing. */
  lockedFiles: RegExp | null;
  /** Must not throw on any input; what it does not recognise is a problem of that one row. */
  parseRecord(file: RecordFile): Reading<NativeRecord>;
  parseClaim(file: ClaimFile): Reading<PidClaim>;
  /** null: a kind of line that these rules do not know. Who only counts says so: messages may be left out then, for speed. */
  parseLine(value: unknown, wanted?: "counts"): LineFacts | null;
  /** Does the record hold its running totals near its end, so that `list` can show them without reading it whole? */
  tokensInTail: boolean;
  /** Denied calls can be counted in the record. */
  countsDenied: boolean;
  /**
   * Every line out of which `parseLine` takes usage, a cost or a refusal contains one of these (a text as the agent writes it, or
   * `"key":value`, with blanks around the colon or without); other lines are then not parsed to count. Absent: every line is.
   */
  countedIn?: readonly string[];
  /** Records of subagents, below the folder that is named like the record; null: they are not kept apart. */
  subagentRecords: FileSet | null;
  /** A record continues another one's history (a fork without a copy): that one's id. */
  historyOf(file: RecordFile): string | null;
  /** Lines of this file below the home tell of sessions left for a new one; null: nothing of that kind. */
  successions: {
    file: string;
    /** One of these stands in every line that tells of one. */
    words: readonly string[];
    parse(value: unknown): Succession | null;
  } | null;
  /** The trust dialog: its settings file (first that exists, by home) and whether this directory still has to be asked about. */
  trust: {
    files(home: string): string[];
    /** `repository`: the one that the process's directory is in. */
    mustAsk(text: string, row: ProcessRow, repository: Repository | null): boolean;
  } | null;
  /** How to ask a host; null: this agent has no hosts that answer. */
  host: HostProtocol | null;
  /** How to start it, and everything else that is done to it. */
  invocation: Invocation;
}

export interface Repository {
  root: string;
  /** Of a worktree, the root of the repository that it belongs to; else the same. */
  main: string;
}

/** A conversation with a host, as data: what to say first, and what to say after each answer until it is over. */
export interface Talk<T> {
  opening: string[];
  /** After everything heard so far: more to send, or the answer. A plain host answers once and hangs up. */
  next(heard: readonly string[]): { send: string[] } | { answer: Reading<T> };
}

export interface HostProtocol {
  /**
   * Where hosts listen: sockets below the home (a `pid` group in the name is the host's; with an `id` group nobody knows
   * whose it is), or the TCP ports that its processes have open on loopback.
   */
  at: FileSet | { listens(detail: ProcessDetail): boolean };
  /** "http": what is sent is the JSON text of an HttpRequest, what is heard that of {status, body}. */
  transport: "plain" | "websocket" | "http";
  /** The password or token that it wants to hear: from its own environment, or from a file below its home. Never kept, never shown. */
  secret?: { environment: string; file: string; find(text: string): string | null };
  /** Which sessions it has, and what they are doing. */
  sessions(asked: Asked): Talk<HostedSession[]>;
  /** Ends the turn of one session; the session stays. Answers what was done, in words. */
  interrupt(session: string, asked: Asked): Talk<string>;
  /** Hands a message with an id of its own to one session: it begins with it, or takes it up after its turn. */
  send(session: string, text: string, messageId: string, asked: Asked): Talk<string>;
  /**
   * Begins a session in the host, or a turn of an old one, with a message that has an id of its own, and answers the
   * session's id; absent: sessions are begun and continued by starting a process.
   */
  create?(order: HostOrder, place: Place, messageId: string, asked: Asked): Talk<string>;
  /** What a person types to start a host, where sessions are begun in one. */
  start?: string;
}

/** What is wanted of a host. */
export type HostOrder = OrderFacts & {
  prompt: string;
  /** The turn is to be ended after so long. */
  maxTimeMs: number | null;
} & ({ kind: "new" } | { kind: "continue"; session: string });

/** What a conversation with a host may need to know besides what it is about. */
export interface Asked {
  secret: string | null;
  /** Where sessions were recorded that this host may have: those written since it started; or that of the one it is about. */
  directories: readonly string[];
}

export interface HttpRequest {
  method: "GET" | "POST";
  path: string;
  body?: unknown;
  /** For basic authentication, where there is a secret. */
  user?: string;
}
