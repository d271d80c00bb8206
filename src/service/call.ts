// The arguments that every act of the service gets besides its request.
import type { Caller } from "../control/guard.ts";
import type { OnNotice } from "../core/notice.ts";
import type { Problem } from "../core/problem.ts";
import type { Environment } from "../observe/homes.ts";

export interface Call {
  caller: Caller;
  /** Leads to the homes of the agents and of agentctl; an agent that is started gets it. */
  env: Environment;
  /** The directory that `.` and relative paths refer to. */
  cwd: string;
  signal: AbortSignal;
  onNotice: OnNotice;
  /** Gets the problems of the look, before the act begins. */
  onProblems(problems: readonly Problem[]): void;
}
