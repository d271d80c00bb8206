// What a running session is doing: by its owner's own word, else by its record. Rule 3.
import { startSlackMs } from "./claims.ts";
import type { Activity, Evidence, NativeRecord, Turn, Waiting } from "./evidence.ts";
import type { FoundOwner } from "./found.ts";
import { isSuspended, sameProcess } from "./process.ts";
import type { Session } from "./session.ts";
import type { Subject } from "./subjects.ts";

export interface Doing {
  activity: Activity;
  reason: string | null;
  since: number | null;
  waiting: Session["waiting"];
}

/** Rule 3: the process's or the host's own word first, then the record; what neither says is unclear. */
export function activityOf(subject: Subject, record: NativeRecord | null, evidence: Evidence): Doing {
  const said =
    wordOfDialog(subject.owners, evidence) ?? wordOfOwner(subject.owners, record) ?? wordOfRecord(record, subject);
  const doing = said.activity === "idle" ? afterFailure(said, record) : said;
  const rows = subject.owners.flatMap((owner) => (owner.row === null ? [] : [owner.row]));
  return rows.length > 0 && rows.every(isSuspended) ? { ...doing, reason: "suspended" } : doing;
}

/** Idle after a turn that failed: for want of a login or of quota it waits for a person; else the failure is worth a word. */
function afterFailure(said: Doing, record: NativeRecord | null): Doing {
  const turn = record?.turn;
  if (turn?.state !== "closed" || turn.outcome !== "failed") return said;
  if (turn.needs === undefined) return { ...said, reason: said.reason ?? "its last turn failed" };
  const { kind, text } = turn.needs;
  return { activity: "waiting", reason: kind, since: turn.at, waiting: { kind, text, tool: null, options: [] } };
}

/** A process that was only given its session, and shows a dialog before it takes it up. */
function wordOfDialog(owners: readonly FoundOwner[], { dialogs }: Evidence): Doing | null {
  for (const owner of owners) {
    if (owner.kind !== "process" || owner.link === "announced") continue;
    const dialog = dialogs.find(({ process }) => sameProcess(process, owner.row.identity));
    if (dialog !== undefined)
      return { activity: "waiting", reason: dialog.waiting.kind, since: null, waiting: dialog.waiting };
  }
  return null;
}

/** Of several owners the one that asks for most attention speaks. */
function wordOfOwner(owners: readonly FoundOwner[], record: NativeRecord | null): Doing | null {
  const words = owners.flatMap((owner): Doing[] => {
    if (owner.kind === "host") {
      const { hosted } = owner;
      if (hosted === null) return [];
      const { activity } = hosted;
      const since = sinceOf(activity, record);
      return [{ activity, reason: null, since, waiting: question(activity, hosted.waiting, record) }];
    }
    const says = owner.claim?.says;
    if (says === undefined || says === null) return [];
    return [{ ...says, waiting: question(says.activity, owner.claim?.waiting ?? null, record) }];
  });
  const order: Activity[] = ["waiting", "working", "unclear", "idle"];
  return words.sort((a, b) => order.indexOf(a.activity) - order.indexOf(b.activity))[0] ?? null;
}

/** A host does not say since when; its record does, where the two agree. */
function sinceOf(activity: Activity, record: NativeRecord | null): number | null {
  const turn = record?.turn;
  if (turn?.state === "closed" && activity === "idle") return turn.at;
  return turn?.state === "open" && activity !== "idle" ? turn.since : null;
}

/** The owner says that it waits; for what, it says itself, or its pending tool call does. */
function question(activity: Activity, said: Waiting | null, record: NativeRecord | null): Waiting | null {
  if (activity !== "waiting") return null;
  if (said !== null && said.text === null) return record?.pending ?? record?.waiting ?? said;
  return said ?? record?.pending ?? record?.waiting ?? { kind: "other", text: null, tool: null, options: [] };
}

function wordOfRecord(record: NativeRecord | null, { reading, store, owners }: Subject): Doing {
  const unclear = (reason: string, since: number | null = null): Doing => ({
    activity: "unclear",
    reason,
    since,
    waiting: null,
  });
  if (record === null && (reading !== null || store?.listing.ok === false)) return unclear("its record cannot be read");
  if (record === null) return unclear("nothing recorded yet");
  const turn: Turn = record.turn;
  switch (turn.state) {
    case "none":
      return unclear("no prompt recorded yet");
    case "unclear":
      return unclear(turn.why);
    case "closed":
      // Started without a terminal it was started to do something; the end of turn is another one's.
      if (isInherited(turn.at, owners) && owners.every((owner) => owner.kind === "process" && owner.row.tty === null))
        return unclear("nothing recorded since its process began");
      if (turn.doubt !== undefined && !isInherited(turn.at, owners)) return unclear(turn.doubt, turn.at);
      return { activity: "idle", reason: backgroundReason(record), since: turn.at, waiting: null };
    case "open": {
      if (isInherited(turn.since, owners)) return unclear("its turn was begun by an earlier process", turn.since);
      const waiting = record.waiting;
      if (waiting !== null) return { activity: "waiting", reason: waiting.kind, since: waiting.since, waiting };
      if (turn.doubt !== null) return unclear(turn.doubt, turn.since);
      return { activity: "working", reason: null, since: turn.since, waiting: null };
    }
  }
}

/** A turn that is older than every process that has the session was left open by one that is gone. */
function isInherited(since: number | null, owners: readonly FoundOwner[]): boolean {
  if (since === null || owners.length === 0) return false;
  return owners.every(({ row }) => row !== null && row.startedAt > since + startSlackMs);
}

function backgroundReason(record: NativeRecord): string | null {
  const { shells, subagents } = record.background ?? { shells: 0, subagents: 0 };
  const parts = [
    shells > 0 ? `${shells} background shell${shells > 1 ? "s" : ""}` : null,
    subagents > 0 ? `${subagents} subagent${subagents > 1 ? "s" : ""}` : null,
  ].filter((part) => part !== null);
  return parts.length > 0 ? parts.join(", ") : null;
}
