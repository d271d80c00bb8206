// Sessions that are in each other's way: they share a worktree, or changed the same file.
import type { Conflict } from "../control/conflicts/conflict-groups.ts";
import { type Conflicts, conflictsOf } from "../control/conflicts/find-conflicts.ts";
import type { LookContext, SessionRow } from "./look.ts";

export type SessionConflict = Conflict;
export type SessionConflicts = Conflicts;

export const findConflicts = (rows: readonly SessionRow[], { env }: LookContext): Promise<SessionConflicts> =>
  conflictsOf(
    rows.map(({ session }) => session),
    env,
  );
