// The fake model as Gemini: generateContent and streamGenerateContent.
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
  usagePerRequest,
  words,
} from "./fake-model-parts.ts";

export const gemini: Dialect = {
  name: "gemini",
  asked: (body, path) => ({
    ...lastText(body),
    model: /models\/([^:]+):/.exec(path)?.[1] ?? "",
    tools: asList(body["tools"])
      .flatMap((tool) => asList(tool["functionDeclarations"]))
      .map((tool) => ({
        name: String(tool["name"]),
        schema: asObject(tool["parametersJsonSchema"] ?? tool["parameters"]),
      })),
    stream: path.includes(":streamGenerateContent"),
    schema: schemaOf(body),
  }),
  whole: (answer) => candidate(answer, answer.blocks.map(partOf), "STOP"),
  async *events(answer, pace) {
    const { blocks } = answer;
    for (const block of blocks) {
      if (block.kind === "tool") {
        yield sse(candidate(answer, [partOf(block)], null));
        continue;
      }
      // Before a tool call the text is complete at once and the stream pauses after it.
      const pauseAfter = blocks.some(isCall);
      for await (const text of words(block.text, pauseAfter ? null : pace))
        yield sse(candidate(answer, [{ text }], null));
      if (pauseAfter) await pause(pace);
    }
    yield sse(candidate(answer, [{ text: "" }], "STOP"));
  },
  error: (status) => ({
    error: { code: status, message: "fake error", status: status < 500 ? "INVALID_ARGUMENT" : "INTERNAL" },
  }),
};

/** What several turns left without an answer stands in one content: the last part is the newest. */
function lastText(body: JsonObject): Pick<Asked, "text" | "toolResults"> {
  const toolResults: string[] = [];
  for (const { role, parts } of asList(body["contents"]).toReversed())
    for (const part of asList(parts).toReversed()) {
      const { text } = part;
      if ("functionResponse" in part)
        toolResults.unshift(JSON.stringify(asObject(part["functionResponse"])["response"]));
      else if (role === "user" && typeof text === "string" && text.trim() !== "") return { text, toolResults };
    }
  return { text: "", toolResults };
}

function schemaOf(body: JsonObject): JsonObject | null {
  const config = asObject(body["generationConfig"]);
  const schema = config["responseJsonSchema"] ?? config["responseSchema"];
  return schema === undefined ? null : asObject(schema);
}

const usageMetadata = {
  promptTokenCount: usagePerRequest.input,
  candidatesTokenCount: usagePerRequest.output,
  totalTokenCount: usagePerRequest.input + usagePerRequest.output,
  cachedContentTokenCount: usagePerRequest.cacheRead,
};

const partOf = (block: Block): JsonObject =>
  block.kind === "text" ? { text: block.text } : { functionCall: { name: block.name, args: block.input } };

const candidate = ({ model, counter }: Answer, parts: JsonObject[], finishReason: "STOP" | null): JsonObject => ({
  candidates: [{ content: { role: "model", parts }, index: 0, ...(finishReason === null ? {} : { finishReason }) }],
  modelVersion: model,
  responseId: `fake${counter}`,
  ...(finishReason === null ? {} : { usageMetadata }),
});
