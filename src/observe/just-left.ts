// Who goes on to another session says so before the last lines of the one before are written: Claude Code by up to a tenth of a second
// (`/clear`, `/resume`). A record that seems cut off meanwhile is looked at again when that time is over.
import { startSlackMs } from "../core/claims.ts";
import type { Evidence } from "../core/evidence.ts";
import type { Session, SessionList } from "../core/session.ts";

/** Three times what was seen. */
const settleMs = 300;

/** When to look again, because what a look since then calls cut off may not have been written yet; null: it was all written. */
export function settledAt(
  { stores }: Pick<Evidence, "stores">,
  { sessions }: SessionList,
  since: number,
  now: number,
): number | null {
  const times = stores.flatMap(({ agent, home, claims }) =>
    claims.flatMap(({ reading }): number[] => {
      if (!reading.ok) return [];
      const { session, cwd, writtenAt } = reading.value;
      // What claims to be of the future tells nothing.
      if (writtenAt === null || writtenAt > now || writtenAt + settleMs <= since) return [];
      const here = sessions.filter((each) => each.agent === agent && each.home === home);
      const speaker = here.find(({ id, status }) => id === session && status.state === "running");
      return speaker !== undefined && here.some((each) => mayHaveHad(speaker, each, cwd)) ? [writtenAt + settleMs] : [];
    }),
  );
  return times.length === 0 ? null : Math.max(...times);
}

/** It was there when the last message of this one was written, in the same directory. */
const mayHaveHad = ({ processes }: Session, { status, record }: Session, cwd: string | null): boolean =>
  status.state === "stopped" &&
  status.outcome === "cut-off" &&
  record?.cwd === cwd &&
  processes.some(({ startedAt }) => startedAt <= (record.lastMessageAt ?? 0) + startSlackMs);
