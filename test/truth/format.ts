// What the harness knows about an agent to simulate it: where it writes, what, and how it announces itself.
// Written from the agents' notes and captured files alone; shares nothing with the product's adapters.
import type { Database } from "bun:sqlite";
import type { Announcement } from "./announcement.ts";
import type { FakeAgent } from "./fake-agent.ts";
import type { GatewayFormat } from "./gateway.ts";
import type { Dice } from "./random.ts";
import type { Line, Turn } from "./read-record.ts";
import type { Session } from "./simulated-host.ts";

/** How a process comes to its session: says so itself, was started with it, or has not said anything (yet). */
export type Manner = "announced" | "argv" | "nameless" | "resume";

export interface Format {
  agent: string;
  command: string;
  /**
   * A script has the shell as its first argument. An agent that is recognized by its first argument needs a shell under its own
   * name; one that is recognized by more than that needs a disguise.
   */
  program: "script" | "shell" | Disguises;
  /** Below the folder of all homes. */
  home: string;
  environment(home: string): Record<string, string>;
  /** Below its home: the folder of all records, and that of the announcements. */
  records: string;
  announcements: AnnouncementFormat | null;
  /** Records are rows of a database instead of files of lines. */
  database: DatabaseFormat | null;
  /** Records are whole documents that also name the process of the session. */
  documents?: DocumentsFormat;
  /** A process that has sessions for others and is none itself. */
  hub?: HubFormat;
  /** All sessions live in one process, and agentctl asks it about them. */
  gateway?: GatewayFormat;
  /** False: it makes up its ids itself, so that agentctl cannot assign one to a new session. */
  choosesId?: false;
  /** Only the first line names the session: without it the sessions are not known. */
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
  can(session: Session, event: string, actor: FakeAgent | null): boolean;
  begin(session: Session, actor: FakeAgent | null): string;
  lines(session: Session, event: string, fields: Fields, actor: FakeAgent | null): string;
  /** What the process says of itself from now on; null: it never does, or not about this. */
  wordAfter(session: Session, event: string, fields: Fields, actor: FakeAgent): Word | null;
  firstWord(argv: readonly string[], session: Pick<Session, "turnOpen" | "asking">): Word;
  reader: Reader;
}

/** What processes of an agent look like: the agent itself, and what stays above it as its parent, if anything does. */
export interface Disguises {
  agent: Disguise;
  wrapper: Disguise | null;
}

export interface Disguise {
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
  /** One of its tables: a database without it has no sessions. */
  table: string;
  /** Columns of JSON that may be broken, and what their rows are sorted by. Each table has a `session_id`. */
  texts: readonly { table: string; column: string; order: readonly string[] }[];
  /** Removes a session by its id. */
  removal: string;
  /** Writes a line of `Format.lines` into its tables. */
  put(database: Database, line: Fields): void;
  /** Reads the same lines from its tables; null: there is no such session. */
  lines(database: Database, id: string): Fields[] | null;
  /** The same from what older versions kept, which counts where the database has no such session. */
  oldLines?(home: string, id: string): Fields[] | null;
}

/** Documents that a process keeps in memory and rewrites with every change. */
export interface DocumentsFormat {
  /** The new content of each file in the record's folder, after one more line of `Format.lines`. */
  put(session: Session, line: Fields): Record<string, string>;
  /** Reads the lines from these files, the line of the session first; null: there is no such session. */
  lines(session: Session): Fields[] | "unreadable" | null;
  /** The process that the record names, and when the record was written. */
  owner(session: Session): { pid: number; writtenMs: number } | null;
  /** Files that the record consists of besides its first one. */
  others(session: Session): string[];
  /** The first line of the record says that no process has the session any more. */
  isOver(first: Line): boolean;
  /** What a process writes that leaves its session. */
  parting(session: Session, outcome: "completed" | "interrupted"): string;
  /** A person may begin a new session in it. */
  mayClear(fake: Pick<FakeAgent, "argv">): boolean;
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
  /** One lock per session: only one process may hold it, and a process has no session and writes nothing before that. */
  isExclusive: boolean;
}

export interface AnnouncementFormat {
  folder: string;
  fileOf(announcement: Pick<Announcement, "pid" | "session">): string;
  /** Finds `pid` in a path below the folder, and `session` where it is there. */
  pattern: RegExp;
  write(announcement: Announcement, fake: Pick<FakeAgent, "cwd" | "argv" | "bornMs">): string;
  parse(text: string, pid: number, session: string): Announcement | null;
  /** Rewritten in place, or renamed into it. */
  inPlace: boolean;
  hasNamespace(fake: FakeAgent): boolean;
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
