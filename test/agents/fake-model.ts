// A model that does what the prompt says: Anthropic Messages (+count_tokens) and OpenAI Responses on loopback, streaming.
//
// Script in the last user text, one mark per line or separated by ` ;; `:
//   SAY=text     the final answer                  SLEEP=2      stream the answer for 2 s
//   BASH=cmd     one shell tool call (repeatable)  HOLD=name    stream one word, then wait for release(name)
//   TOOL=N {…}   any tool call (repeatable)        SILENT       accept the request and never answer
//   FIRST=text   text before the first tool call   ERR=529*2    an HTTP error, the first two times (ERR=400: always)
// SLEEP and HOLD apply to text: to the answer, and with FIRST to the time between that block and the tool call.
// A mark inside the JSON of TOOL belongs to the prompt in there (a subagent's): "\n" in it separates marks.

export interface ModelRequest {
  api: "messages" | "responses";
  model: string;
  /** The last text that a person (or a calling agent) wrote. */
  text: string;
  /** Tool results since that text. */
  toolResults: string[];
  tools: string[];
  answer: "text" | "tool" | "error" | "silence";
}

export interface FakeModel extends AsyncDisposable {
  /** Without a path: `${url}` for Anthropic, `${url}/v1` for OpenAI. */
  url: string;
  requests: ModelRequest[];
  /** Requests that were neither of the two APIs, as "METHOD /path". */
  others: string[];
  /** Lets every present and future HOLD of this name go on. */
  release(name: string): void;
}

/** What every answered request costs; tests multiply. */
export const usagePerRequest = { input: 1234, output: 56, cacheRead: 200, cacheWrite: 10 };

interface Script {
  say: string | null;
  first: string | null;
  sleepMs: number;
  hold: string | null;
  silent: boolean;
  error: { status: number; times: number } | null;
  calls: { name: string | null; command: string | null; input: JsonObject | null }[];
}

type JsonObject = Record<string, unknown>;
type Block = { kind: "text"; text: string } | { kind: "tool"; id: string; name: string; input: JsonObject };
interface Tool {
  name: string;
  schema: JsonObject;
}

export function startFakeModel(): FakeModel {
  const requests: ModelRequest[] = [];
  const others: string[] = [];
  const errorsGiven = new Map<string, number>();
  const gates = new Map<string, PromiseWithResolvers<void>>();
  let counter = 0;

  const gate = (name: string): PromiseWithResolvers<void> => {
    const known = gates.get(name);
    if (known) return known;
    const made = Promise.withResolvers<void>();
    gates.set(name, made);
    return made;
  };

  const answer = (api: ModelRequest["api"], body: JsonObject): Response => {
    const { text, toolResults } = api === "messages" ? lastAnthropicText(body) : lastResponsesText(body);
    const tools = toolsOf(body);
    const script = parseScript(text);
    const request: ModelRequest = {
      api,
      model: String(body["model"] ?? ""),
      text,
      toolResults,
      tools: tools.map((tool) => tool.name),
      answer: "text",
    };
    requests.push(request);
    counter += 1;
    // A request without tools is the agent's own side question (a title, a summary): never scripted.
    const call = tools.length > 0 ? script.calls[toolResults.length] : undefined;
    if (tools.length > 0 && script.silent) {
      request.answer = "silence";
      return new Response(new ReadableStream({ start() {} }), { headers: { "content-type": "text/event-stream" } });
    }
    if (tools.length > 0 && script.error) {
      const given = errorsGiven.get(text) ?? 0;
      if (given < script.error.times) {
        errorsGiven.set(text, given + 1);
        request.answer = "error";
        return Response.json(
          { type: "error", error: { type: "api_error", message: "fake error", code: "fake" } },
          { status: script.error.status },
        );
      }
    }
    const blocks: Block[] = [];
    if (call) {
      request.answer = "tool";
      if (script.first !== null && toolResults.length === 0) blocks.push({ kind: "text", text: script.first });
      blocks.push(toolBlock(call, tools, counter));
    } else {
      blocks.push({ kind: "text", text: script.say ?? `fake reply ${counter}.` });
    }
    const pace =
      tools.length === 0 || (call && blocks.length === 1)
        ? null
        : { sleepMs: script.sleepMs, until: script.hold === null ? null : gate(script.hold).promise };
    if (body["stream"] !== true) return Response.json(wholeMessage(request.model, blocks, counter));
    const events =
      api === "messages"
        ? anthropicEvents(request.model, blocks, pace, counter)
        : responsesEvents(request.model, blocks, pace, counter);
    return new Response(encode(events), { headers: { "content-type": "text/event-stream" } });
  };

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (request.method === "POST" && pathname.endsWith("/messages/count_tokens"))
        return Response.json({ input_tokens: 100 });
      const api = pathname.endsWith("/messages") ? "messages" : pathname.endsWith("/responses") ? "responses" : null;
      if (request.method !== "POST" || api === null) {
        others.push(`${request.method} ${pathname}`);
        return Response.json({ data: [] }, { status: pathname.endsWith("/models") ? 200 : 404 });
      }
      return answer(api, asObject(await request.json()));
    },
  });

  return {
    url: `http://127.0.0.1:${server.port}`,
    requests,
    others,
    release: (name) => gate(name).resolve(),
    async [Symbol.asyncDispose]() {
      for (const held of gates.values()) held.resolve();
      await server.stop(true);
    },
  };
}

