// What the suite must know of a real agent to play a schedule with it: command lines, its ways to listen, and the signs
// that it got somewhere. One driver per agent, in drivers/; the schedules are in lifecycle.test.ts.
import { demoDriver } from "./drivers/demo.ts";

export const endings = ["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"] as const;
export type Ending = (typeof endings)[number];

export type Step =
  /** A person's message opens a turn. */
  | { do: "prompt"; text: string }
  /** Busy in a tool call until the work of this name is released. */
  | { do: "work"; name: string }
  /** A tool call that runs another program. */
  | { do: "run"; command: readonly string[] }
  | { do: "ask"; kind: "permission" | "question"; text: string }
  | { do: "end"; outcome: "completed" | "failed" }
  /** Stays alive and listens. */
  | { do: "stay" };

export interface Order {
  /** null: the agent chooses its own id. */
  id: string | null;
  /** Goes on with the session of this id, by the agent's own option. */
  resume?: true;
  /** Does not tell which session it has. */
  silent?: true;
  parent?: string;
  steps: readonly Step[];
}

/** How far a session's record has come: its newest line is of this kind. */
export type Sign = "prompted" | "tool" | "asking" | "answered" | "ended";

export interface Place {
  root: string;
  home: string;
  agentHome: string;
  project: string;
  binary: string;
}

export interface Driver {
  agent: string;
  /** Schedules that this agent cannot play, by the test's name, with the reason: shown as skipped. */
  lacks: Readonly<Record<string, string>>;
  environment(place: Place): Record<string, string>;
  command(place: Place, order: Order): string[];
  /** Looks like this agent with this session, and has a child between fork and exec. */
  forking(place: Place, id: string): { command: string[]; hasForked(): boolean };
  /** Ends the work of this name. */
  release(place: Place, name: string): void;
  /** The lines to write to its stdin. */
  answer(text: string): string;
  prompt(text: string): string;
  /** The newest sign in a session's record; null: none yet. */
  sign(place: Place, id: string): Sign | null;
  turns(place: Place, id: string): number;
  recorded(place: Place): string[];
  /** What a working session's record says after each ending. */
  outcomes: Readonly<Record<Ending, "interrupted" | "cut-off">>;
  /** The question as the agent records it. */
  waiting(kind: "permission" | "question", text: string): Record<string, unknown>;
  server: ServerDriver | null;
}

export interface ServerDriver {
  command(place: Place): string[];
  isReady(place: Place, pid: number): boolean;
  /** Lines to write to its stdin. */
  start(id: string, text: string): string;
  ask(id: string, text: string): string;
  end(id: string): string;
}

export const drivers: readonly Driver[] = [demoDriver];

/** These take their lives with the real tool and a fake model instead, in test/agents. */
export const realAgents: Readonly<Record<string, string>> = {
  "claude-code": "claude.test.ts",
  cline: "lifecycle-all-agents.test.ts",
  codex: "codex.test.ts",
  copilot: "lifecycle-all-agents.test.ts",
  gemini: "lifecycle-all-agents.test.ts",
  openclaw: "openclaw.test.ts",
  opencode: "lifecycle-all-agents.test.ts",
  pi: "lifecycle-all-agents.test.ts",
  qwen: "lifecycle-all-agents.test.ts",
};
