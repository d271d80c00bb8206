// The facts about an agent that link its processes to its sessions. Adapters provide them; the engine never compares agent names.
import type { ProcessDetail, ProcessRow } from "./process.ts";

export type Role =
  /** May own sessions itself. */
  | "agent"
  /** Serves many sessions; owns only those that it names. */
  | "server"
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
  /** Does this process announce its session before it writes to it? Then it is never matched by directory. */
  announces(detail: ProcessDetail): boolean;
  /** Ids that the process announces through the kernel (locked files); absent: none. */
  announcedIds?(detail: ProcessDetail): string[];
  /** The agent overwrites its arguments: it may have been started with any session. */
  hidesArguments?(detail: ProcessDetail): boolean;
  /** An interface in which a person can switch sessions without a trace: its arguments tell only the first session. */
  mayMoveOn?(detail: ProcessDetail): boolean;
  /** The session id in its arguments, parsed by position. */
  argvId(argv: readonly string[]): string | null;
  /** How its servers show their sessions; absent: it has no servers. "lock": all of its processes hold locks. */
  serversNameBy?: "answer" | "lock" | null;
  /** The data folder that a process with this environment uses. */
  home(env: Readonly<Record<string, string>>): string | null;
  /** The data folder by the files that a process holds open, which counts more than its environment; null: none. */
  heldHome?(detail: ProcessDetail): string | null;
}

/** The role of a process, cached because one look asks for it often; null: none, or its details were not read. */
export function roleOf(rules: AgentRules, { name, detail }: ProcessRow): Role | null {
  if (detail === null) return null;
  const known = roles.get(detail) ?? new Map<AgentRules, Role | null>();
  roles.set(detail, known);
  if (!known.has(rules)) known.set(rules, rules.role(name, detail));
  return known.get(rules) ?? null;
}

const roles = new WeakMap<ProcessDetail, Map<AgentRules, Role | null>>();
