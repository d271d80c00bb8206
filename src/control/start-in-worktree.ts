// A session in a worktree of its own: made, set up, entered; undone if it does not come to that.
import { AgentctlError } from "../core/problem.ts";
import { plainText } from "../lib/width.ts";
import { runShell } from "../sys/spawn.ts";
import { agentEnvironment } from "./environment.ts";
import type { Launched } from "./launch.ts";
import { interruption, type StartRequest, startSession } from "./start-session.ts";
import { addWorktree, commitAt, type MadeWorktree, undoWorktree, type WorktreeWish } from "./worktrees.ts";

export interface OwnWorktree extends Omit<WorktreeWish, "cwd"> {
  /** A person's command that makes it ready. */
  setup: string | null;
}

export interface Started {
  launched: Launched;
  /** With the directory that it really began in. */
  request: StartRequest;
}

/** null: where it was asked for. */
export async function startWhere(request: StartRequest, own: OwnWorktree | null): Promise<Started> {
  const { env, cwd, note } = request;
  if (own === null) {
    const here = { ...request, note: { ...note, commit: note.commit ?? (await commitAt(cwd, env)) } };
    return { launched: await startSession(here), request: here };
  }
  const made = await addWorktree({ ...own, cwd }, env);
  try {
    for (const warning of made.warnings) request.warn(`${made.path}: ${warning}`);
    if (own.setup !== null) await setUp(own.setup, made, request);
    const commit = await commitAt(made.path, env);
    const there = { ...request, cwd: made.cwd, note: { ...note, worktree: made.path, commit } };
    return { launched: await startSession(there), request: there };
  } catch (error) {
    await undoWorktree(made, env);
    throw error;
  }
}

const shownLines = 40;

async function setUp(command: string, made: MadeWorktree, { adapter, env, warn }: StartRequest): Promise<void> {
  const { interrupted, release } = interruption();
  warn(`setting up ${made.path}`);
  try {
    const own = { ...agentEnvironment(env, adapter, null), PWD: made.cwd };
    const ready = runShell(command, { cwd: made.cwd, env: own, unwanted: interrupted });
    const { status, text } = await Promise.race([ready, interrupted]);
    if (status === 0) return;
    const said = plainText(text).trimEnd().split("\n").slice(-shownLines).join("\n");
    const how = status === null ? "was killed" : `failed (exit status ${status})`;
    throw new AgentctlError("failed", `--setup ${how}; nothing was started, and ${made.path} was removed\n${said}`);
  } finally {
    release();
  }
}
