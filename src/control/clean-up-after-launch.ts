// Clean-up after a launch has answered: sync its note to disk, run hooks whose holders were killed, and remove temporary files
// and expired notes.
import { Failure } from "../core/failure.ts";
import type { OnNotice } from "../core/notice.ts";
import { errorCode } from "../lib/errors.ts";
import { asFailure } from "../observe/failure.ts";
import type { Environment } from "../observe/homes.ts";
import { selectIds } from "../observe/selection.ts";
import { type Caller, resolveCaller } from "./guard.ts";
import { isExitHookOpen, startDueHooksOf } from "./hooks/start-runner.ts";
import { forgetExpired, forgetTemporaries, mayHaveExpired } from "./note-retention.ts";
import { keepNote, readHookedNotes, readNotes } from "./notes.ts";
import { takeNarrowSnapshot } from "./snapshot.ts";

/** Looks at sessions only if there may be something to do. A failure is only a notice: the next launch tries again. */
export async function cleanUpAfterLaunch(
  launches: readonly string[],
  { caller, env, onNotice }: { caller: Caller; env: Environment; onNotice: OnNotice },
): Promise<void> {
  try {
    for (const id of launches) keepNote(env, id);
    forgetTemporaries(env, Date.now());
    const open = readHookedNotes(env).filter(isExitHookOpen);
    const hasOld = mayHaveExpired(env, Date.now());
    if (open.length === 0 && !hasOld) return;
    // A note is removed only when its session is known to be stopped.
    const noted = hasOld ? readNotes(env).notes : open;
    const snapshot = await takeNarrowSnapshot(env, selectIds(noted.map(({ session }) => session)));
    startDueHooksOf(open, snapshot, resolveCaller(caller, snapshot, env), env, onNotice);
    if (hasOld) forgetExpired(env, snapshot, Date.now());
  } catch (error) {
    if (!(error instanceof Failure) && errorCode(error) === "") throw error;
    onNotice({ code: "clean-up-failed", facts: { failure: asFailure(error) } });
  }
}
