// Which processes are worth a closer look, and what of them.
import type { Adapter } from "../adapters/adapter.ts";

export interface ProcessWish {
  names: ReadonlySet<string>;
  pids: ReadonlySet<number>;
  environment: ReadonlySet<string>;
  /** Of which agents: the open files of a process are gone through only where name and arguments say that it is theirs. */
  lockedFiles: readonly Pick<Adapter, "lockedFiles" | "processNames" | "role">[];
  /** "ours": details of every process, and the environments of ours; for whoever is about to end some of them. */
  also?: "ours";
}
