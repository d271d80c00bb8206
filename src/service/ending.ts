// How the last turn of a session ended, as an exit code, an outcome and a note.

import type { Outcome } from "../core/evidence.ts";
import { exitCodes } from "../core/problem.ts";
import type { Session } from "../core/session.ts";
import { reasonText } from "../words/reasons.ts";

export interface Ending {
  code: number;
  outcome: Outcome | null;
  /** The last message is the end of the turn. */
  final: boolean;
  note: string | null;
}

/**
 * How the last turn ended. A running session that is idle has ended its turn, too. `said`: how the agent's output says that it
 * ended, for agents whose records do not say it.
 */
export function endingOf({ status, record, waiting, continuedBy }: Session, said: Outcome | null = null): Ending {
  const turn = record?.turn ?? null;
  if (status.state === "unknown")
    return {
      code: exitCodes["cannot-tell"],
      outcome: null,
      final: true,
      note: `is unknown: ${reasonText(status.why)}`,
    };
  if (status.state === "stopped") {
    const own = ended(status.outcome ?? said, "did not say how its turn ended");
    return continuedBy === null
      ? own
      : { ...own, code: exitCodes["needs-a-person"], note: `continues as ${continuedBy}` };
  }
  if (status.activity === "waiting") {
    const note = `has no final answer yet; it waits for a person: ${waiting?.text ?? waiting?.kind ?? ""}`;
    return { code: exitCodes["needs-a-person"], outcome: null, final: false, note };
  }
  if (status.activity === "working" || turn?.state === "open" || (turn?.state === "closed" && turn.doubt !== undefined))
    return {
      code: exitCodes["timed-out"],
      outcome: null,
      final: false,
      note: "has no final answer yet; its turn is still going on",
    };
  if (turn?.state === "closed") return ended(turn.outcome, "did not say how its turn ended");
  const why = turn?.state === "unclear" ? `: ${reasonText(turn.why)}` : "";
  return { code: exitCodes["cannot-tell"], outcome: null, final: true, note: `is unclear${why}` };
}

function ended(outcome: Outcome | null, unsaid: string): Ending {
  if (outcome === "completed") return { code: 0, outcome, final: true, note: null };
  if (outcome === null) return { code: exitCodes["cannot-tell"], outcome, final: true, note: unsaid };
  const words = { failed: "failed", interrupted: "was interrupted", "cut-off": "was cut off" } as const;
  return {
    code: exitCodes["agent-failed"],
    outcome,
    final: true,
    note: `${words[outcome]}; this is not a final answer`,
  };
}
