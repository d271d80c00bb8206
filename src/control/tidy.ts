// What a start leaves to do when it has given its answer: its own note on the disk, hooks whose holders were killed, what a killed
// writer left half written, and what has been kept too long.
import { AgentctlError } from "../core/problem.ts";
import { failureText } from "../observe/failure.ts";
import type { Environment } from "../observe/homes.ts";
import { withIds } from "../observe/wanted.ts";
import { isExitHookOpen, runDueHooks } from "./due-hooks.ts";
import { callerOf } from "./guard.ts";
import { forgetExpired, forgetTemporaries, mayHaveExpired } from "./keep.ts";
import { keepNote, readHookedNotes, readNotes } from "./notes.ts";
import { lookCloselyAround } from "./surroundings.ts";

/** Looks only where there may be something. That it could not be done is no reason to fail: the next one will do it. */
export async function tidyUp(
  launches: readonly string[],
  env: Environment,
  warn: (text: string) => void,
): Promise<void> {
  try {
    for (const id of launches) keepNote(env, id);
    forgetTemporaries(env, Date.now());
    const open = readHookedNotes(env).filter(isExitHookOpen);
    const hasOld = mayHaveExpired(env, Date.now());
    if (open.length === 0 && !hasOld) return;
    // Whose session is not known to be stopped is not forgotten.
    const noted = hasOld ? readNotes(env).notes : open;
    const around = await lookCloselyAround(env, withIds(noted.map(({ session }) => session)));
    runDueHooks(around, open, callerOf(around, env), env, warn);
    if (hasOld) forgetExpired(env, around, Date.now());
  } catch (error) {
    if (!(error instanceof AgentctlError) && !(error instanceof Error && "code" in error)) throw error;
    warn(`what launches leave was not seen to: ${failureText(error)}`);
  }
}
