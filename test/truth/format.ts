// What the harness must know of an agent to play it and to read it back: where it writes, what, and how it announces itself.
// Written from the agents' notes and captured files alone; shares nothing with the product's adapters.
import type { Claim } from "./announcement.ts";
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
  /** A script has the shell as its first argument; an agent that is told by that one needs a shell under its own name. */
  program: "script" | "shell";
  /** Below the folder of all homes. */
  home: string;
  environment(home: string): Record<string, string>;
  /** Below its home: the folder of all records, and that of the announcements. */
  records: string;
  claims: ClaimFormat | null;
  /** Below its home, by session id: the file whose kernel lock is the announcement. */
  lockPath: ((id: string) => string) | null;
  newId(dice: Dice): string;
  recordPath(session: Session): string;
  argv(manner: Manner, id: string, dice: Dice): string[];
  argvNames(argv: readonly string[], id: string): boolean;
  /** What SIGTERM leaves: nothing, or what SIGKILL leaves. */
  tidiesOnTerm: boolean;
  /** Lines may come later than what they tell. */
  writesLate: boolean;
  /** A silent process may be linked by its directory. */
  linksByDirectory: boolean;
  /** Several processes may have one session. */
  manyWriters: boolean;
  /** Whether this agent, in this mood, has such an event. */
  can(session: Session, event: string, actor: Twin | null): boolean;
  begin(session: Session, actor: Twin | null): string;
  lines(session: Session, event: string, fields: Fields, actor: Twin | null): string;
  /** What the process says of itself from now on; null: it never does, or not about this. */
  wordAfter(session: Session, event: string, fields: Fields, actor: Twin): Word | null;
  firstWord(argv: readonly string[], session: Session): Word;
  reader: Reader;
}

export type Fields = Record<string, unknown>;

/** The process's own word beside its announcement. */
export interface Word {
  status: string | null;
  waitingFor: string | null;
}

export interface ClaimFormat {
  folder: string;
  write(claim: Claim, twin: Pick<Twin, "cwd" | "argv" | "bornMs">): string;
  parse(value: Fields, pid: number): Claim | null;
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
  turnOf(lines: readonly Line[]): Turn;
}
