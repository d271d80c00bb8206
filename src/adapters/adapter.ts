// An agent is data: where its records are, how to read one, how its processes are told from helpers.
// Everything that is not specific to an agent belongs to observe/ or control/.
import type { HostedSession, NativeRecord, PidClaim } from "../core/evidence.ts";
import type { Reading } from "../core/problem.ts";
import type { AgentRules } from "../core/rules.ts";

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
  /** Newest first; stops at a limit far above what a turn takes. */
  backward(): Iterable<Line>;
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
  /** How to ask a host; null: this agent has no hosts that answer. */
  host: HostProtocol | null;
}

export interface HostProtocol {
  /** Sockets below the home; the name's `pid` group is the host's. */
  sockets: FileSet;
  /** The text to send after connecting; the answer ends when the host closes. */
  question: string;
  parseAnswer(text: string): Reading<HostedSession[]>;
}
