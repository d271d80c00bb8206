// Short texts about processes and sessions that failures, notices and commands share.
import type { NameOwner, Occupant, RequestAnswer } from "../core/failure.ts";
import { referenceLength } from "../core/session.ts";

/** A whole sentence about one occupant of a place. */
export function occupantText(occupant: Occupant): string {
  if (occupant.kind === "lock")
    return `locked by ${occupant.by} until ${occupant.until}${occupant.reason === null ? "" : `: ${occupant.reason}`}`;
  if (occupant.kind === "launch") return `another launch is starting there (pid ${occupant.pid})`;
  const { agent, id, status, pid, tty } = occupant;
  const where = pid === null ? "" : ` (pid ${pid}${tty === null ? "" : ` on ${tty}`})`;
  return `${agent} ${id === null ? "(no session yet)" : id.slice(0, referenceLength(id))} is ${status} there${where}`;
}

export const nameOwnerText = (by: NameOwner): string =>
  "pid" in by ? `a launch with this name is starting (pid ${by.pid})` : `${by.agent} ${by.id} has it`;

/** How a command that did not succeed ended. */
export const exitText = ({ status, signal }: { status: number | null; signal: string | null }): string =>
  status === null ? `killed (${signal ?? "by a signal"})` : `failed (exit status ${status})`;

export const requestAnswerText = (answer: RequestAnswer): string => requestAnswers[answer];

const requestAnswers: Readonly<Record<RequestAnswer, string>> = {
  interrupted: "its turn was interrupted",
  "no-turn": "no turn was running",
  begun: "the agent started working on the message",
  queued: "queued until its turn ends",
};
