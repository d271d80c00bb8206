// The changes in a session's directory since the session began, and the other sessions that worked there meanwhile.
import { beginningOf, type Patch, patchSince } from "../control/git/session-changes.ts";
import { placeOf } from "../observe/place.ts";
import { selectWrittenSince } from "../observe/selection.ts";
import type { Call } from "./call.ts";
import { lookAtRows, type SessionRow } from "./look.ts";
import { lookFor, resolve } from "./reference.ts";

export interface DiffAnswer extends Patch {
  /** The commit that the patch starts at, if agentctl had to guess it; null: a launch recorded it. */
  guessedCommit: string | null;
  /** Other sessions that worked in the same directory since: the patch contains their changes, too. */
  others: SessionRow[];
}

export async function diff(reference: string, format: "patch" | "stat", call: Call): Promise<DiffAnswer> {
  const { all } = await lookFor([reference], call, lookAtRows);
  call.onProblems(all.problems);
  const { session, launch } = resolve(reference, all, call);
  const beginning = await beginningOf(session, launch, call.env);
  const since = session.startedAt ?? 0;
  const { rows } = await lookAtRows(call, session.startedAt === null ? "all" : selectWrittenSince(since));
  const others = rows.filter(
    ({ session: { id, cwd, updatedAt } }) =>
      id !== session.id && placeOf(cwd) === beginning.place && (updatedAt ?? 0) > since,
  );
  const patch = await patchSince(beginning, call.env, format === "stat" ? ["--stat"] : []);
  return { ...patch, guessedCommit: beginning.isGuessed ? beginning.commit : null, others };
}
