// A session in a worktree of its own: made, set up, entered; undone if it does not come to that.
import { AgentctlError } from "../core/problem.ts";
import { oneLine, plainText } from "../lib/width.ts";
import { standIn } from "../sys/spawn.ts";
import type { Launched } from "./launch.ts";
import { runForPerson, shellWord } from "./person-command.ts";
import { MayStillBegin } from "./start-hosted.ts";
import { interruption, type StartRequest, startSession } from "./start-session.ts";
import type { WasIn } from "./undo-worktree.ts";
import { addWorktree, commitAt, type MadeWorktree, type WorktreeWish } from "./worktrees.ts";

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
    // Git is asked while we look.
    const commit = note.commit ?? commitAt(cwd, env);
    return { launched: await startSession(request, commit), request };
  }
  const { interrupted, release } = interruption();
  /** Of two reasons to end, the person's. */
  const unlessInterrupted = (): Promise<unknown> => Promise.race([interrupted, null]);
  try {
    const made = await addWorktree({ ...own, cwd }, env);
    await unlessInterrupted().catch((error) => undone(made, "setup", error, request));
    return await startInside(made, own.setup, request, interrupted);
  } catch (error) {
    if (!(error instanceof AgentctlError && error.code === "interrupted")) await unlessInterrupted();
    throw error;
  } finally {
    release();
  }
}

async function startInside(
  made: MadeWorktree,
  setup: string | null,
  request: StartRequest,
  interrupted: Promise<never>,
): Promise<Started> {
  const { env, note } = request;
  // Until the agent itself is there: whoever would remove the worktree sees that it is wanted.
  let standing: ReturnType<typeof standIn> | null = null;
  let wasIn: WasIn = "setup";
  try {
    standing = standIn(made.path);
    for (const warning of made.warnings) request.warn(`${made.path}: ${warning}`);
    if (setup !== null) await setUp(setup, made, request, interrupted);
    wasIn = "agent";
    const there = { ...request, cwd: made.cwd, note: { ...note, worktree: made.path } };
    return { launched: await startSession(there, commitAt(made.path, env)), request: there };
  } catch (error) {
    standing?.leave();
    return await undone(made, wasIn, error, request);
  } finally {
    standing?.leave();
  }
}

async function undone(made: MadeWorktree, wasIn: WasIn, error: unknown, { env, warn }: StartRequest): Promise<never> {
  // A launch that goes well does not load it.
  const { undoWorktree } = await import("./undo-worktree.ts");
  const stays = error instanceof MayStillBegin ? ["it may still be begun in"] : await undoWorktree(made, wasIn, env);
  const where = `${made.path} stays, on branch ${made.branch}`;
  warn(stays === null ? `${made.path} was removed again` : `${where}: ${oneLine(stays.join("; "))}`);
  throw error;
}

const shownLines = 40;

async function setUp(
  command: string,
  made: MadeWorktree,
  { env, warn }: StartRequest,
  interrupted: Promise<never>,
): Promise<void> {
  warn(`setting up ${made.path}`);
  const end = await runForPerson(command, { cwd: made.cwd, env, interrupted });
  if (end.status === 0) return;
  const said = plainText(end.text).trimEnd().split("\n").slice(-shownLines).join("\n");
  throw new AgentctlError("failed", `--setup ${shellWord(end)}; nothing was started\n${said}`);
}
