// An agent is data: where its records are, how to read one, how its processes are told from helpers.
// Everything that is not specific to an agent belongs to observe/ or control/.
import type { HostedSession, NativeRecord, PidClaim, Succession, Tokens } from "../core/evidence.ts";
import type { Reading } from "../core/problem.ts";
import type { ProcessRow } from "../core/process.ts";
import type { AgentRules } from "../core/rules.ts";
import type { Invocation } from "./invocation.ts";

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
  /** Newest first, at most so many bytes back: a limit far above what a turn takes. */
  backward(): Iterable<Line>;
  tailBytes: number;
  /** Bytes stand after the last newline: a line is being written, or was cut. */
  torn: boolean;
  /** The file begins as JSON lines do. Without any complete line: a first line in the making rather than something else. */
  startsLikeJson: boolean;
}

/** Files below a home, by folder pattern ("projects/*") and name; the name's `id` or `pid` group is what it identifies. */
export interface FileSet {
  folder: string;
  name: RegExp;
}

export interface ClaimFile {
  pid: number;
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
  usage: { key: string; tokens: Tokens; model: string | null } | null;
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
  /** What cannot be known about this agent, in sentences for `agentctl adapters`. */
  unknowable: readonly string[];
  /** Keys of a process's environment that `home` and the parsers need. */
  environment: readonly string[];
  records: readonly FileSet[];
  claims: FileSet | null;
  /** Open files worth checking for a kernel lock (announcedIds); null: the agent locks nothing. */
  lockedFiles: RegExp | null;
  /** Must not throw on any input; what it does not recognise is a problem of that one row. */
  parseRecord(file: RecordFile): Reading<NativeRecord>;
  parseClaim(file: ClaimFile): Reading<PidClaim>;
  /** null: a kind of line that these rules do not know. */
  parseLine(value: unknown): LineFacts | null;
  /** Does the record hold its running totals near its end, so that `list` can show them without reading it whole? */
  tokensInTail: boolean;
  /** Denied calls can be counted in the record. */
  countsDenied: boolean;
  /** Records of subagents, below the folder that is named like the record; null: they are not kept apart. */
  subagentRecords: FileSet | null;
  /** A record continues another one's history (a fork without a copy): that one's id. */
  historyOf(file: RecordFile): string | null;
  /** Lines of this file below the home tell of sessions left for a new one; null: nothing of that kind. */
  successions: { file: string; parse(value: unknown): Succession | null } | null;
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
  /** Sockets below the home. A `pid` group in the name is the host's; with an `id` group nobody knows whose it is. */
  sockets: FileSet;
  transport: "plain" | "websocket";
  /** Which sessions it has, and what they are doing. */
  sessions: Talk<HostedSession[]>;
  /** Ends the turn of one session; the session stays. Answers what was done, in words. */
  interrupt(session: string): Talk<string>;
  /** Hands a message with an id of its own to one session: it begins with it, or takes it up after its turn. */
  send(session: string, text: string, messageId: string): Talk<string>;
}
