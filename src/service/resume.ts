// The command that reopens a conversation in the agent's own interface, and the checks before it may be run.
import { commandOf } from "../control/agent-program.ts";
import { agentEnvironment } from "../control/child-environment.ts";
import { guardPermission, guardTarget, resolveCaller } from "../control/guard.ts";
import { startDueHooks } from "../control/hooks/start-runner.ts";
import { withLaunchLock } from "../control/launch-lock.ts";
import { supportFolder } from "../control/notes.ts";
import { checkContinuable } from "../control/start-session.ts";
import { Failure } from "../core/failure.ts";
import { isServed } from "../core/session.ts";
import type { Call } from "./call.ts";
import { ownSettingOf } from "./launch-plan.ts";
import { lookAroundAtRows, type SessionRow } from "./look.ts";
import { adapterOf, idOf, ownDirectory } from "./policy.ts";
import { lookFor, resolve } from "./reference.ts";

export interface ResumeRequest {
  reference: string;
  /** Continue in a copy, under a new id. */
  fork: boolean;
  /** Arguments for the agent itself. */
  extra: readonly string[];
}

export interface InterfaceCommand {
  program: string;
  args: string[];
  cwd: string;
  env: Record<string, string>;
  /** The variables that lead to the agent's home, for a shell that may not have them. */
  homeVariables: Record<string, string>;
}

/** Throws if the session may not be reopened. */
export async function interfaceCommand(request: ResumeRequest, call: Call): Promise<InterfaceCommand> {
  const { fork, extra } = request;
  const { all } = await lookFor([request.reference], call, lookAroundAtRows);
  call.onProblems(all.problems);
  const row = resolve(request.reference, all, call);
  idOf(row);
  const caller = resolveCaller(call.caller, all.snapshot, call.env);
  const own = ownSettingOf(adapterOf(row), row.session.home, ownDirectory(row));
  guardTarget(row.session, row.ref, caller, all.snapshot, all.notes);
  guardPermission({ permission: null, extra }, own.isBypass, caller);
  // A server shares its sessions with every interface that asks for them.
  if (!fork && !isServed(row.session)) checkContinuable(row.session, row.ref);
  return commandFor(row, request, call);
}

/** Runs `open` under the launch lock. The lock ends when this process becomes the agent, which every look sees from then on. */
export async function resume<T>(
  request: ResumeRequest,
  call: Call,
  open: (command: InterfaceCommand) => T,
): Promise<T> {
  await startDueHooks(call.caller, call.env, call.onNotice);
  return await withLaunchLock(call.env, async () => open(await interfaceCommand(request, call)), call.signal);
}

function commandFor(row: SessionRow, { fork, extra }: ResumeRequest, call: Call): InterfaceCommand {
  const adapter = adapterOf(row);
  const { invocation } = adapter;
  const { home, record } = row.session;
  const [id, cwd, at] = [idOf(row), ownDirectory(row), Date.now()];
  const order = {
    cwd,
    home,
    supportFolder: supportFolder(call.env),
    at,
    model: null,
    permission: null,
    prompt: null,
    extra,
  };
  const session = invocation.chooseId?.(crypto.randomUUID(), at) ?? null;
  const words = fork
    ? invocation.interface({ ...order, kind: "fork", session, from: id })
    : invocation.interface({ ...order, kind: "continue", session: record?.opensAs ?? id });
  if (words === null)
    throw new Failure("no-such-interface", { agent: adapter.title, action: fork ? "fork" : "reopen" });
  const [program = "", ...first] = commandOf(adapter, call.env);
  const env = agentEnvironment(call.env, adapter, home);
  const keys = Object.keys(invocation.environmentFor(home));
  const homeVariables = Object.fromEntries(keys.flatMap((key) => (env[key] ? [[key, env[key]]] : [])));
  return { program, args: [...first, ...words], cwd, env: { ...env, PWD: cwd }, homeVariables };
}
