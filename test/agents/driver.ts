// A real agent as the shared suites need it: how it is started, what its record shows when, and what is therefore expected
// of agentctl. People wrote it after watching the agent; no parser did.
import type { CaptureCase } from "./case.ts";
import type { Key, SeenProcess, TestHome, Tui } from "./test-home.ts";

export type Activity = "working" | "waiting" | "idle" | "unclear";
export type Outcome = "completed" | "failed" | "interrupted" | "cut-off";
export type Link = "announced" | "assigned" | "argv" | "cwd";
export type Signal = "SIGINT" | "SIGTERM" | "SIGHUP" | "SIGKILL";

export interface Begin {
  /** An id that the caller chooses, in the agent's own way; only where `links.withId` says that there is one. */
  session?: string;
  /** The recorded session to go on with. */
  resume?: string;
}

/** What is there once it is over. null: stopped, but the record does not say how. "nothing": no record at all, no row. */
export type After = Outcome | null | "nothing";

/** What a signal does. Several outcomes: the agent itself is not always quick enough to write. */
export type Effect = "survives" | After | readonly After[];

export interface RealAgent {
  /** "pi 0.73.1" */
  name: string;
  agent: string;
  version: string;
  /** Takes seconds to start: without FULL=1 only what is essential is tried with it. */
  isSlow?: true;
  /** The existing suites are about it already: it takes part in the common home, and elsewhere only if ONLY names it. */
  hasOwnSuites?: true;
  /** Writes its settings below `home.home`, adds to `home.env`, and adds its command. */
  setUp(world: TestHome): void | Promise<void>;
  home(world: TestHome): string;
  /** What fixtures keep of it: glob patterns below its data folder. SQLite databases by their own name, without -wal and -shm. */
  files: readonly string[];

  /** One turn without an interface, in which it may do everything. */
  headless(world: TestHome, prompt: string, begin?: Begin): string[];
  interface: Interface | null;
  /** Starts a wrapper that stays as the agent's parent. */
  wrapper: boolean;
  /** The process that has the session: no wrapper, no tool. */
  isAgent(process: SeenProcess): boolean;
  /** Its processes that outlive sessions by design. */
  stays?(process: SeenProcess): boolean;

  sessions(world: TestHome): string[];
  /** The newest sign in the record: a prompt, a tool call that has no result, the end of a turn; null: none of them, or no record. */
  sign(world: TestHome, id: string): "prompted" | "tool" | "ended" | null;
  /** An id of its shape, where the caller may choose one; index: to get several. */
  freshId?(index: number): string;

  /** What its record can show. */
  shows: {
    /** While the model answers the first prompt of a session; "nothing": no record yet, a row without an id. */
    firstTurn: "working" | "unclear" | "nothing";
    /** The same for a launched one: its id is known. */
    launchedTurn: "working" | "unclear";
    /** While the model answers a later prompt. */
    laterTurn: "working" | "unclear";
    tool: "working" | "unclear";
    /** The sign that is newest while a tool runs; without it "tool". */
    toolSign?: "prompted" | null;
    /** Its record does not say that a turn is over: an idle session is unclear, a completed one stopped without an outcome. */
    endUnsaid?: true;
    /** After an answer of HTTP 400. */
    error: After | readonly After[];
  };
  /** What a signal to the agent's process leaves behind, while the model answers (the first prompt) and while a tool runs. */
  ends: Record<Signal, { turn: Effect; tool: Effect }>;

  links: {
    /** Started by hand, without an id. */
    plain: Link;
    /** Started by hand with an id of the caller's choice, or with that of the session to go on with; null: it has no such way. */
    withId: Link | null;
    resumed: Link;
    launched: Link;
  };

  /** How agentctl gives it the prompt. */
  promptBy: "stdin" | "argument";
  /** What `agentctl interrupt` and `stop` of a launched one leave behind inside a tool. */
  interrupted: readonly After[];
  stopped: readonly After[];
  /** Arguments after `--` with which it refuses to start, and its words; null: it takes everything. */
  wrong: { args: readonly string[]; says: RegExp } | null;
  /** It goes on with a session only in its interface, and these are agentctl's words when something is sent to one. */
  sendRefused?: RegExp;
  /** `agentctl resume --print` has a line. */
  resumes: boolean;

  permits: Permits | null;
  /** Cases that make no sense for it, by their names, with the reason. */
  cannot?: Readonly<Record<string, string>>;
  /** What its record counts for each answered request, and the model that it names; absent: fixtures say nothing of them. */
  usage?: { model: string; input: number; output: number; cacheRead: number; cacheWrite: number };
  /** Before the names of its fixtures, where several versions have some: "073-". */
  prefix?: string;
  /** Captured besides the standard schedules. */
  cases?(): CaptureCase[];
}

export interface Interface {
  command(world: TestHome, begin?: Begin): string[];
  /** On the screen when it takes a prompt. */
  ready: RegExp;
  /** Types a prompt and sends it; without it: the text, seen on the screen, then Enter. */
  say?(tui: Tui, text: string): Promise<void>;
  /** While the model answers a prompt in it; without it like any later turn. */
  turn?: "working" | "unclear";
  /** On a new session; without it like a headless one. */
  link?: Link;
  /** On an old session; without it like any resumed one. */
  resumed?: Link;
  /** What the keys that end a turn show afterwards; null: there are none. `after`: on the screen before they are pressed. */
  escape: { keys: readonly Key[]; shows: Activity; after?: RegExp } | null;
  /** After its terminal is closed inside a turn. */
  closed: Effect;
  /** How it asks before a tool; null: it never asks. */
  approval: Approval | null;
  /** Has an id, before the first prompt. */
  freshId: boolean;
}

export interface Approval {
  prompt(world: TestHome): string;
  /** Also: settings that make it ask, where it does not by default. */
  setUp?(world: TestHome): void;
  command?(world: TestHome): string[];
  /** On the screen when it asks. */
  asks: RegExp;
  activity: "waiting" | "unclear";
  /** The newest sign in its record by then, where it is written late. */
  sign?: "tool";
}

export interface Seen {
  edited: boolean;
  ran: boolean;
  outside: boolean;
}

export interface Permits {
  /** Tool calls (marks of the fake model) that make the file `edited` in its directory, run a command that makes `ran` there, make `outside`. */
  calls(world: TestHome, outside: string): [edit: string, run: string, outside: string];
  read: Seen | "refused";
  edit: Seen | "refused";
  bypass: Seen | "refused";
  /** Without a value, and the words about it on stderr. */
  none: Seen;
  noneSays: RegExp;
}

/** What is known of a turn that is over. */
export const completed = ({ shows }: RealAgent): After => (shows.endUnsaid ? null : "completed");
export const idle = ({ shows }: RealAgent): Activity => (shows.endUnsaid ? "unclear" : "idle");

const only = process.env["ONLY"]?.split(",").map((name) => name.trim()) ?? null;

/** Of these, the ones that this run is about: `ONLY=pi,gemini`, or `ONLY="pi 0.73.1"`. */
export const chosen = (
  agents: readonly RealAgent[],
  unnamed: "all" | "without suites" = "without suites",
): RealAgent[] =>
  agents.filter(({ name, agent, hasOwnSuites }) =>
    only === null ? unnamed === "all" || hasOwnSuites !== true : only.includes(agent) || only.includes(name),
  );

export const oneOf = <T extends string | null>(value: T | readonly T[]): readonly T[] =>
  Array.isArray(value) ? value : [value as T];
