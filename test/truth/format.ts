// What the harness must know of an agent to play it and to read it back: where it writes, what, and how it announces itself.
// Written from the agents' notes and captured files alone; shares nothing with the product's adapters.
import type { Database } from "bun:sqlite";
import type { Claim } from "./announcement.ts";
import type { GatewayFormat } from "./gateway.ts";
import type { Dice } from "./random.ts";
import type { Line, Turn } from "./record.ts";
import type { Twin } from "./twin.ts";
import type { Session } from "./world.ts";

/** How a process comes to its session: says so itself, was started with it, or has not said anything (yet). */
export type Manner = "announced" | "argv" | "nameless" | "resume";

export interface Format {
  agent: string;
  /** The name of its processes. */
  command: string;
  /**
   * A script has the shell as its first argument; an agent that is told by that one needs a shell under its own name. One
   * that is told by more than that wears a guise.
   */
  program: "script" | "shell" | Guises;
  /** Below the folder of all homes. */
  home: string;
  environment(home: string): Record<string, string>;
  /** Below its home: the folder of all records, and that of the announcements. */
  records: string;
  claims: ClaimFormat | null;
  /** Records are rows of a database instead of files of lines. */
  database: DatabaseFormat | null;
  /** Records are whole documents, which also say who has the session. */
  documents?: DocumentsFormat;
  /** A process that has sessions for others and is none itself. */
  hub?: HubFormat;
  /** All sessions live in one process, which is asked about them. */
  gateway?: GatewayFormat;
  /** False: it makes up its ids itself, so that agentctl cannot assign one to a new session. */
  choosesId?: false;
  /** Only the first line says whose record it is: without it nobody can tell which sessions there are. */
  idInside: boolean;
  /** The file whose kernel lock is the announcement; null: there is none. */
  lock: LockFormat | null;
  /** Small files that are written with the first line of a record, by their path from its folder. */
  beside?(session: Session): Record<string, string>;
  /** They hold the directory of the session: its lines do not. */
  cwdBeside?: boolean;
  newId(dice: Dice): string;
  recordPath(session: Session): string;
  argv(manner: Manner, id: string, dice: Dice): string[];
  argvNames(argv: readonly string[], id: string): boolean;
  /** A person may go on to another session in it, without a sign. */
  mayMoveOn(argv: readonly string[]): boolean;
  /** Arguments of one that is started by another one's tool: the last word is in no other argv. */
  nestedArgv(id: string): string[];
  /** It overwrites its arguments: it may have been started with any session. */
  hidesArguments: boolean;
  /** What SIGTERM leaves: nothing, or what SIGKILL leaves. */
  tidiesOnTerm: boolean;
  /** Lines may come later than what they tell. */
  writesLate: boolean;
  /** Whether a process with these arguments tells its session sooner or later. One that never does may be linked by its directory. */
  announces(argv: readonly string[]): boolean;
  /** Several processes may have one session. */
  manyWriters: boolean;
  /** Whether this agent, in this mood, has such an event. */
  can(session: Session, event: string, actor: Twin | null): boolean;
  begin(session: Session, actor: Twin | null): string;
  lines(session: Session, event: string, fields: Fields, actor: Twin | null): string;
  /** What the process says of itself from now on; null: it never does, or not about this. */
  wordAfter(session: Session, event: string, fields: Fields, actor: Twin): Word | null;
  firstWord(argv: readonly string[], session: Pick<Session, "turnOpen" | "asking">): Word;
  reader: Reader;
}

/** What processes of an agent look like: the agent itself, and what stays above it as its parent, if anything does. */
export interface Guises {
  agent: Guise;
  wrapper: Guise | null;
}

export interface Guise {
  /** The file that runs, below the folder of programs. */
  exe: string;
  /** What it calls itself in the process table. */
  name: string;
  /** What its parent adds to its environment. */
  environment?: Record<string, string>;
  /** The bytes of its arguments, as the kernel shows them. */
  commandLine(argv: readonly string[]): string;
}

export const wordsOf = (words: readonly string[]): string => words.map((word) => `${word}\0`).join("");

export interface DatabaseFormat {
  schema: string;
  /** One of its tables: without it nobody has a session there. */
  table: string;
  /** Columns of JSON that may be broken, and what their rows are sorted by. Each table has a `session_id`. */
  texts: readonly { table: string; column: string; order: readonly string[] }[];
  /** Removes a session by its id. */
  removal: string;
  /** Puts what a line of `Format.lines` tells into its tables. */
  put(database: Database, line: Fields): void;
  /** The same lines, out of what stands there; null: there is no such session. */
  lines(database: Database, id: string): Fields[] | null;
  /** The same from what older versions kept, which counts where the database has no such session. */
  oldLines?(home: string, id: string): Fields[] | null;
}

/** What a process keeps in mind, and replaces with every change. */
export interface DocumentsFormat {
  /** What stands in which file of the record's folder, after one more line of `Format.lines`. */
  put(session: Session, line: Fields): Record<string, string>;
  /** Lines out of what stands there; null: there is no such session. The first one is the session's own. */
  lines(session: Session): Fields[] | "unreadable" | null;
  /** The process that has it by the record's word, and when that was written. */
  owner(session: Session): { pid: number; writtenMs: number } | null;
  /** Files that the record consists of besides its first one. */
  others(session: Session): string[];
  /** By the first line of the record nobody has it any more. */
  isOver(first: Line): boolean;
  /** What a process writes that leaves its session. */
  parting(session: Session, outcome: "completed" | "interrupted"): string;
  /** A person may begin a new session in it. */
  mayClear(twin: Pick<Twin, "argv">): boolean;
}

export interface HubFormat {
  argv(cwd: string): string[];
  environment: Record<string, string>;
}

export type Fields = Record<string, unknown>;

/** The process's own word beside its announcement. */
export interface Word {
  status: string | null;
  waitingFor: string | null;
}

export interface LockFormat {
  /** Below its home. */
  path(id: string, pid: number): string;
  /** One for each session: only one process may have it, and nobody has a session, or writes, before that. */
  isExclusive: boolean;
}

export interface ClaimFormat {
  folder: string;
  /** Its file below the folder. */
  fileOf(claim: Pick<Claim, "pid" | "session">): string;
  /** Finds `pid` in a path below the folder, and `session` where it is there. */
  pattern: RegExp;
  write(claim: Claim, twin: Pick<Twin, "cwd" | "argv" | "bornMs">): string;
  parse(text: string, pid: number, session: string): Claim | null;
  /** Rewritten in place, or renamed into it. */
  inPlace: boolean;
  hasNamespace(twin: Twin): boolean;
  hasBoot: boolean;
}

export interface Reader {
  /** null: not a line of this agent. */
  accept(line: Fields): Line | null;
  isHeader(line: Line): boolean;
  isMark(line: Line): boolean;
  /** Its time counts as that of the last message; absent: that of every line does. */
  isMessage?(line: Line): boolean;
  turnOf(lines: readonly Line[]): Turn;
}