function parseScript(text: string): Script {
  const script: Script = { say: null, first: null, sleepMs: 0, hold: null, silent: false, error: null, calls: [] };
  for (const part of text.split(/\n| ;; /)) {
    const [, mark, rest = ""] = /^\s*(SAY|FIRST|SLEEP|HOLD|BASH|TOOL|ERR|SILENT)(?:=(.*))?$/.exec(part) ?? [];
    const value = rest.trim();
    if (mark === "SAY") script.say = value;
    if (mark === "FIRST") script.first = value;
    if (mark === "SLEEP") script.sleepMs = Number(value) * 1000;
    if (mark === "HOLD") script.hold = value;
    if (mark === "SILENT") script.silent = true;
    if (mark === "BASH") script.calls.push({ name: null, command: value, input: null });
    if (mark === "TOOL") {
      const [, name = "", json = "{}"] = /^(\S+)\s*(\{.*\})?$/.exec(value) ?? [];
      script.calls.push({ name, command: null, input: asObject(JSON.parse(json)) });
    }
    if (mark === "ERR") {
      const [status, times] = value.split("*");
      script.error = { status: Number(status), times: times === undefined ? Number.POSITIVE_INFINITY : Number(times) };
    }
  }
  return script;
}

function toolBlock(call: Script["calls"][number], tools: Tool[], counter: number): Block {
  const id = `toolu_fake${counter}`;
  if (call.name !== null) return { kind: "tool", id, name: call.name, input: call.input ?? {} };
  const tool = tools.find((t) => ["Bash", "exec_command", "shell_command", "shell"].includes(t.name));
  if (!tool) return { kind: "text", text: "no shell tool was offered" };
  const properties = asObject(tool.schema["properties"]);
  const key = "cmd" in properties ? "cmd" : "command";
  const isList = asObject(properties[key])["type"] === "array";
  return { kind: "tool", id, name: tool.name, input: { [key]: isList ? ["bash", "-lc", call.command] : call.command } };
}

