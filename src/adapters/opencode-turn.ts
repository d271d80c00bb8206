// What the last message of a session says about its turn. Older ones say nothing: what a dead process left unfinished stays so.
import type { Background, NativeRecord, Turn, Waiting } from "../core/evidence.ts";
import { type Fields, fieldsIn, fieldsOf, listIn, millisIn, numberIn, textIn } from "./fields.ts";
import { errorText, inputText, isRejected } from "./opencode-lines.ts";
import type { MessageLine, Piece } from "./opencode-store.ts";

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
    return plain({ state: "unclear", why: "its last message cannot be read" });
  const { created, completed } = timesOf(data);
  // A prompt that meets no model is never answered, and nothing says so.
  if (data["role"] === "user") return plain({ state: "open", since: created, doubt: "no answer begun yet" });
  if (data["role"] !== "assistant") return plain({ state: "unclear", why: "its last message has an unknown shape" });
  const since = timesOf(prompt?.data ?? {}).created ?? created;
  if (completed === null) return openState(last, since);
  const error = fieldsOf(data["error"]);
  if (error !== null) return plain({ state: "closed", at: completed, ...failureOf(error) });
  if (goesOn(last, prompt)) return plain({ state: "open", since, doubt: null });
  return plain({ state: "closed", at: completed, outcome: "completed" });
}

const timesOf = (data: Fields) => {
  const time = fieldsIn(data, "time");
  return { created: millisIn(time, "created"), completed: millisIn(time, "completed") };
};

/** This message is over; will there be another one of the same turn? */
function goesOn({ data, parts }: MessageLine, prompt: MessageLine | null): boolean {
  const tools = parts.flatMap((part) => (part.data?.["type"] === "tool" ? [part.data] : []));
  if (data?.["structured"] !== undefined || tools.some(isRejected)) return false;
  const finish = textIn(data ?? {}, "finish");
  // A command that a person ran in its interface has no answer of the model.
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

/** History was summed up because it became too long, not because a person wished so: then the work goes on. */
const isAutomatic = (prompt: MessageLine | null): boolean =>
  prompt?.parts.some(({ data }) => data?.["type"] === "compaction" && data["auto"] === true) ?? false;

function openState(last: MessageLine, since: number | null): State {
  const running = last.parts.flatMap((part) => (isRunning(part) ? [part.data ?? {}] : []));
  const inner = last.subagents.map((subagent) => stateOf(subagent, null));
  const question = running.map(questionOf).find((found) => found !== null) ?? null;
  const asked = inner.find(({ waiting }) => waiting !== null)?.waiting ?? null;
  const held = running.find((tool) => mayWait(tool)) ?? null;
  const doubts = inner.flatMap(({ turn, pending }) =>
    turn.state === "open" && turn.doubt !== null ? [{ doubt: turn.doubt, pending }] : [],
  );
  const heldInside = doubts[0] ?? null;
  const subagents = running.filter(({ tool }) => tool === "task").length;
  const doubt = held === null ? (heldInside?.doubt ?? null) : "tool call pending";
  return {
    turn: { state: "open", since, doubt },
    waiting: question ?? asked,
    pending: held === null ? (heldInside?.pending ?? null) : pendingOf(held),
    background: subagents === 0 ? null : { shells: 0, subagents },
  };
}

const isRunning = ({ data }: Piece): boolean =>
  data?.["type"] === "tool" && fieldsIn(data, "state")["status"] === "running";

/**
 * A call waits for approval before it says anything of itself. A shell and a subagent do so as soon as they run; of the
 * others some never do, and some do it before they ask.
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

/** Tools that do nothing but ask. */
function questionOf(tool: Fields): NativeRecord["waiting"] {
  const state = fieldsIn(tool, "state");
  const since = millisIn(fieldsIn(state, "time"), "start");
  if (tool["tool"] === "plan_exit") return { kind: "plan", text: null, tool: "plan_exit", options: [], since };
  if (tool["tool"] !== "question") return null;
  return { ...askedIn(fieldsIn(state, "input")), tool: "question", since };
}

/** The first of its questions, and what may be answered. */
export function askedIn(request: Fields): Pick<Waiting, "kind" | "text" | "options"> {
  const [question = {}] = listIn(request, "questions");
  const options = listIn(question, "options").flatMap((option) => textIn(option, "label") ?? []);
  return { kind: "question", text: textIn(question, "question"), options };
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
