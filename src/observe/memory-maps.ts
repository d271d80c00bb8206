// Lists the files that a process has mapped into its memory, such as libraries.
import { readFileSync } from "node:fs";
import type { ProcessRow } from "../core/process.ts";
import { tryOr } from "../lib/errors.ts";

/** Empty: the process is gone or not ours, or this is not Linux. */
export const readMaps = ({ identity }: ProcessRow): string =>
  process.platform === "linux" ? tryOr("", () => readFileSync(`/proc/${identity.pid}/maps`, "latin1")) : "";
