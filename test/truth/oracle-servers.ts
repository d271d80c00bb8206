// What a process that has sessions for others makes of those that it does not name, for the oracle. Rule 1: one that does not
// answer may have whatever was written since it started.

import type { FakeAgent } from "./fake-agent.ts";
import { answerOf, runOf } from "./gateway.ts";
import { aroundStartMs } from "./oracle-directory.ts";
import type { RecordReading } from "./read-record.ts";
import type { Session } from "./simulated-host.ts";

/** Clocks may be set while a host runs: by the written rule, times this close prove nothing. */
const clockSlackMs = 2_000;

/** Whether a process that its record does not name may have the session: certainly, perhaps, or not. */
export type Suspicion = "sure" | "maybe" | "no";

export function suspicionOf(live: readonly FakeAgent[], session: Session, reading: RecordReading): Suspicion {
  const { home } = session;
  if (reading.kind !== "record") return "no";
  const isOver = session.format.documents?.isOver(reading.first) === true;
  const writtenMs = Number(reading.first["writtenMs"]);
  const suspicions = live.map((fake): Suspicion => {
    const sinceStartMs = writtenMs - fake.startMs;
    if (fake.served !== null && (isOver || answerOf(fake, home) !== null)) return "no";
    if (fake.served !== null)
      return sinceStartMs > aroundStartMs ? "sure" : isJustBefore(sinceStartMs) ? "maybe" : "no";
    // Its pid belonged to another process a moment ago.
    const { pid } = session.format.documents?.owner(session) ?? {};
    return fake.pid === pid && isJustBefore(sinceStartMs) ? "maybe" : "no";
  });
  return suspicions.includes("sure") ? "sure" : suspicions.includes("maybe") ? "maybe" : "no";
}

export interface Doing {
  activities: string[];
  questions: string[];
}

/** The activity that a gateway reports for a session; null: it was not asked, or did not say. */
export function gatewayWord(fakes: readonly FakeAgent[], { home, id }: Session): Doing | null {
  const [fake] = fakes.filter((each) => runOf(each, home, id) !== null);
  const run = fake === undefined ? null : runOf(fake, home, id);
  if (fake === undefined || run === null) return null;
  const manner = answerOf(fake, home)?.manner;
  const isTold = run.asks !== null && !(manner === "blind" && run.asks.kind === "permission");
  if (isTold) return { activities: ["waiting"], questions: [run.asks?.text ?? ""] };
  return { activities: [manner === "true" ? "working" : "unclear"], questions: [] };
}

const isJustBefore = (sinceStartMs: number): boolean => sinceStartMs > -clockSlackMs - aroundStartMs;
