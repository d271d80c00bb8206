// Selects the processes whose details are read, and which details.
import type { Adapter } from "../agents/adapter.ts";

/** Reads the table without details of any process. */
export const noDetails: ProcessQuery = { names: new Set(), pids: new Set(), environment: new Set(), lockedFiles: [] };

export interface ProcessQuery {
  names: ReadonlySet<string>;
  pids: ReadonlySet<number>;
  environment: ReadonlySet<string>;
  /** Open files are expensive to list: they are read only for processes whose name and arguments match one of these agents. */
  lockedFiles: readonly Pick<Adapter, "lockedFiles" | "processNames" | "role">[];
  /** "ours": details of all processes and the environments of ours; commands that end processes need them. */
  also?: "ours";
}
