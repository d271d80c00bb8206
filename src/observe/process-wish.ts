// Which processes are worth a closer look, and what of them.

export interface ProcessWish {
  names: ReadonlySet<string>;
  pids: ReadonlySet<number>;
  environment: ReadonlySet<string>;
  lockedFiles: readonly RegExp[];
}
