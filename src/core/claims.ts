// Does an announcement still hold? It names a process that once was; only exactly that process has the session.
import type { PidClaim } from "./evidence.ts";
import { examinedIn, livePid, type ProcessRow, type ProcessTable } from "./process.ts";

export type Verdict =
  | { kind: "owner"; row: ProcessRow }
  | { kind: "dead"; why: string }
  | { kind: "cannot-tell"; why: string; rule: string };

/** Clocks are adjusted while machines run; file times and start times are compared with this much tolerance. */
export const clockSlackMs = 2_000;

/** A start is told in ticks of 10 ms, and the clock is steered while it runs: this close to it nobody can tell before from after. */
export const startSlackMs = 50;

/** Where an announcement was found, and what it is compared with. */
export interface ClaimContext {
  table: ProcessTable;
  /** The id of this machine; null: not known. */
  host: string | null;
  /** Its store is on a file system that other hosts may write to. */
  isShared: boolean;
}

/** The process in the table that the claim speaks of, if it can be there: by number here, or by its number in its namespace. */
export function claimedRow(claim: PidClaim, { table, host }: ClaimContext): ProcessRow | null {
  // A container may have a machine id of its own. Every other process on this machine would have written ours.
  if (namesOtherHost(claim, host)) {
    const isContained = ({ identity, detail }: ProcessRow): boolean =>
      detail?.sameFiles === false && detail.namespace === claim.namespace && identity.start === claim.start;
    return examinedIn(table).find((row) => isContained(row) && isInnerOf(row, claim, table)) ?? null;
  }
  const here = livePid(table, claim.pid);
  const saysHere = claim.namespace === table.namespace.id;
  if (saysHere || (claim.namespace === null && here?.identity.start === claim.start)) return here;
  const inside = examinedIn(table).find((row) => isInnerOf(row, claim, table));
  return inside ?? (claim.namespace === null ? here : null);
}

const namesOtherHost = (claim: PidClaim, host: string | null): boolean =>
  claim.host != null && host !== null && claim.host !== host;

/** A boot id is made anew by every machine at every start: ours is of this machine. */
const namesThisHost = (claim: PidClaim, { table, host }: ClaimContext): boolean =>
  (claim.host != null && claim.host === host) || (claim.boot !== null && claim.boot === table.boot);

/** From outside we see into a pid namespace: the claimed process is the one that has this number and start there. */
function isInnerOf(row: ProcessRow, claim: PidClaim, table: ProcessTable): boolean {
  const { detail } = row;
  if (detail === null || detail.innerPid !== claim.pid || detail.namespace === table.namespace.id) return false;
  return claim.namespace === null ? row.identity.start === claim.start : detail.namespace === claim.namespace;
}

/** `isAgents`: the process is recognised as one of the agent in whose store the claim stands. */
export function judgeClaim(claim: PidClaim, row: ProcessRow | null, isAgents: boolean, context: ClaimContext): Verdict {
  const { pid } = claim;
  const cannotTell = (why: string): Verdict => ({ kind: "cannot-tell", why, rule: "R10" });
  if (row === null && namesOtherHost(claim, context.host))
    return cannotTell(`announced by process ${pid} of another host (machine id ${claim.host})`);
  const verdict = judgeHere(claim, row, isAgents, context.table);
  if (!context.isShared || namesThisHost(claim, context)) return verdict;
  // A pid alone fits a process of any host; with the start in clock ticks it is this one.
  const fitsAnywhere = verdict.kind === "owner" && claim.start === null;
  return verdict.kind === "dead" || fitsAnywhere
    ? cannotTell(`announced by process ${pid}, which may run on another host: its store is on a network file system`)
    : verdict;
}

function judgeHere(claim: PidClaim, row: ProcessRow | null, isAgents: boolean, table: ProcessTable): Verdict {
  const { pid } = claim;
  const elsewhere = claim.namespace !== null && claim.namespace !== table.namespace.id;
  if (elsewhere && row === null)
    return {
      kind: "cannot-tell",
      why: `announced by process ${pid} of another pid namespace (${claim.namespace})`,
      rule: "R10",
    };
  if (claim.boot !== null && claim.boot !== table.boot)
    return { kind: "dead", why: `process ${pid} belonged to an earlier boot` };
  if (row === null && table.hidden.includes(pid))
    return { kind: "cannot-tell", why: `process ${pid} exists, but this system hides it from us`, rule: "R2" };
  if (row === null) return { kind: "dead", why: `process ${pid} is gone` };
  if (claim.start !== null && claim.start !== row.identity.start)
    return { kind: "dead", why: `pid ${pid} was recycled: start ${row.identity.start}, announced ${claim.start}` };
  if (claim.start !== null && claim.boot !== null) return { kind: "owner", row };

  // Without boot id or start time the number alone proves nothing: the process must be this agent's, and not younger than its word.
  if (!isAgents)
    return isBlind(row)
      ? { kind: "cannot-tell", why: `process ${pid} may be the announced one, but we may not look at it`, rule: "R2" }
      : { kind: "dead", why: `pid ${pid} is now another program (${row.name})` };
  const aheadMs = claim.start === null && claim.writtenAt !== null ? row.startedAt - claim.writtenAt : 0;
  if (aheadMs > clockSlackMs)
    return { kind: "dead", why: `pid ${pid} was recycled: it started after the announcement was written` };
  if (aheadMs > startSlackMs)
    return {
      kind: "cannot-tell",
      why: `pid ${pid} may have been recycled: it started just after the announcement was written, or the clock was set`,
      rule: "R1",
    };
  return { kind: "owner", row };
}

/** Too little of it could be read to say what program it is. */
export const isBlind = ({ detail }: ProcessRow): boolean =>
  detail === null || detail.exe === null || detail.unread.length > 0;

/** Pid and start fit, yet the file is older than the process: after a reboot two processes may share both numbers. */
export const isOlderThanProcess = (claim: PidClaim, row: ProcessRow): boolean =>
  claim.boot === null && claim.writtenAt !== null && claim.writtenAt < row.startedAt - clockSlackMs;
