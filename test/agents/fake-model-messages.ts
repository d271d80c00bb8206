// The fake model as Anthropic Messages.
import {
  type Answer,
  type Asked,
  asList,
  asObject,
  type Dialect,
  isCall,
  type JsonObject,
  type Pace,
  pause,
  sse,
  textOf,
  usagePerRequest,
  words,
} from "./fake-model-parts.ts";

export const messages: Dialect = {
  name: "messages",
  asked: (body) => ({
    ...lastText(body),
    model: String(body["model"] ?? ""),
    tools: asList(body["tools"]).map((tool) => ({
      name: String(tool["name"] ?? tool["type"]),
      schema: asObject(tool["input_schema"]),
    })),
    stream: body["stream"] === true,
    schema: null,
  }),
  whole,
  async *events(answer, pace) {
    for await (const event of eventsOf(answer, pace)) yield sse(event, event.type);
  },
  error: () => ({ type: "error", error: { type: "api_error", message: "fake error", code: "fake" } }),
};

function lastText(body: JsonObject): Pick<Asked, "text" | "toolResults"> {
  const toolResults: string[] = [];
  for (const message of asList(body["messages"]).toReversed()) {
    const blocks = typeof message["content"] === "string" ? [] : asList(message["content"]);
    const results = blocks.filter((block) => block["type"] === "tool_result");
    toolResults.unshift(...results.map((block) => textOf(block["content"])));
    if (message["role"] !== "user" || results.length > 0) continue;
    const text = textOf(message["content"]);
    if (text !== "") return { text, toolResults };
  }
  return { text: "", toolResults };
}

const usage = {
  input_tokens: usagePerRequest.input,
  cache_read_input_tokens: usagePerRequest.cacheRead,
  cache_creation_input_tokens: usagePerRequest.cacheWrite,
  output_tokens: usagePerRequest.output,
};

function whole({ model, blocks, counter }: Answer): JsonObject {
  const content = blocks.map((block) =>
    block.kind === "text"
      ? { type: "text", text: block.text }
      : { type: "tool_use", id: block.id, name: block.name, input: block.input },
  );
  return {
    id: `msg_fake${counter}`,
    type: "message",
    role: "assistant",
    model,
    content,
    stop_reason: blocks.some(isCall) ? "tool_use" : "end_turn",
    stop_sequence: null,
    usage,
  };
}

async function* eventsOf(answer: Answer, pace: Pace): AsyncGenerator<JsonObject & { type: string }> {
  const { blocks } = answer;
  const message = whole(answer);
  yield {
    type: "message_start",
    message: { ...message, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } },
  };
  for (const [index, block] of blocks.entries()) {
    if (block.kind === "text") {
      yield { type: "content_block_start", index, content_block: { type: "text", text: "" } };
      // Before a tool call the text is complete at once and the stream pauses after it.
      const pauseAfter = index < blocks.length - 1;
      for await (const text of words(block.text, pauseAfter ? null : pace))
        yield { type: "content_block_delta", index, delta: { type: "text_delta", text } };
      if (pauseAfter && pace !== null) {
        yield { type: "content_block_stop", index };
        await pause(pace);
        continue;
      }
    } else {
      const { id, name } = block;
      yield { type: "content_block_start", index, content_block: { type: "tool_use", id, name, input: {} } };
      const partial_json = JSON.stringify(block.input);
      yield { type: "content_block_delta", index, delta: { type: "input_json_delta", partial_json } };
    }
    yield { type: "content_block_stop", index };
  }
  yield { type: "message_delta", delta: { stop_reason: message["stop_reason"], stop_sequence: null }, usage };
  yield { type: "message_stop" };
}
