// Which processes are worth a closer look, and what of them.

export interface ProcessWish {
  names: ReadonlySet<string>;
  pids: ReadonlySet<number>;
  environment: ReadonlySet<string>;
  lockedFiles: readonly RegExp[];
  /** "ours": details of every process of this user; for whoever is about to end some of them. */
  also?: "ours";
}
