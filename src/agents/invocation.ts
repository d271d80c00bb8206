// Data about how to start, continue, open, interrupt and end an agent. src/control acts on it.
import type { Refusal, StartProblem } from "../core/failure.ts";
import type { OwnSetting, PermissionEffect } from "../core/permission.ts";
import { type Argv, argv, handedOn, noWords } from "./argv.ts";
import { type Fields, fieldsOf, parsedFields, uuidIn } from "./fields.ts";

/** What a launched agent may do; mapped to each agent's own flags. */
export const permissions = ["read", "edit", "bypass"] as const;
export type Permission = (typeof permissions)[number];

interface OrderFacts {
  model: string | null;
  permission: Permission | null;
  /** null: no prompt; the agent's own interface is opened. */
  prompt: string | null;
  /** Arguments that a person passes to the agent itself. */
  extra: readonly string[];
  /** The agent's data folder. */
  home: string;
  cwd: string;
  /** A folder of agentctl, for files that the arguments name. */
  supportFolder: string;
  /** The time of the start. */
  at: number;
}

/**
 * The part of a launch plan that an adapter turns into a command line: a new session, one more turn of an old one, or a new one
 * that begins as a copy of an old one. If `session` is null, the agent chooses the id.
 */
export type Order = OrderFacts &
  (
    | { kind: "new"; session: string | null }
    | { kind: "continue"; session: string }
    | { kind: "fork"; from: string; session: string | null }
  );

/** The work before a session with a chosen id starts: write a file in the agent's format, or run the agent's own importer. */
export type Preparation =
  | { kind: "file"; path: string; text: string }
  | {
      kind: "command";
      text: string;
      arguments(file: string): Argv;
      /** The arguments that delete the imported session if the launch fails. */
      undo: Argv;
    };

export interface Permitted {
  flags: Argv;
  effect: PermissionEffect;
  /** Variables that this permission also needs, made from the caller's environment. */
  environment?(env: Readonly<Record<string, string | undefined>>, order: Order): Record<string, string>;
  /** Policy files of the host that override the flags. If one exists, this permission is refused. */
  voidedBy?: { folders: readonly string[]; name: RegExp };
}

export interface Invocation {
  /** Makes a session id in the agent's format from a new UUID and the time; null: the agent chooses its ids. */
  chooseId: ((uuid: string, at: number) => string) | null;
  /** "argument": the prompt is in the arguments. Every user can read it there, and its size is limited. */
  promptBy: "stdin" | "argument";
  /** The arguments of a run without an interface. */
  headless(order: Order): Argv;
  /** For a new session with a chosen id; absent or null: no preparation. */
  prepare?(session: string, order: Order): Preparation | null;
  /** A file of agentctl that the agent needs (for example a policy), written again before each start; absent or null: none. */
  support?(order: Order): { path: string; text: string } | null;
  /** The arguments that open its own interface; null: its interface cannot do this. */
  interface(order: Order): Argv | null;
  /** Variables that are set at every start. They override the caller's. */
  environment?: Readonly<Record<string, string>>;
  /** Variables that make it use this data folder. */
  environmentFor(home: string): Record<string, string>;
  /** Variables of the caller's session. They are removed, or the new session would look like a part of the caller's. */
  scrubbed: RegExp;
  /** The variable that gives its tools the id of the session; null: there is none. */
  sessionVariable: string | null;
  /** The session id in a line of its standard output; null: the line has none. */
  announcedIn(line: unknown): string | null;
  /** How the turn ended, from a line of its standard output, if the record does not say it; null: the line does not say it. */
  endedIn?(line: unknown): "completed" | "failed" | null;
  permissions: Readonly<Record<Permission, Permitted>>;
  /** What the agent may do without --permission, by its own settings files. The text of a missing file is null. */
  ownSetting: {
    files(home: string, cwd: string): string[];
    /** `places`: the directory, and the repository's root if it is inside one. */
    judge(texts: readonly (string | null)[], places: readonly string[]): OwnSetting;
  };
  /** Why the agent would refuse this order; null: it would not. Absent: it never refuses one. */
  refuses?(
    order: Order,
    caller: { isRoot: boolean; env: Readonly<Record<string, string | undefined>> },
  ): Refusal | null;
  /** Patterns that explain its output if it exits before its session begins. */
  startFailures: readonly (StartProblem & { pattern: RegExp })[];
  /** The signals that stop it, gentlest first, each with the time before the next one. SIGKILL follows the last. */
  stopSignals: readonly { signal: NodeJS.Signals; patienceMs: number }[];
  /** The arguments that end a job: its supervisor would restart a job that was killed. Absent: the agent has no supervisor. */
  ownStop?(job: string): Argv;
  /** How to end the turn of a live process: a signal, or keys for its terminal. Without a terminal (null), keys become SIGINT. */
  interrupt(argv: readonly string[], tty: string | null): { signal: NodeJS.Signals } | { keys: string };
}

/** The mode that the agent's settings name. The first file with a mode wins. */
export const modeIn = (texts: readonly (string | null)[], find: (settings: Fields) => string | null): string | null =>
  texts.map((text) => find(parsedFields(text) ?? {})).find((mode) => mode !== null) ?? null;

/** The UUID under this key in a line of output of this type. */
export function uuidInLine(line: unknown, type: string, key: string): string | null {
  const fields = fieldsOf(line);
  return fields?.["type"] === type ? uuidIn(fields, key) : null;
}

export const stopStep = (signal: NodeJS.Signals, patienceMs: number): Invocation["stopSignals"][number] => ({
  signal,
  patienceMs,
});

/** The model, the permission and a person's own arguments, in the form that most agents accept. */
export function commonFlags(
  { model, permission, extra }: Order,
  { permissions }: Pick<Invocation, "permissions">,
): Argv {
  const flags = permission === null ? noWords : permissions[permission].flags;
  return argv`${model === null ? noWords : argv`--model ${model}`} ${flags} ${handedOn(extra)}`;
}

/** `--resume` for an old session, `--session-id` for a new one with a chosen id, in the form that most agents accept. */
export function sessionFlags(order: Order, fork: (from: string, chosen: Argv) => Argv): Argv {
  if (order.kind === "continue") return argv`--resume ${order.session}`;
  const chosen = order.session === null ? noWords : argv`--session-id ${order.session}`;
  return order.kind === "new" ? chosen : fork(order.from, chosen);
}
