// The activity of a running session: as its owner reports it, else by its record. Rule 3.
import { startSlackMs } from "./announcements.ts";
import type { Activity, Evidence, NativeRecord, Turn, Waiting } from "./evidence.ts";
import type { FoundOwner } from "./matches.ts";
import { isSuspended, type ProcessRow, sameProcess } from "./process.ts";
import type { RunningReason, TurnReason } from "./reason.ts";
import type { Session } from "./session.ts";
import type { SessionFacts } from "./session-facts.ts";

export interface Doing {
  activity: Activity;
  reason: RunningReason | TurnReason | null;
  since: number | null;
  waiting: Session["waiting"];
}

/** Rule 3: the report of the process or server counts first, then the record; without either it is unclear. */
export function activityOf(subject: SessionFacts, record: NativeRecord | null, evidence: Evidence): Doing {
  const said =
    wordOfDialog(subject.owners, evidence) ??
    wordOfOwner(subject.owners, record) ??
    wordOfRecord(record, subject, evidence.at);
  const doing = said.activity === "idle" ? afterFailure(said, record) : said;
  const rows = subject.owners.flatMap((owner) => (owner.row === null ? [] : [owner.row]));
  return rows.length > 0 && rows.every(isSuspended) ? { ...doing, reason: { code: "suspended" } } : doing;
}

/** Idle after a failed turn: without a login or quota it waits for a person; otherwise the failure is the reason. */
function afterFailure(said: Doing, record: NativeRecord | null): Doing {
  const turn = record?.turn;
  if (turn?.state !== "closed" || turn.outcome !== "failed") return said;
  if (turn.needs === undefined) return { ...said, reason: said.reason ?? { code: "last-turn-failed" } };
  const { kind, text } = turn.needs;
  return { ...waitingFor({ kind, text, tool: null, options: [] }), since: turn.at };
}

const waitingFor = (waiting: Waiting): Omit<Doing, "since"> => ({
  activity: "waiting",
  reason: { code: "waiting", kind: waiting.kind },
  waiting,
});

/** The dialog of a process that was started with a session and has not opened the session yet. */
function wordOfDialog(owners: readonly FoundOwner[], { dialogs }: Evidence): Doing | null {
  for (const owner of owners) {
    if (owner.kind !== "process" || owner.link === "announced") continue;
    const dialog = dialogs.find(({ process }) => sameProcess(process, owner.row.identity));
    if (dialog !== undefined) return { ...waitingFor(dialog.waiting), since: null };
  }
  return null;
}

/** Of several owners, the activity that needs most attention counts. */
function wordOfOwner(owners: readonly FoundOwner[], record: NativeRecord | null): Doing | null {
  const words = owners.flatMap((owner): Doing[] => {
    if (owner.kind === "server") {
      const { served } = owner;
      if (served === null) return [];
      const { activity } = served;
      const since = sinceOf(activity, record);
      return [{ activity, reason: null, since, waiting: question(activity, served.waiting, record) }];
    }
    const says = owner.announcement?.says;
    if (says === undefined || says === null) return [];
    return [{ ...says, waiting: question(says.activity, owner.announcement?.waiting ?? null, record) }];
  });
  const order: Activity[] = ["waiting", "working", "unclear", "idle"];
  return words.sort((a, b) => order.indexOf(a.activity) - order.indexOf(b.activity))[0] ?? null;
}

/** A server does not report since when; the record does, if both agree on the activity. */
function sinceOf(activity: Activity, record: NativeRecord | null): number | null {
  const turn = record?.turn;
  if (turn?.state === "closed" && activity === "idle") return turn.at;
  return turn?.state === "open" && activity !== "idle" ? turn.since : null;
}

/** The question of a waiting owner: its own, else the one of its pending tool call. */
function question(activity: Activity, said: Waiting | null, record: NativeRecord | null): Waiting | null {
  if (activity !== "waiting") return null;
  if (said !== null && said.text === null) return record?.pending ?? record?.waiting ?? said;
  return said ?? record?.pending ?? record?.waiting ?? { kind: "other", text: null, tool: null, options: [] };
}

function wordOfRecord(record: NativeRecord | null, { reading, store, owners }: SessionFacts, at: number): Doing {
  const unclear = (reason: Doing["reason"], since: number | null = null): Doing => ({
    activity: "unclear",
    reason,
    since,
    waiting: null,
  });
  if (reading?.ok === false) return unclear({ code: "record-unreadable", detail: reading.problem.detail });
  if (record === null && store?.listing.ok === false)
    return unclear({ code: "store-incomplete", detail: store.listing.problem.detail });
  if (record === null) return unclear({ code: isYoung(owners, at) ? "starting" : "nothing-recorded" });
  const turn: Turn = record.turn;
  switch (turn.state) {
    case "none":
      return unclear({ code: isYoung(owners, at) ? "starting" : "no-prompt-yet" });
    case "unclear":
      return unclear(turn.why);
    case "closed":
      // A process without a terminal was started to do something, so this end of turn is from an earlier process.
      if (isInherited(turn.at, owners) && owners.every((owner) => owner.kind === "process" && owner.row.tty === null))
        return unclear({ code: isYoung(owners, at) ? "starting" : "nothing-recorded-since-start" });
      if (turn.doubt !== undefined && !isInherited(turn.at, owners)) return unclear(turn.doubt, turn.at);
      return { activity: "idle", reason: backgroundReason(record), since: turn.at, waiting: null };
    case "open": {
      if (isInherited(turn.since, owners))
        return unclear({ code: isYoung(owners, at) ? "starting" : "reopened" }, turn.since);
      const waiting = record.waiting;
      if (waiting !== null) return { ...waitingFor(waiting), since: waiting.since };
      if (turn.doubt !== null) return unclear(turn.doubt, turn.since);
      return { activity: "working", reason: null, since: turn.since, waiting: null };
    }
  }
}

/** A turn that is older than every owner was left open by a process that is gone. */
function isInherited(since: number | null, owners: readonly FoundOwner[]): boolean {
  if (since === null || owners.length === 0) return false;
  return owners.every(({ row }) => row !== null && row.startedAt > since + startSlackMs);
}

function backgroundReason({ background }: NativeRecord): RunningReason | null {
  const { shells, subagents } = background ?? { shells: 0, subagents: 0 };
  return shells + subagents > 0 ? { code: "background", shells, subagents } : null;
}

/** An agent needs a few seconds before it announces or records anything. This changes only the reason, never a status. */
const startMs = 10_000;

export const isStarting = ({ startedAt }: ProcessRow, at: number): boolean => at - startedAt < startMs;

const isYoung = (owners: readonly FoundOwner[], at: number): boolean =>
  owners.length > 0 && owners.every(({ kind, row }) => kind === "process" && row !== null && isStarting(row, at));
