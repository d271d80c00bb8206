// The process table of this machine.
import { type Reading, unread } from "../core/problem.ts";
import type { ProcessTable } from "../core/process.ts";
import { darwinSystem } from "../sys/darwin.ts";
import type { ProcessWish } from "./process-wish.ts";
import { readDarwinProcesses } from "./processes.darwin.ts";
import { readLinuxProcesses } from "./processes.linux.ts";

export function readProcesses(wish: ProcessWish): Reading<ProcessTable> {
  if (process.platform === "linux") return readLinuxProcesses(wish);
  if (process.platform === "darwin") return readDarwinProcesses(wish, darwinSystem);
  const message = `the process table of ${process.platform} is not known to agentctl`;
  return unread({ code: "processes-unreadable", agent: null, source: process.platform, message });
}
