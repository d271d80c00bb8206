// What the engine must know of an agent to tie its processes to its sessions. Adapters fill it in; the engine never asks for a name.
import type { ProcessDetail, ProcessRow } from "./process.ts";

export type Role =
  /** May own sessions itself. */
  | "agent"
  /** Serves many sessions; owns only those that it names. */
  | "host"
  /** Belongs to the agent but is never a session: helpers, wrappers, tool children. */
  | "helper";

export interface AgentRules {
  agent: string;
  /** Is this the shape of this agent's session ids? Nothing else ever becomes an id. */
  isId(text: string): boolean;
  /** Names in the process table under which this agent may run. */
  processNames: readonly string[];
  /** null: not this agent's process after all. */
  role(name: string, detail: ProcessDetail): Role | null;
  /** Does this process tell its session before it writes to it? Then it is never matched by directory. */
  announces(detail: ProcessDetail): boolean;
  /** Ids that the process announces through the kernel (locked files). */
  announcedIds(detail: ProcessDetail): string[];
  /** Its arguments are not there to be read (an agent that overwrites them): it may have been started with any session. */
  hidesArguments?(detail: ProcessDetail): boolean;
  /** An interface in which a person may go on to another session, without a sign: its arguments tell only where it began. */
  mayMoveOn?(detail: ProcessDetail): boolean;
  /** The session id in its arguments, parsed by position. */
  argvId(argv: readonly string[]): string | null;
  /** How its hosts name the sessions that they run; null: it has no hosts. "lock": and so does every other process of its. */
  hostsNameBy: "answer" | "lock" | null;
  /** The data folder that a process with this environment uses. */
  home(env: Readonly<Record<string, string>>): string | null;
  /** The data folder that a process shows to have by what it holds open, whatever its environment says; null: it shows none. */
  heldHome?(detail: ProcessDetail): string | null;
}

/** What a process is to an agent, asked for many times in one look; null: nothing, or nobody looked at it closely. */
export function roleOf(
  rules: Pick<AgentRules, "role">,
  { name, detail }: Pick<ProcessRow, "name" | "detail">,
): Role | null {
  if (detail === null) return null;
  const known = roles.get(detail) ?? new Map<unknown, Role | null>();
  roles.set(detail, known);
  const role = known.get(rules);
  if (role !== undefined) return role;
  const found = rules.role(name, detail);
  known.set(rules, found);
  return found;
}

const roles = new WeakMap<ProcessDetail, Map<unknown, Role | null>>();