function lastAnthropicText(body: JsonObject): { text: string; toolResults: string[] } {
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

function lastResponsesText(body: JsonObject): { text: string; toolResults: string[] } {
  const toolResults: string[] = [];
  for (const item of asList(body["input"]).toReversed()) {
    if (String(item["type"]).endsWith("_call_output")) toolResults.unshift(textOf(item["output"]));
    if (item["role"] === "user") return { text: textOf(item["content"]), toolResults };
  }
  return { text: "", toolResults };
}

function toolsOf(body: JsonObject): Tool[] {
  return asList(body["tools"]).map((tool) => ({
    name: String(tool["name"] ?? tool["type"]),
    schema: asObject(tool["input_schema"] ?? tool["parameters"]),
  }));
}

type Pace = { sleepMs: number; until: Promise<void> | null } | null;
type Event = JsonObject & { type: string };

async function* words(text: string, pace: Pace): AsyncGenerator<string> {
  if (pace !== null && pace.until !== null) {
    yield "… ";
    await pace.until;
  }
  const ticks = Math.round((pace?.sleepMs ?? 0) / 250);
  for (let tick = 0; tick < ticks; tick += 1) {
    yield `tick${tick} `;
    await Bun.sleep(250);
  }
  yield text;
}

async function pause(pace: NonNullable<Pace>): Promise<void> {
  if (pace.until !== null) await pace.until;
  await Bun.sleep(pace.sleepMs);
}

const anthropicUsage = {
  input_tokens: usagePerRequest.input,
  cache_read_input_tokens: usagePerRequest.cacheRead,
  cache_creation_input_tokens: usagePerRequest.cacheWrite,
  output_tokens: usagePerRequest.output,
};

function wholeMessage(model: string, blocks: Block[], counter: number): JsonObject {
  const content = blocks.map((block) =>
    block.kind === "text"
      ? { type: "text", text: block.text }
      : { type: "tool_use", id: block.id, name: block.name, input: block.input },
  );
  const stop_reason = blocks.some((block) => block.kind === "tool") ? "tool_use" : "end_turn";
  return {
    id: `msg_fake${counter}`,
    type: "message",
    role: "assistant",
    model,
    content,
    stop_reason,
    stop_sequence: null,
    usage: anthropicUsage,
  };
}

async function* anthropicEvents(model: string, blocks: Block[], pace: Pace, counter: number): AsyncGenerator<Event> {
  const message = wholeMessage(model, blocks, counter);
  const usage = { ...anthropicUsage, output_tokens: 1 };
  yield { type: "message_start", message: { ...message, content: [], stop_reason: null, usage } };
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
  const delta = { stop_reason: message["stop_reason"], stop_sequence: null };
  yield { type: "message_delta", delta, usage: anthropicUsage };
  yield { type: "message_stop" };
}

async function* responsesEvents(model: string, blocks: Block[], pace: Pace, counter: number): AsyncGenerator<Event> {
  const response = { id: `resp_fake${counter}`, object: "response", model, status: "in_progress", output: [] };
  yield { type: "response.created", response };
  const output: JsonObject[] = [];
  for (const [output_index, block] of blocks.entries()) {
    if (block.kind === "tool") {
      const call = {
        id: `fc_fake${counter}`,
        type: "function_call",
        status: "completed",
        call_id: `call_fake${counter}`,
        ...namespaced(block.name),
        arguments: JSON.stringify(block.input),
      };
      yield { type: "response.output_item.added", output_index, item: { ...call, arguments: "" } };
      yield { type: "response.output_item.done", output_index, item: call };
      output.push(call);
      continue;
    }
    const id = `msg_fake${counter}_${output_index}`;
    const message = { id, type: "message", role: "assistant", status: "completed" };
    yield { type: "response.output_item.added", output_index, item: { ...message, content: [] } };
    let text = "";
    for await (const delta of words(block.text, pace)) {
      text += delta;
      yield { type: "response.output_text.delta", item_id: id, output_index, content_index: 0, delta };
    }
    const item = { ...message, content: [{ type: "output_text", text, annotations: [] }] };
    yield { type: "response.output_item.done", output_index, item };
    output.push(item);
  }
  const { input, output: out, cacheRead } = usagePerRequest;
  const usage = {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cacheRead },
    output_tokens: out,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + out,
  };
  yield { type: "response.completed", response: { ...response, status: "completed", output, usage } };
}

/** Codex groups some tools: TOOL=multi_agent_v1/spawn_agent {…}. */
function namespaced(name: string): { name: string; namespace?: string } {
  const [namespace = "", inner] = name.split("/");
  return inner === undefined ? { name } : { namespace, name: inner };
}

function encode(events: AsyncGenerator<Event>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      const next = await events.next();
      if (next.done) controller.close();
      else controller.enqueue(encoder.encode(`event: ${next.value.type}\ndata: ${JSON.stringify(next.value)}\n\n`));
    },
    async cancel() {
      await events.return(undefined);
    },
  });
}

const asObject = (value: unknown): JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};

const asList = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.map(asObject) : []);

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  return asList(content)
    .map((part) => (typeof part["text"] === "string" ? part["text"] : ""))
    .filter((text) => text !== "" && !text.startsWith("<system-reminder>"))
    .join("\n");
}
