// How an agent is started, continued, opened, spoken to and ended: as data. The acting itself is control's.
import { type Argv, argv, noWords } from "./argv.ts";

/** What a launched agent may do; mapped to each agent's own flags. */
export const permissions = ["read", "edit", "bypass"] as const;
export type Permission = (typeof permissions)[number];

export interface OrderFacts {
  model: string | null;
  permission: Permission | null;
  /** null: no prompt; the agent's own interface is opened. */
  prompt: string | null;
  /** Arguments that a person hands through. */
  extra: readonly string[];
}

/** A new session, one more turn of an old one, or a new one that begins as a copy of an old one. */
export type Order = OrderFacts &
  (
    | { kind: "new" /** Chosen by us; null: the agent chooses, and tells. */; session: string | null }
    | { kind: "continue"; session: string }
    | { kind: "fork"; from: string; session: string | null }
  );

/** Where and when a session is begun or continued. */
export interface Place {
  home: string;
  /** A folder of agentctl's own, for files that the arguments name. */
  own: string;
  cwd: string;
  /** The moment of the order. */
  at: number;
}

/** What must be there before a session of a chosen id can be started: a file of the agent's own format, or a run of its own importer. */
export type Preparation =
  | { kind: "file"; path: string; text: string }
  | {
      kind: "command";
      text: string;
      arguments(file: string): Argv;
      /** The arguments that take it back, where the session did not begin. */
      undo: Argv;
    };

export interface Permitted {
  flags: Argv;
  meaning: string;
  /** Variables that it takes besides, made out of the caller's. */
  environment?(env: Readonly<Record<string, string | undefined>>, place: Place): Record<string, string>;
  /** Files that take the effect from the flags: while one is there, this permission is refused. */
  voidedBy?: { folders: readonly string[]; name: RegExp; why: string };
}

export interface OwnSetting {
  /** For people: what it may do. */
  meaning: string;
  /** It may do everything. */
  isBypass: boolean;
}

export interface Invocation {
  /** Makes an id of this agent's shape out of a fresh UUID and the time; null: the agent chooses its ids itself. */
  chooseId: ((uuid: string, at: number) => string) | null;
  /** "argument": the prompt stands in the arguments, where everybody can read it, and is limited in size. */
  promptBy: "stdin" | "argument";
  /** The arguments of a run without an interface. */
  headless(order: Order, place: Place): Argv;
  /** Of a new session with a chosen id; absent: nothing is needed. */
  prepare?(session: string, order: Order, place: Place): Preparation | null;
  /** A file of ours that the arguments name (a policy, say), written anew before each start; absent: none. */
  support?(order: Order, place: Place): { path: string; text: string } | null;
  /** The arguments that open its own interface on an old session; null: it cannot (or cannot fork). */
  interface(order: Order, place: Place): Argv | null;
  /** Variables that it is started with, whatever the caller has. */
  environment?: Readonly<Record<string, string>>;
  /** Variables that make it use this data folder. */
  environmentFor(home: string): Record<string, string>;
  /** Variables that tell a session apart; inherited, they would make a new session look like a part of the caller's. */
  scrubbed: RegExp;
  /** The variable, in the environment of what its tools start, that holds the session's id; null: there is none. */
  childMark: string | null;
  /** The session id in one line of its standard output; null: not that line. */
  announcedIn(line: unknown): string | null;
  /** How its turn ended, in one line of its standard output; for agents whose records do not say. null: not that line. */
  endedIn?(line: unknown): "completed" | "failed" | null;
  permissions: Readonly<Record<Permission, Permitted>>;
  /** What no permission at all means here, judging by the agent's own settings (null: no such file). */
  ownSetting: {
    files(home: string, cwd: string): string[];
    /** `places`: the directory, and the repository's root if it is inside of one. */
    judge(texts: readonly (string | null)[], places: readonly string[]): OwnSetting;
  };
  /** Why it would refuse this order; null: it would not. */
  refuses(order: Order, caller: { isRoot: boolean; env: Readonly<Record<string, string | undefined>> }): string | null;
  /** What its last words mean when it ends before it has begun. */
  startFailures: readonly { sign: RegExp; message: string; hint: string }[];
  /** Gentlest first, each with the time it is given before the next one; SIGKILL follows the last. */
  stopSignals: readonly { signal: NodeJS.Signals; patienceMs: number }[];
  /** Its own way to end a job that its supervisor would start again; null: it has none. */
  ownStop(job: string): Argv | null;
  /** What ends the turn of a live process: a signal, or keys typed at its terminal (null: it has none; keys then become SIGINT). */
  interrupt(argv: readonly string[], tty: string | null): { signal: NodeJS.Signals } | { keys: string };
}

/** As most agents take them. */
export const modelAndPermission = (
  { model, permission }: Order,
  { permissions }: Pick<Invocation, "permissions">,
): Argv =>
  argv`${model === null ? noWords : argv`--model ${model}`} ${permission === null ? noWords : permissions[permission].flags}`;
