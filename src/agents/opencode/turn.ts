// The state of the last turn, from the last message of a session. Older messages do not count: one that a dead process left unfinished
// stays unfinished.
import type { Background, NativeRecord, Turn, Waiting } from "../../core/evidence.ts";
import type { TurnReason } from "../../core/reason.ts";
import { type Fields, fieldsIn, fieldsOf, millisIn, numberIn, textIn } from "../fields.ts";
import { firstQuestion } from "../record-lines.ts";
import { errorText, inputText, isRejected } from "./lines.ts";
import type { MessageLine, Piece } from "./store.ts";

export interface State {
  turn: Turn;
  waiting: NativeRecord["waiting"];
  pending: Waiting | null;
  background: Background | null;
}

export function stateOf(last: MessageLine | null, prompt: MessageLine | null): State {
  const plain = (turn: Turn): State => ({ turn, waiting: null, pending: null, background: null });
  if (last === null) return plain({ state: "none" });
  const { data } = last;
  if (data === null || last.parts.some((part) => part.data === null))
    return plain({ state: "unclear", why: { code: "last-message-unreadable" } });
  const { created, completed } = timesOf(data);
  // A prompt to an unknown model never gets an answer, and the failure is not recorded.
  if (data["role"] === "user") return plain({ state: "open", since: created, doubt: { code: "no-answer-yet" } });
  if (data["role"] !== "assistant") return plain({ state: "unclear", why: { code: "unknown-message", kind: "" } });
  const since = timesOf(prompt?.data ?? {}).created ?? created;
  if (completed === null) return openState(last, since);
  const error = fieldsOf(data["error"]);
  if (error !== null) return plain({ state: "closed", at: completed, ...failureOf(error) });
  if (continues(last, prompt)) return plain({ state: "open", since, doubt: null });
  return plain({ state: "closed", at: completed, outcome: "completed" });
}

const timesOf = (data: Fields) => {
  const time = fieldsIn(data, "time");
  return { created: millisIn(time, "created"), completed: millisIn(time, "completed") };
};

/** Whether another message of the same turn follows this completed message. */
function continues({ data, parts }: MessageLine, prompt: MessageLine | null): boolean {
  const tools = parts.flatMap((part) => (part.data?.["type"] === "tool" ? [part.data] : []));
  if (data?.["structured"] !== undefined || tools.some(isRejected)) return false;
  const finish = textIn(data ?? {}, "finish");
  // A command that a person ran in the interface has no answer.
  if (finish === null) return !isOwnCommand(prompt);
  if (data?.["summary"] === true) return isAutomatic(prompt);
  const isOpen = (tool: Fields): boolean =>
    fieldsIn(tool, "metadata")["providerExecuted"] !== true &&
    fieldsIn(fieldsIn(tool, "state"), "metadata")["interrupted"] !== true;
  return finish === "tool-calls" || tools.some(isOpen);
}

const isOwnCommand = (prompt: MessageLine | null): boolean =>
  prompt?.parts.some(
    ({ data }) => data?.["synthetic"] === true && /executed by the user/.test(textIn(data, "text") ?? ""),
  ) ?? false;

/** OpenCode compacted the history because it was too long: the turn continues. It does not if a person asked for the compaction. */
const isAutomatic = (prompt: MessageLine | null): boolean =>
  prompt?.parts.some(({ data }) => data?.["type"] === "compaction" && data["auto"] === true) ?? false;

function openState(last: MessageLine, since: number | null): State {
  const running = last.parts.flatMap((part) => (isRunning(part) ? [part.data ?? {}] : []));
  const inner = last.subagents.map((subagent) => stateOf(subagent, null));
  const question = running.map(questionOf).find((found) => found !== null) ?? null;
  const askedInside = inner.find(({ waiting }) => waiting !== null)?.waiting ?? null;
  const call = running.find((tool) => mayWait(tool)) ?? null;
  const doubts = inner.flatMap(({ turn, pending }) =>
    turn.state === "open" && turn.doubt !== null ? [{ doubt: turn.doubt, pending }] : [],
  );
  const innerDoubt = doubts[0] ?? null;
  const subagents = running.filter(({ tool }) => tool === "task").length;
  const doubt: TurnReason | null = call === null ? (innerDoubt?.doubt ?? null) : { code: "tool-call-pending" };
  return {
    turn: { state: "open", since, doubt },
    waiting: question ?? askedInside,
    pending: call === null ? (innerDoubt?.pending ?? null) : pendingOf(call),
    background: subagents === 0 ? null : { shells: 0, subagents },
  };
}

const isRunning = ({ data }: Piece): boolean =>
  data?.["type"] === "tool" && fieldsIn(data, "state")["status"] === "running";

/**
 * A call that waits for approval has no metadata yet. Shells and subagents write metadata as soon as they run. Other tools may write
 * none, or write it before they ask.
 */
function mayWait(tool: Fields): boolean {
  const hasBegun = fieldsOf(fieldsIn(tool, "state")["metadata"]) !== null;
  return !(hasBegun && (tool["tool"] === "bash" || tool["tool"] === "task"));
}

const pendingOf = (tool: Fields): Waiting => ({
  kind: "permission",
  text: inputText(fieldsIn(fieldsIn(tool, "state"), "input")),
  tool: textIn(tool, "tool"),
  options: [],
});

/** The question of a tool that does nothing but ask; null: another tool. */
function questionOf(tool: Fields): NativeRecord["waiting"] {
  const state = fieldsIn(tool, "state");
  const since = millisIn(fieldsIn(state, "time"), "start");
  if (tool["tool"] === "plan_exit") return { kind: "plan", text: null, tool: "plan_exit", options: [], since };
  if (tool["tool"] !== "question") return null;
  return { kind: "question", tool: "question", since, ...firstQuestion(fieldsIn(state, "input")) };
}

function failureOf(error: Fields): Pick<Extract<Turn, { state: "closed" }>, "outcome" | "needs"> {
  const name = textIn(error, "name");
  if (name === "MessageAbortedError") return { outcome: "interrupted" };
  const status = numberIn(fieldsIn(error, "data"), "statusCode");
  const text = errorText(error);
  if (name === "ProviderAuthError" || status === 401 || status === 403)
    return { outcome: "failed", needs: { kind: "login", text } };
  if (status === 402 || status === 429) return { outcome: "failed", needs: { kind: "limit", text } };
  return { outcome: "failed" };
}
