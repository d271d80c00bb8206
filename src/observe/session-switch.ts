// Claude Code announces a new session up to 100 ms before it flushes the record of the old one (`/clear`, `/resume`). A record that
// seems cut off in this time is read again afterwards.
import { startSlackMs } from "../core/announcements.ts";
import type { Evidence } from "../core/evidence.ts";
import type { Session, SessionList } from "../core/session.ts";

/** Three times the longest delay that was observed. */
const settleMs = 300;

/** The time for a second reading, if a session that seems cut off may not have been flushed yet; null: no second reading. */
export function settledAt(
  { stores }: Pick<Evidence, "stores">,
  { sessions }: SessionList,
  since: number,
  now: number,
): number | null {
  const times = stores.flatMap(({ agent, home, announcements }) =>
    announcements.flatMap(({ reading }): number[] => {
      if (!reading.ok) return [];
      const { session, cwd, writtenAt } = reading.value;
      // A time in the future proves nothing.
      if (writtenAt === null || writtenAt > now || writtenAt + settleMs <= since) return [];
      const here = sessions.filter((each) => each.agent === agent && each.home === home);
      const speaker = here.find(({ id, status }) => id === session && status.state === "running");
      return speaker !== undefined && here.some((each) => mayHaveHad(speaker, each, cwd)) ? [writtenAt + settleMs] : [];
    }),
  );
  return times.length === 0 ? null : Math.max(...times);
}

/** Whether the process ran in the same directory when the last message of the other session was written. */
const mayHaveHad = ({ processes }: Session, { status, record }: Session, cwd: string | null): boolean =>
  status.state === "stopped" &&
  status.outcome === "cut-off" &&
  record?.cwd === cwd &&
  processes.some(({ startedAt }) => startedAt <= (record.lastMessageAt ?? 0) + startSlackMs);
