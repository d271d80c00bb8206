// What a process that has sessions for others makes of those that it does not name, for the oracle. Rule 1: one that does not
// answer may have whatever was written since it started.
import { aroundStartMs } from "./directory.ts";
import { answerOf, runOf } from "./gateway.ts";
import type { RecordReading } from "./record.ts";
import type { Twin } from "./twin.ts";
import type { Session } from "./world.ts";

/** Clocks that are set while machines run: by the written rule, so much is nobody's word. */
const clockSlackMs = 2_000;

/** Whether somebody may have a session whom its record does not name: certainly, perhaps, or not. */
export type Suspicion = "sure" | "maybe" | "no";

export function suspicionOf(live: readonly Twin[], session: Session, reading: RecordReading): Suspicion {
  const { home } = session;
  if (reading.kind !== "record") return "no";
  const isOver = session.format.documents?.isOver(reading.first) === true;
  const writtenMs = Number(reading.first["writtenMs"]);
  const suspicions = live.map((twin): Suspicion => {
    const sinceStartMs = writtenMs - twin.startMs;
    if (twin.hosted !== null && (isOver || answerOf(twin, home) !== null)) return "no";
    if (twin.hosted !== null)
      return sinceStartMs > aroundStartMs ? "sure" : isJustBefore(sinceStartMs) ? "maybe" : "no";
    // Its number is one that another process had a moment ago.
    const { pid } = session.format.documents?.owner(session) ?? {};
    return twin.pid === pid && isJustBefore(sinceStartMs) ? "maybe" : "no";
  });
  return suspicions.includes("sure") ? "sure" : suspicions.includes("maybe") ? "maybe" : "no";
}

export interface Doing {
  activities: string[];
  questions: string[];
}

/** What a gateway says that it does for a session; null: nobody was asked, or nobody knows. */
export function gatewayWord(twins: readonly Twin[], { home, id }: Session): Doing | null {
  const [twin] = twins.filter((each) => runOf(each, home, id) !== null);
  const run = twin === undefined ? null : runOf(twin, home, id);
  if (twin === undefined || run === null) return null;
  const manner = answerOf(twin, home)?.manner;
  const isTold = run.asks !== null && !(manner === "blind" && run.asks.kind === "permission");
  if (isTold) return { activities: ["waiting"], questions: [run.asks?.text ?? ""] };
  return { activities: [manner === "true" ? "working" : "unclear"], questions: [] };
}

const isJustBefore = (sinceStartMs: number): boolean => sinceStartMs > -clockSlackMs - aroundStartMs;
