// Names and labels that a person gives to a session after its start, also to one that agentctl did not launch.
import { guardTarget, resolveCaller } from "../control/guard.ts";
import { forgetLaunch, type LaunchNote, unsaid, writeNote } from "../control/notes.ts";
import { Failure } from "../core/failure.ts";
import { isSameSession } from "../core/session.ts";
import type { Call } from "./call.ts";
import { lookAroundAtRows, type SessionRow } from "./look.ts";
import { idOf } from "./policy.ts";
import { lookFor, resolve } from "./reference.ts";

export interface Annotation {
  /** null: remove the name; absent: keep it. */
  name?: string | null;
  /** null: remove the label. */
  labels: Readonly<Record<string, string | null>>;
}

/** Returns the session with its new name and labels. They are stored as a launch note. No status depends on them. */
export async function annotate(reference: string, { name, labels }: Annotation, call: Call): Promise<SessionRow> {
  const { all } = await lookFor([reference], call, lookAroundAtRows);
  call.onProblems(all.problems);
  const row = resolve(reference, all, call);
  const { agent, home } = row.session;
  const session = idOf(row);
  const caller = resolveCaller(call.caller, all.snapshot, call.env);
  // An agent may name its own session.
  if (!caller.within.includes(row.session)) guardTarget(row.session, row.ref, caller, all.snapshot, all.notes);
  if (name != null) checkFree(name, row, all.rows);
  const at = new Date(all.at).toISOString();
  const notRun = { exit: null, hookRuns: { start: null, exit: null } };
  const byHand = { ...unsaid, ...notRun, id: crypto.randomUUID(), agent, home, session, at, byHand: true };
  const { exit, hookRuns, ...before } = row.launch ?? byHand;
  const given = Object.entries({ ...before.labels, ...labels }).flatMap(([key, value]) =>
    value === null ? [] : [[key, value] as const],
  );
  const note: LaunchNote = {
    ...before,
    session,
    name: name === undefined ? before.name : name,
    labels: Object.fromEntries(given),
  };
  const isEmpty = note.byHand === true && note.name === null && given.length === 0;
  if (isEmpty) forgetLaunch(call.env, note.id);
  else writeNote(call.env, note);
  return { ...row, launch: isEmpty ? null : { ...note, exit, hookRuns } };
}

/** Two live sessions must not have the same name. */
function checkFree(name: string, { session }: SessionRow, rows: readonly SessionRow[]): void {
  const taken = rows.find(
    (row) =>
      row.launch?.name === name && row.session.status.state !== "stopped" && !isSameSession(row.session, session),
  );
  if (taken === undefined) return;
  const { agent, id } = taken.session;
  throw new Failure("name-taken", { name, by: { agent, id } });
}
