// The fake model as OpenAI Chat Completions.
import {
  type Answer,
  type Asked,
  asList,
  asObject,
  type Block,
  type Dialect,
  isCall,
  type JsonObject,
  pause,
  sse,
  textOf,
  usagePerRequest,
  words,
} from "./fake-model-parts.ts";

export const chat: Dialect = {
  name: "chat",
  asked: (body) => ({
    ...lastText(body),
    model: String(body["model"] ?? ""),
    tools: asList(body["tools"]).map((tool) => {
      const described = asObject(tool["function"]);
      return { name: String(described["name"] ?? tool["name"]), schema: asObject(described["parameters"]) };
    }),
    stream: body["stream"] === true,
    schema: schemaOf(body),
  }),
  whole: (answer) => ({
    ...common(answer),
    object: "chat.completion",
    choices: [{ index: 0, message: messageOf(answer.blocks), finish_reason: reason(answer) }],
    usage,
  }),
  async *events(answer, pace) {
    const { blocks } = answer;
    const chunk = (delta: JsonObject, finish_reason: string | null = null): string =>
      sse({ ...common(answer), choices: [{ index: 0, delta, finish_reason }] });
    yield chunk({ role: "assistant", content: "" });
    let calls = 0;
    for (const block of blocks) {
      if (block.kind === "tool") {
        yield chunk({ tool_calls: [{ index: calls, ...callOf(block) }] });
        calls += 1;
        continue;
      }
      // Before a tool call the text is complete at once and the stream pauses after it.
      const pauseAfter = blocks.some(isCall);
      for await (const content of words(block.text, pauseAfter ? null : pace)) yield chunk({ content });
      if (pauseAfter) await pause(pace);
    }
    yield chunk({}, reason(answer));
    yield sse({ ...common(answer), choices: [], usage });
    yield "data: [DONE]\n\n";
  },
  error: (status) => ({ error: { message: "fake error", type: "api_error", code: status } }),
};

function lastText(body: JsonObject): Pick<Asked, "text" | "toolResults"> {
  const toolResults: string[] = [];
  for (const message of asList(body["messages"]).toReversed()) {
    if (message["role"] === "tool") toolResults.unshift(textOf(message["content"]));
    if (message["role"] !== "user") continue;
    const text = textOf(message["content"]);
    if (text !== "") return { text, toolResults };
  }
  return { text: "", toolResults };
}

function schemaOf(body: JsonObject): JsonObject | null {
  const format = asObject(body["response_format"]);
  if (format["type"] !== "json_schema") return null;
  return asObject(asObject(format["json_schema"])["schema"]);
}

const usage = {
  prompt_tokens: usagePerRequest.input,
  completion_tokens: usagePerRequest.output,
  total_tokens: usagePerRequest.input + usagePerRequest.output,
  prompt_tokens_details: { cached_tokens: usagePerRequest.cacheRead },
};

const common = ({ model, counter }: Answer): JsonObject => ({
  id: `chatcmpl-fake${counter}`,
  object: "chat.completion.chunk",
  created: Math.floor(Date.now() / 1000),
  model,
});

const reason = ({ blocks }: Answer): string => (blocks.some(isCall) ? "tool_calls" : "stop");

const callOf = ({ id, name, input }: Block & { kind: "tool" }): JsonObject => ({
  id,
  type: "function",
  function: { name, arguments: JSON.stringify(input) },
});

function messageOf(blocks: Block[]): JsonObject {
  const text = blocks.flatMap((block) => (block.kind === "text" ? [block.text] : [])).join("\n");
  const calls = blocks.filter(isCall).map(callOf);
  return {
    role: "assistant",
    content: text === "" ? null : text,
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
}
