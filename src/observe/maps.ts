// What a process has mapped into its memory: the libraries that it has loaded among them.
import { readFileSync } from "node:fs";
import type { ProcessRow } from "../core/process.ts";
import { errorCode } from "./failure.ts";

/** Empty: it is gone, not ours to look at, or this system does not tell. */
export function readMaps({ identity }: ProcessRow): string {
  if (process.platform !== "linux") return "";
  try {
    return readFileSync(`/proc/${identity.pid}/maps`, "latin1");
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return "";
  }
}
