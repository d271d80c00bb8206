// Is an announcement still true? Only the very process that it names has the session.
import type { Announcement } from "./evidence.ts";
import { examinedIn, livePid, type ProcessRow, type ProcessTable } from "./process.ts";
import type { OwnerDoubt, StaleReason, TruthRule } from "./reason.ts";

export type Verdict =
  | { kind: "owner"; row: ProcessRow }
  | { kind: "dead"; why: StaleReason }
  | { kind: "cannot-tell"; why: OwnerDoubt; rule: TruthRule };

/** Clocks are adjusted while hosts run: file times and start times are compared with this tolerance. */
export const clockSlackMs = 2_000;

/** Start times have ticks of 10 ms, and the clock is adjusted: two times this close together cannot be ordered. */
export const startSlackMs = 50;

/** Where an announcement was found, and what it is compared with. */
export interface AnnouncementContext {
  table: ProcessTable;
  /** The id of this host; null: not known. */
  host: string | null;
  /** Its store is on a file system that other hosts may write to. */
  isShared: boolean;
}

/** The process that the announcement names, if it is in the table: by its pid here, or by its pid in its own namespace. */
export function announcedRow(announcement: Announcement, { table, host }: AnnouncementContext): ProcessRow | null {
  // A container may have its own machine id. Every other process on this host would have written our machine id.
  if (namesOtherHost(announcement, host)) {
    const isContained = ({ identity, detail }: ProcessRow): boolean =>
      detail?.sameFiles === false &&
      detail.namespace === announcement.namespace &&
      identity.start === announcement.start;
    return examinedIn(table).find((row) => isContained(row) && isInnerOf(row, announcement, table)) ?? null;
  }
  const here = livePid(table, announcement.pid);
  const saysHere = announcement.namespace === table.namespace.id;
  if (saysHere || (announcement.namespace === null && here?.identity.start === announcement.start)) return here;
  const inside = examinedIn(table).find((row) => isInnerOf(row, announcement, table));
  return inside ?? (announcement.namespace === null ? here : null);
}

const namesOtherHost = (announcement: Announcement, host: string | null): boolean =>
  announcement.host != null && host !== null && announcement.host !== host;

/** Every host makes a new boot id at every start, so an announcement with our boot id is from this host. */
const namesThisHost = (announcement: Announcement, { table, host }: AnnouncementContext): boolean =>
  (announcement.host != null && announcement.host === host) ||
  (announcement.boot !== null && announcement.boot === table.boot);

/** True if the process has the announced pid in an inner pid namespace, and the announced namespace or, without one, start. */
function isInnerOf(row: ProcessRow, announcement: Announcement, table: ProcessTable): boolean {
  const { detail } = row;
  if (detail === null || detail.innerPid !== announcement.pid || detail.namespace === table.namespace.id) return false;
  return announcement.namespace === null
    ? row.identity.start === announcement.start
    : detail.namespace === announcement.namespace;
}

const dead = (why: StaleReason): Verdict => ({ kind: "dead", why });
const cannotTell = (rule: TruthRule, why: OwnerDoubt): Verdict => ({ kind: "cannot-tell", why, rule });

/** `isAgents`: the process belongs to the agent that owns the store of the announcement. */
export function judgeAnnouncement(
  announcement: Announcement,
  row: ProcessRow | null,
  isAgents: boolean,
  context: AnnouncementContext,
): Verdict {
  const { pid } = announcement;
  if (row === null && namesOtherHost(announcement, context.host))
    return cannotTell("R10", { code: "announced-by-other-host", pid, host: announcement.host ?? "" });
  const verdict = judgeHere(announcement, row, isAgents, context.table);
  if (!context.isShared || namesThisHost(announcement, context)) return verdict;
  // A pid alone fits a process of any host; with the start in clock ticks it is this one.
  const fitsAnywhere = verdict.kind === "owner" && announcement.start === null;
  return verdict.kind === "dead" || fitsAnywhere ? cannotTell("R10", { code: "may-be-on-other-host", pid }) : verdict;
}

function judgeHere(
  announcement: Announcement,
  row: ProcessRow | null,
  isAgents: boolean,
  table: ProcessTable,
): Verdict {
  const { pid, namespace, start, boot, writtenAt } = announcement;
  if (row === null && namespace !== null && namespace !== table.namespace.id)
    return cannotTell("R10", { code: "announced-by-other-namespace", pid, namespace });
  if (boot !== null && boot !== table.boot) return dead({ code: "earlier-boot", pid });
  if (row === null && table.hidden.includes(pid)) return cannotTell("R2", { code: "pid-hidden", pid });
  if (row === null) return dead({ code: "pid-gone", pid });
  if (start !== null && start !== row.identity.start)
    return dead({ code: "pid-recycled", pid, start: row.identity.start, announced: start });
  if (start !== null && boot !== null) return { kind: "owner", row };

  // Without boot id or start time the pid proves nothing: the process must belong to this agent, and be older than the announcement.
  if (!isAgents) {
    if (isBlind(row)) return cannotTell("R2", { code: "pid-unreadable", pid });
    return dead({ code: "pid-is-other-program", pid, name: row.name });
  }
  const aheadMs = start === null && writtenAt !== null ? row.startedAt - writtenAt : 0;
  if (aheadMs > clockSlackMs) return dead({ code: "started-after-announcement", pid });
  if (aheadMs > startSlackMs) return cannotTell("R1", { code: "pid-may-be-recycled", pid });
  return { kind: "owner", row };
}

/** True if the program or another detail of the process could not be read. */
export const isBlind = ({ detail }: ProcessRow): boolean =>
  detail === null || detail.exe === null || detail.unread.length > 0;

/** Pid and start match, but the file is older than the process: after a reboot two processes may share both numbers. */
export const isOlderThanProcess = (announcement: Announcement, row: ProcessRow): boolean =>
  announcement.boot === null &&
  announcement.writtenAt !== null &&
  announcement.writtenAt < row.startedAt - clockSlackMs;
