// What holders that were killed have left to do: on-exit of launches whose agent is gone. Run by the next command that acts.
import { launchOf } from "../core/family.ts";
import { AgentctlError } from "../core/problem.ts";
import { isLive, type ProcessRow } from "../core/process.ts";
import { failureText } from "../observe/failure.ts";
import type { Environment } from "../observe/homes.ts";
import { selfCommand } from "../sys/self.ts";
import { spawnFree } from "../sys/spawn.ts";
import { type Caller, callerOf } from "./guard.ts";
import { heldIn } from "./holder.ts";
import { hookEnvironment, runnerWord } from "./hooks.ts";
import { type ReadNote, readHookedNotes } from "./notes.ts";
import { lookAround, type Surroundings } from "./surroundings.ts";

type Warn = (text: string) => void;

/** Looks only where there may be one. */
export async function lookForDueHooks(env: Environment, warn: Warn): Promise<void> {
  const notes = readHookedNotes(env).filter(isExitHookOpen);
  if (notes.length === 0) return;
  try {
    const around = await lookAround(env);
    runDueHooks(around, notes, callerOf(around, env), env, warn);
  } catch (error) {
    // What the command was called for is done; the next one will look again.
    if (!(error instanceof AgentctlError)) throw error;
    warn(`hooks of earlier launches are not run now: ${error.message}`);
  }
}

/** An agent's call is not the moment for a person's commands. */
export function runDueHooks(
  around: Surroundings,
  notes: readonly ReadNote[],
  caller: Pick<Caller, "isGuarded">,
  env: Environment,
  warn: Warn,
): void {
  if (caller.isGuarded) return;
  for (const note of notes)
    try {
      if (isExitHookDue(note, around))
        spawnFree([...selfCommand(), runnerWord, "late", note.id], {
          env: hookEnvironment(env, note),
          inherits: null,
        });
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      warn(`the hook of an earlier launch could not be run (${note.id}): ${failureText(error)}`);
    }
}

export const isExitHookOpen = ({ hooks, hookRuns }: ReadNote): boolean =>
  hooks.exit !== null && hookRuns.exit?.state !== "ended";

/** Its agent is provably gone, and nobody is at it: neither its holder nor a runner. */
export function isExitHookDue(note: ReadNote, { list, table }: Surroundings): boolean {
  const { state = "cut-off" } = note.hookRuns.exit ?? {};
  if (note.hooks.exit === null || state !== "cut-off" || table.gaps.length > 0) return false;
  const isAtIt = table.rows.some((row) => {
    const argv = row.detail?.argv ?? [];
    const isRunner = argv.includes(runnerWord) && argv.includes(note.id);
    return isLive(row) && (isRunner || heldIn(argv)?.launch === note.id);
  });
  // Its holder has led its kernel session, and is gone: where somebody leads it, it is no process of this launch.
  const mayBeOf = (row: ProcessRow): boolean =>
    launchOf(row) === note.id || (isUnread(row) && !table.rows.some((at) => isLive(at) && leads(at, row)));
  const { agent, home, session } = note;
  const hasAgent = list.sessions.some((each) =>
    each.processes.some((row) => (each.agent === agent ? mayBeOf(row) : launchOf(row) === note.id)),
  );
  if (isAtIt || hasAgent) return false;
  if (note.exit !== null) return true;
  const found = list.sessions.find((each) => each.id === session && each.agent === agent && each.home === home);
  if (found !== undefined) return found.status.state !== "unknown";
  // Without a record only a whole look at a whole machine can say that nobody has it.
  const isTagged = table.rows.some((row) => isLive(row) && mayBeOf(row));
  return !isTagged && list.complete && table.namespace.initial;
}

/** Whether it carries a tag cannot be told. */
const isUnread = ({ detail }: ProcessRow): boolean => detail?.ours === true && detail.env === null;

const leads = ({ identity }: ProcessRow, { session }: ProcessRow): boolean => identity.pid === session;
