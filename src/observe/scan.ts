// The tools and limits that all steps of one reading share.
import type { Adapter } from "../agents/adapter.ts";
import type { Deadline } from "../lib/deadline.ts";
import type { Databases } from "../sys/sqlite.ts";
import type { ProcessReader } from "./process-query.ts";
import type { RecordCache } from "./record-cache.ts";

export interface Scan {
  adapters: readonly Adapter[];
  readTable: ProcessReader;
  mounts: string;
  cache: RecordCache | null;
  databases: Databases;
  /** For servers, and for stores on file systems that may hang. */
  deadline: Deadline;
  /** A new one for each step that reads local records: a slow server must not use up their time. */
  localDeadline(): Deadline;
}
