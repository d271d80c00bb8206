// One more message to a session: a stopped one continues in the background, a served one gets it through its server.
import { guardTarget, resolveCaller } from "../control/guard.ts";
import { withLaunchLock } from "../control/launch-lock.ts";
import { unsaid } from "../control/notes.ts";
import { startSession } from "../control/start-session.ts";
import { sendToServed } from "../control/talk-to-server.ts";
import { Failure, type RequestAnswer } from "../core/failure.ts";
import { isSameSession, isServed } from "../core/session.ts";
import { unlessAborted } from "../lib/deadline.ts";
import { selectIds } from "../observe/selection.ts";
import type { Call } from "./call.ts";
import type { StartedLaunch } from "./launch.ts";
import { planStart, type StartRequest } from "./launch-plan.ts";
import { lookAroundAtRows, type SessionRow } from "./look.ts";
import { adapterOf, idOf, ownDirectory } from "./policy.ts";
import { lookFor, resolve } from "./reference.ts";

export interface SendRequest extends StartRequest {
  reference: string;
}

/** started: as after a launch. served: the session in its server as it is now, and the answer of the server. */
export type SendAnswer =
  | { kind: "started"; started: StartedLaunch }
  | { kind: "served"; row: SessionRow; said: RequestAnswer };

export async function send(request: SendRequest, call: Call): Promise<SendAnswer> {
  const { all } = await lookFor([request.reference], call, lookAroundAtRows);
  call.onProblems(all.problems);
  const row = resolve(request.reference, all, call);
  const { session, launch, ref } = row;
  guardTarget(session, ref, resolveCaller(call.caller, all.snapshot, call.env), all.snapshot, all.notes);
  if (isServed(session)) return await sendThroughServer(row, request, call);
  const { name, group, labels, spec, worktree, commit } = launch ?? unsaid;
  const plan = planStart(request, call, {
    adapter: adapterOf(row),
    which: { kind: "continue", session: idOf(row) },
    inherited: launch?.permission ?? null,
    cwd: ownDirectory(row),
    newWorktree: null,
    home: session.home,
    tied: false,
    before: session,
    ref,
    // Hooks belong to the launch that they were given for.
    note: { name, group, labels, spec, worktree, commit, hooks: unsaid.hooks, launchedBy: null },
  });
  return { kind: "started", started: { launched: await startSession(plan, call), plan } };
}

/** The session already runs there, with the model and the permission that it has. */
async function sendThroughServer(row: SessionRow, request: SendRequest, call: Call): Promise<SendAnswer> {
  const option = uselessOption(request);
  if (option !== null) throw new Failure("option-without-effect", { ref: row.ref, option });
  const id = idOf(row);
  const said = await withLaunchLock(call.env, () => sendUnlessAborted(row, request.prompt, call.signal), call.signal);
  const { rows } = await lookAroundAtRows(call, selectIds([id]));
  return { kind: "served", row: rows.find(({ session }) => isSameSession(session, row.session)) ?? row, said };
}

/** A request to the server cannot be taken back. */
async function sendUnlessAborted(row: SessionRow, prompt: string, signal: AbortSignal): Promise<RequestAnswer> {
  if (signal.aborted) throw new Failure("interrupted", { result: "nothing-started" });
  try {
    return await unlessAborted(signal, sendToServed(row.session, adapterOf(row), prompt));
  } catch (error) {
    if (!signal.aborted || error !== signal.reason) throw error;
    throw new Failure("interrupted", { result: "maybe-sent" }, { cause: error });
  }
}

function uselessOption({ permission, model, maxTimeMs, startTimeoutMs, extra }: SendRequest): string | null {
  if (permission !== null) return "--permission";
  if (model !== null) return "--model";
  if (maxTimeMs !== null) return "--max-time";
  if (startTimeoutMs !== null) return "--start-timeout";
  return extra.length > 0 ? "--" : null;
}

export const servedJson = ({ session, ref, launch }: SessionRow) => ({
  id: session.id,
  ref,
  agent: session.agent,
  launch: null,
  process: session.processes[0]?.identity ?? null,
  cwd: session.cwd,
  group: launch?.group ?? null,
  permission: null,
});
