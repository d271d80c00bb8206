// One scheduled run of a real agent: what was done, and what is therefore true at its end. Fixtures are captured from these.
import type { TestHome, TestHomeOptions } from "./test-home.ts";

/** What the schedule did; never what a parser said. */
export interface Expected {
  state: "running" | "stopped";
  activity: "working" | "waiting" | "idle" | null;
  outcome: "completed" | "failed" | "interrupted" | "cut-off" | null;
  /** The files alone cannot show it: an honest reader may say unclear (running) or null (outcome). */
  notInTheFiles?: true;
  waiting?: {
    kind: "permission" | "question" | "plan" | "trust";
    tool: string | null;
    text?: string;
    options?: string[];
  };
  background?: { shells: number; subagents: number };
  parent?: string;
  continuedBy?: string;
  /** The answer that the last turn ended with. */
  result?: string;
  facts: {
    prompt: string | null;
    model?: string | null;
    permission?: string;
    denied?: number;
    tokens?: { input: number; output: number; cacheRead: number; cacheWrite: number } | null;
  };
}

export interface CapturedSession {
  /** "": nothing is recorded yet, only its process shows. */
  id: string;
  /** The process that has the session at this moment. */
  pid: number | null;
  expected: Expected;
}

export interface Capture {
  command: string[];
  moment: "live" | "dead";
  /** How the process ended, where it did: "exit 0", "SIGKILL". */
  ending?: string;
  /** A server's own answers at this moment, by method. */
  server?: Record<string, unknown>;
  sessions: CapturedSession[];
  /** Live processes without a known session, besides those above. */
  nameless?: number[];
}

export interface CaptureCase {
  name: string;
  world?: TestHomeOptions;
  run(world: TestHome): Promise<Capture>;
}
