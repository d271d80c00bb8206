// Where a call comes from, for front doors that run as the calling process itself.
import type { Caller } from "../control/guard.ts";
import type { Environment } from "../observe/homes.ts";

export type { Caller };

/** The command line and an MCP server are processes that the caller started: the process tree shows the calling session. */
export const ownCaller = (env: Environment): Caller => ({ kind: "process", pid: process.pid, env });
