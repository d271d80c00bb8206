// The fake model as OpenAI Responses.
import {
  type Answer,
  type Asked,
  asList,
  asObject,
  type Block,
  type Dialect,
  type JsonObject,
  type Pace,
  sse,
  textOf,
  usagePerRequest,
  words,
} from "./fake-model-parts.ts";

export const responses: Dialect = {
  name: "responses",
  asked: (body) => ({
    ...lastText(body),
    model: String(body["model"] ?? ""),
    tools: asList(body["tools"]).map((tool) => ({
      name: String(tool["name"] ?? tool["type"]),
      schema: asObject(tool["parameters"]),
    })),
    stream: body["stream"] === true,
    schema: null,
  }),
  whole: (answer) => ({
    ...begun(answer),
    status: "completed",
    output: answer.blocks.map((block, index) => itemOf(block, answer.counter, index)),
    usage,
  }),
  async *events(answer, pace) {
    let sequence_number = 0;
    for await (const event of eventsOf(answer, pace)) {
      yield sse({ ...event, sequence_number }, event.type);
      sequence_number += 1;
    }
  },
  error: () => ({ type: "error", error: { type: "api_error", message: "fake error", code: "fake" } }),
};

function lastText(body: JsonObject): Pick<Asked, "text" | "toolResults"> {
  if (typeof body["input"] === "string") return { text: body["input"], toolResults: [] };
  const toolResults: string[] = [];
  for (const item of asList(body["input"]).toReversed()) {
    if (String(item["type"]).endsWith("_call_output")) toolResults.unshift(textOf(item["output"]));
    if (item["role"] === "user") return { text: textOf(item["content"]), toolResults };
  }
  return { text: "", toolResults };
}

const usage = {
  input_tokens: usagePerRequest.input,
  input_tokens_details: { cached_tokens: usagePerRequest.cacheRead },
  output_tokens: usagePerRequest.output,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: usagePerRequest.input + usagePerRequest.output,
};

const begun = ({ model, counter }: Answer): JsonObject => ({
  id: `resp_fake${counter}`,
  object: "response",
  created_at: 1_700_000_000,
  model,
  status: "in_progress",
  output: [],
});

function itemOf(block: Block, counter: number, index: number): JsonObject {
  if (block.kind === "tool")
    return {
      id: `fc_fake${counter}`,
      type: "function_call",
      status: "completed",
      call_id: `call_fake${counter}`,
      ...namespaced(block.name),
      arguments: JSON.stringify(block.input),
    };
  return {
    ...{ id: `msg_fake${counter}_${index}`, type: "message", role: "assistant", status: "completed" },
    content: [{ type: "output_text", text: block.text, annotations: [] }],
  };
}

async function* eventsOf(answer: Answer, pace: Pace): AsyncGenerator<JsonObject & { type: string }> {
  const response = begun(answer);
  yield { type: "response.created", response };
  const output: JsonObject[] = [];
  for (const [output_index, block] of answer.blocks.entries()) {
    const item = itemOf(block, answer.counter, output_index);
    const item_id = item["id"];
    if (block.kind === "tool") {
      yield { type: "response.output_item.added", output_index, item: { ...item, arguments: "" } };
      const { arguments: text } = item;
      yield { type: "response.function_call_arguments.delta", item_id, output_index, delta: text };
      yield { type: "response.function_call_arguments.done", item_id, output_index, arguments: text };
      yield { type: "response.output_item.done", output_index, item };
      output.push(item);
      continue;
    }
    const at = { item_id, output_index, content_index: 0 };
    yield { type: "response.output_item.added", output_index, item: { ...item, content: [] } };
    yield { type: "response.content_part.added", ...at, part: { type: "output_text", text: "", annotations: [] } };
    let text = "";
    for await (const delta of words(block.text, pace)) {
      text += delta;
      yield { type: "response.output_text.delta", ...at, delta };
    }
    const part = { type: "output_text", text, annotations: [] };
    yield { type: "response.output_text.done", ...at, text };
    yield { type: "response.content_part.done", ...at, part };
    yield { type: "response.output_item.done", output_index, item: { ...item, content: [part] } };
    output.push({ ...item, content: [part] });
  }
  yield { type: "response.completed", response: { ...response, status: "completed", output, usage } };
}

/** Codex groups some tools: TOOL=multi_agent_v1/spawn_agent {…}. */
function namespaced(name: string): { name: string; namespace?: string } {
  const [namespace = "", inner] = name.split("/");
  return inner === undefined ? { name } : { namespace, name: inner };
}
