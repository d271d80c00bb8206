// Starts an agent in the background. The answer is the id of its session, or an error and nothing left running.
import { adapters } from "../agents/registry.ts";
import { cleanUpAfterLaunch } from "../control/note-retention.ts";
import { readNote } from "../control/notes.ts";
import { type StartedLaunch, startLaunch } from "../control/start-launch.ts";
import { isSameSession, type Session } from "../core/session.ts";
import { listSessions } from "../observe/observe.ts";
import { selectIds } from "../observe/selection.ts";
import type { Call } from "./call.ts";
import { type LaunchRequest, planLaunch } from "./launch-plan.ts";
import { shortestRef } from "./refs.ts";

export type { StartedLaunch };

/** Returns as soon as the id is known. `describeStart` and `cleanUpAfter` belong to it, after the id has been shown. */
export async function launch(request: LaunchRequest, call: Call): Promise<StartedLaunch> {
  return await startLaunch(planLaunch(request, call, false), call);
}

export interface StartDescription {
  ref: string;
  /** null: it could not be read. */
  session: Session | null;
  /** Why --on-start failed; null: it did not. */
  hookProblem: string | null;
}

export async function describeStart({ launched, plan }: StartedLaunch, call: Call): Promise<StartDescription> {
  for (const notice of launched.notices) call.onNotice(notice);
  const now = await lookAtStarted(launched.id, plan);
  const hook = readNote(call.env, launched.launch)?.hookRuns.start ?? null;
  const hasFailed = hook?.state === "ended" && hook.status !== 0;
  return { ...now, hookProblem: hasFailed ? (hook.problem ?? `exit status ${hook.status}`) : null };
}

/** The session runs: a look that fails is no failure of the launch. */
async function lookAtStarted(
  id: string,
  { adapter, env, home }: StartedLaunch["plan"],
): Promise<{ ref: string; session: Session | null }> {
  try {
    const list = await listSessions({ adapters, env, selection: selectIds([id]) });
    const name = { agent: adapter.agent, home, id };
    return { ref: shortestRef(id, list), session: list.sessions.find((each) => isSameSession(each, name)) ?? null };
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return { ref: id, session: null };
  }
}

export const cleanUpAfter = (started: readonly StartedLaunch[], call: Call): Promise<void> =>
  cleanUpAfterLaunch(
    started.map(({ launched }) => launched.launch),
    call,
  );

export const launchJson = (
  { launched, plan }: StartedLaunch,
  now: { ref: string; session: Session | null } | null,
) => ({
  id: launched.id,
  ref: now?.ref ?? launched.id,
  agent: plan.adapter.agent,
  launch: launched.launch,
  process: now?.session?.processes[0]?.identity ?? null,
  cwd: now?.session?.cwd ?? plan.cwd,
  group: plan.note.group,
  permission: plan.permission,
});
