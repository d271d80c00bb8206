// Starts a session, in its own new worktree if requested. The worktree is removed again if the session does not begin.
import { Failure } from "../core/failure.ts";
import { plainText } from "../lib/width.ts";
import { standIn } from "../sys/spawn.ts";
import { runShellCommand } from "./shell-command.ts";
import type { Launched, LaunchPlan } from "./start-agent.ts";
import { mayStillBegin } from "./start-in-server.ts";
import { type StartCall, startSession } from "./start-session.ts";
import { addWorktree, commitAt, type MadeWorktree } from "./worktrees/add-worktree.ts";
import type { LaunchStage } from "./worktrees/undo-worktree.ts";

export interface StartedLaunch {
  launched: Launched;
  /** Its directory is the one in which the session began. */
  plan: LaunchPlan;
}

export async function startLaunch(plan: LaunchPlan, call: StartCall): Promise<StartedLaunch> {
  const { env, cwd, note, newWorktree } = plan;
  if (newWorktree === null) {
    // Git runs while we read sessions and processes.
    const commit = note.commit ?? commitAt(cwd, env);
    return { launched: await startSession(plan, call, commit), plan };
  }
  try {
    const made = await addWorktree(newWorktree, cwd, env);
    if (call.signal.aborted) await undoAndThrow(made, "setup", call.signal.reason, call);
    return await startInside(made, newWorktree.setup, plan, call);
  } catch (error) {
    // Ctrl-C also kills git; the error to report is the interruption.
    call.signal.throwIfAborted();
    throw error;
  }
}

async function startInside(
  made: MadeWorktree,
  setup: string | null,
  plan: LaunchPlan,
  call: StartCall,
): Promise<StartedLaunch> {
  // A process of agentctl runs in the worktree until the agent does: that keeps other commands from removing it.
  let standing: ReturnType<typeof standIn> | null = null;
  let stage: LaunchStage = "setup";
  try {
    standing = standIn(made.path);
    for (const warning of made.warnings) call.onNotice(warning);
    if (setup !== null) await setUp(setup, made, call);
    stage = "agent";
    const there = { ...plan, cwd: made.cwd, note: { ...plan.note, worktree: made.path } };
    return { launched: await startSession(there, call, commitAt(made.path, plan.env)), plan: there };
  } catch (error) {
    standing?.leave();
    return await undoAndThrow(made, stage, error, call);
  } finally {
    standing?.leave();
  }
}

async function undoAndThrow(made: MadeWorktree, stage: LaunchStage, error: unknown, call: StartCall): Promise<never> {
  // Loaded only if needed: most launches succeed.
  const { undoWorktree } = await import("./worktrees/undo-worktree.ts");
  const kept = mayStillBegin(error) ? [{ code: "may-still-begin" as const }] : await undoWorktree(made, stage);
  const { path, branch } = made;
  if (kept === null) call.onNotice({ code: "worktree-removed", facts: { path } });
  else call.onNotice({ code: "worktree-kept", facts: { path, branch, reasons: kept } });
  throw error;
}

const shownLines = 40;

async function setUp(command: string, made: MadeWorktree, { signal, onNotice }: StartCall): Promise<void> {
  const { path, cwd, repository } = made;
  onNotice({ code: "worktree-setup", facts: { path } });
  const end = await runShellCommand(command, { cwd, env: repository.env, signal });
  if (end.status === 0) return;
  const output = plainText(end.text).trimEnd().split("\n").slice(-shownLines).join("\n");
  throw new Failure("setup-failed", { status: end.status, signal: end.signal, output });
}
