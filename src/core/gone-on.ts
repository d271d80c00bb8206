// Who goes on to another session (`/clear`, `/resume`) may have the end of the one before still to write: Claude Code does, for a
// tenth of a second. Until it has written anything newer, an open turn that may be its own is not known to have been cut off.
import { startSlackMs } from "./claims.ts";
import type { NativeRecord, PidClaim } from "./evidence.ts";
import type { Doubt } from "./found.ts";
import type { ProcessRow } from "./process.ts";
import type { Subject } from "./subjects.ts";

/** A process that says which session it has now. */
export interface Announcer extends Pick<Subject, "agent" | "home"> {
  row: ProcessRow;
  claim: PidClaim;
  /** When the record of the session that it has now was last written to; null: there is none. */
  wroteAt: number | null;
}

export const announcersAmong = (subjects: readonly Subject[]): Announcer[] =>
  subjects.flatMap(({ agent, home, owners, reading }) => {
    // One that cannot be read is there all the same.
    const wroteAt = reading === null ? null : reading.ok ? reading.value.writtenAt : Number.POSITIVE_INFINITY;
    return owners.flatMap((owner): Announcer[] =>
      owner.kind === "process" && owner.claim !== null
        ? [{ agent, home, row: owner.row, claim: owner.claim, wroteAt }]
        : [],
    );
  });

/** Why the end of this record's open turn, which nobody has any more, may still be to come. None: it is not. */
export function whyUnfinished(
  { turn, lastMessageAt: last, cwd }: NativeRecord,
  { agent, home }: Subject,
  announcers: readonly Announcer[],
): Doubt[] {
  if (turn.state !== "open" || last === null) return [];
  const mayBeItsOwn = ({ row, claim, wroteAt, ...now }: Announcer): boolean =>
    now.agent === agent &&
    now.home === home &&
    (claim.cwd ?? row.detail?.cwd ?? null) === cwd &&
    row.startedAt <= last + startSlackMs &&
    // A file's time is up to a tick of the kernel's behind the clock that records are written by.
    claim.writtenAt !== null &&
    claim.writtenAt > last - startSlackMs &&
    (wroteAt === null || wroteAt <= last);
  return announcers
    .filter(mayBeItsOwn)
    .sort((a, b) => a.claim.pid - b.claim.pid)
    .map(({ claim: { pid, source } }) => {
      const why = `process ${pid} has another session now, and may still have to write how this one's turn ended`;
      return { why, source, rule: "R11" };
    });
}
