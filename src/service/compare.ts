// Compares the sessions of a group: how each ended, how long it took, what it changed, and whether a check passes there.
import {
  beginningOf,
  changesSince,
  patchSince,
  type SessionChanges,
  type StartingCommit,
} from "../control/git/session-changes.ts";
import { runShellCommand } from "../control/shell-command.ts";
import { Failure } from "../core/failure.ts";
import { failureText } from "../lib/errors.ts";
import { plainText } from "../lib/width.ts";
import type { ShellEnd } from "../sys/spawn.ts";
import { failureMessage } from "../words/failures.ts";
import { noticeLines } from "../words/notices.ts";
import type { Call } from "./call.ts";
import { launchedSessions, lookAtRows, type SessionRow } from "./look.ts";
import { countedJson, statusWord, time } from "./session-json.ts";
import { count } from "./usage.ts";

export interface CompareRequest {
  group: string;
  /** A shell command to run in the directory of each session; null: none. */
  check: string | null;
  wantsPatches: boolean;
}

export interface Compared {
  row: SessionRow;
  wallMs: number | null;
  /** null: unknown; `remarks` has the reason. */
  changes: SessionChanges | null;
  /** null: unknown, or not wanted. */
  patch: string | null;
  /** If it has neither a status nor a signal, the command could not be run. */
  check: ShellEnd | null;
  /** Why facts are missing or incomplete. */
  remarks: string[];
}

/** `onCheck` is called before (null) and after each check. */
export async function compare(
  { group, check, wantsPatches }: CompareRequest,
  call: Call,
  onCheck: (ref: string, end: ShellEnd | null) => void,
): Promise<Compared[]> {
  const { rows, at } = await lookAtRows(call, launchedSessions(call));
  const members = rows.filter(({ launch }) => launch?.group === group).reverse();
  if (members.length === 0) throw new Failure("group-empty", { group });
  const compared: Compared[] = [];
  for (const member of members) {
    call.signal.throwIfAborted();
    compared.push(await compareOne(member, at, wantsPatches, call));
  }
  if (check !== null) await checkAll(check, compared, call, onCheck);
  return compared;
}

async function compareOne(member: SessionRow, at: number, wantsPatches: boolean, { env }: Call): Promise<Compared> {
  const remarks: string[] = [];
  const row = await count(member, { env, onUnreadable: (message) => remarks.push(message) });
  const { startedAt, endedAt, updatedAt, status } = row.session;
  const end = endedAt ?? (status.state === "stopped" ? updatedAt : at);
  const wallMs = startedAt === null || end === null ? null : Math.max(0, end - startedAt);
  const unknown = { row, wallMs, changes: null, patch: null, check: null, remarks };
  let beginning: StartingCommit;
  try {
    beginning = await beginningOf(row.session, row.launch, env);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    remarks.push(failureMessage(error));
    return unknown;
  }
  const { changes, unshown } = await changesSince(beginning, env);
  remarks.push(...unshown.flatMap(noticeLines));
  return { ...unknown, changes, patch: wantsPatches ? (await patchSince(beginning, env)).patch : null };
}

const checksAtOnce = 2;

async function checkAll(
  command: string,
  compared: Compared[],
  call: Call,
  onCheck: (ref: string, end: ShellEnd | null) => void,
): Promise<void> {
  const queue = [...compared];
  const work = async (): Promise<void> => {
    for (let each = queue.shift(); each !== undefined; each = queue.shift()) {
      const { cwd } = each.row.session;
      if (cwd === null) continue;
      onCheck(each.row.ref, null);
      each.check = await runCheck(command, cwd, call);
      onCheck(each.row.ref, each.check);
    }
  };
  // After an abort, too, wait until every check has ended.
  const ends = await Promise.allSettled(Array.from({ length: checksAtOnce }, work));
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}

async function runCheck(command: string, cwd: string, { env, signal }: Call): Promise<ShellEnd> {
  try {
    return await runShellCommand(command, { cwd, env, signal });
  } catch (error) {
    if (error instanceof Failure) throw error;
    return { status: null, signal: null, text: failureText(error) };
  }
}

export function comparedJson({ row, wallMs, changes, check }: Compared) {
  const { session } = row;
  return {
    id: session.id,
    ref: row.ref,
    agent: session.agent,
    model: session.record?.facts.model ?? null,
    name: row.launch?.name ?? null,
    status: statusWord(session),
    outcome: session.status.state === "stopped" ? session.status.outcome : null,
    startedAt: time(session.startedAt),
    wallMs,
    ...(row.counted === undefined ? {} : countedJson(row.counted)),
    changes,
    check:
      check === null
        ? null
        : { status: check.status, signal: check.signal, output: plainText(check.text).slice(-4000) },
  };
}
