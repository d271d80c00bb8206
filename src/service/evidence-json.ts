// The evidence behind a status, as the contract promises it in JSON.
import type { Session } from "../core/session.ts";
import { plainValue } from "../lib/width.ts";
import { factText, triggerText } from "../words/proofs.ts";
import { time } from "./session-json.ts";

export const evidenceJson = ({ evidence, wouldChange }: Session) =>
  plainValue({
    evidence: evidence.map(({ fact, source, rule, at }) => ({
      ...factText(fact),
      source,
      rule,
      at: time(at),
    })),
    wouldChange: wouldChange.map(triggerText),
  });
