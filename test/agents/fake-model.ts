// A model that does what the prompt says, on loopback: Anthropic Messages (+count_tokens), OpenAI Responses and Chat
// Completions, Gemini; streaming and not.
//
// Script in the last user text, one mark per line or separated by ` ;; `:
//   SAY=text     the final answer                  SLEEP=2      stream the answer for 2 s
//   BASH=cmd     one shell tool call (repeatable)  HOLD=name    stream one word, then wait for release(name)
//   TOOL=N {…}   any tool call (repeatable)        SILENT       accept the request and never answer
//   FIRST=text   text before the first tool call   ERR=529*2    an HTTP error, the first two times (ERR=400: always)
// SLEEP and HOLD apply to text: to the answer, and with FIRST to the time between that block and the tool call.
// A mark inside the JSON of TOOL belongs to the prompt of a subagent; "\n" separates marks there.
import { chat } from "./fake-model-chat.ts";
import { gemini } from "./fake-model-gemini.ts";
import { messages } from "./fake-model-messages.ts";
import { asObject, type Block, type Dialect, type JsonObject, pause, type Tool } from "./fake-model-parts.ts";
import { responses } from "./fake-model-responses.ts";
import { shellCall } from "./fake-model-tools.ts";

export interface ModelRequest {
  /** "messages", "responses", "chat" or "gemini". */
  api: string;
  model: string;
  /** The last text that a person (or a calling agent) wrote. */
  text: string;
  /** Tool results since that text. */
  toolResults: string[];
  tools: string[];
  answer: "text" | "tool" | "error" | "silence";
}

export interface FakeModel extends AsyncDisposable {
  /** Without a path: `${url}` for Anthropic and Gemini, `${url}/v1` for OpenAI. */
  url: string;
  requests: ModelRequest[];
  /** Requests to other paths, as "METHOD /path". */
  others: string[];
  /** Ends every HOLD of this name, also later ones. */
  release(name: string): void;
}

interface Script {
  say: string | null;
  first: string | null;
  sleepMs: number;
  hold: string | null;
  silent: boolean;
  error: { status: number; times: number } | null;
  calls: { name: string | null; command: string; input: JsonObject }[];
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

  const answer = async (dialect: Dialect, body: JsonObject, path: string): Promise<Response> => {
    const { model, text, toolResults, tools, stream, schema } = dialect.asked(body, path);
    // A request without tools is the agent's own side question (a title, a summary): never scripted.
    const isScripted = tools.length > 0;
    const script = parseScript(isScripted ? text : "");
    const request: ModelRequest = {
      ...{ api: dialect.name, model, text, toolResults },
      tools: tools.map((tool) => tool.name),
      answer: "text",
    };
    requests.push(request);
    counter += 1;
    const call = script.calls[toolResults.length];
    if (script.silent) {
      request.answer = "silence";
      return new Response(new ReadableStream({ start() {} }), { headers: { "content-type": "text/event-stream" } });
    }
    if (script.error) {
      const given = errorsGiven.get(text) ?? 0;
      if (given < script.error.times) {
        errorsGiven.set(text, given + 1);
        request.answer = "error";
        return Response.json(dialect.error(script.error.status), { status: script.error.status });
      }
    }
    const blocks: Block[] = [];
    if (call) {
      request.answer = "tool";
      if (script.first !== null && toolResults.length === 0) blocks.push({ kind: "text", text: script.first });
      blocks.push(toolBlock(call, tools, counter));
    } else if (schema !== null) blocks.push({ kind: "text", text: JSON.stringify(sampleOf(schema)) });
    else blocks.push({ kind: "text", text: script.say ?? `fake reply ${counter}.` });
    const isAtOnce = !isScripted || (call !== undefined && blocks.length === 1);
    const pace = isAtOnce
      ? null
      : { sleepMs: script.sleepMs, until: script.hold === null ? null : gate(script.hold).promise };
    const words = { model, blocks, counter };
    if (stream)
      return new Response(encode(dialect.events(words, pace)), { headers: { "content-type": "text/event-stream" } });
    await pause(pace);
    return Response.json(dialect.whole(words));
  };

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (request.method === "POST") {
        if (pathname.endsWith("/messages/count_tokens")) return Response.json({ input_tokens: 100 });
        if (pathname.endsWith(":countTokens")) return Response.json({ totalTokens: 100 });
        const dialect = dialectAt(pathname);
        if (dialect !== null) return answer(dialect, asObject(await request.json()), pathname);
      }
      others.push(`${request.method} ${pathname}`);
      if (pathname.endsWith("/v1beta/models")) return Response.json({ models: [{ name: "models/fake-model" }] });
      if (pathname.endsWith("/models"))
        return Response.json({ object: "list", data: [{ id: "fake-model", object: "model", owned_by: "fake" }] });
      return Response.json({ error: { message: "no such thing" } }, { status: 404 });
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

function dialectAt(path: string): Dialect | null {
  if (path.endsWith("/messages")) return messages;
  if (path.endsWith("/responses")) return responses;
  if (path.endsWith("/chat/completions")) return chat;
  return /:(?:streamG|g)enerateContent$/.test(path) ? gemini : null;
}

function parseScript(text: string): Script {
  const script: Script = { say: null, first: null, sleepMs: 0, hold: null, silent: false, error: null, calls: [] };
  // Some agents put the prompt between tags of their own.
  for (const part of text.replaceAll(/^<[a-z_]+(?: [^>]*)?>|<\/[a-z_]+>$/gm, "").split(/\n| ;; /)) {
    const [, mark, rest = ""] = /^\s*(SAY|FIRST|SLEEP|HOLD|BASH|TOOL|ERR|SILENT)(?:=(.*))?$/.exec(part) ?? [];
    const value = rest.trim();
    if (mark === "SAY") script.say = value;
    if (mark === "FIRST") script.first = value;
    if (mark === "SLEEP") script.sleepMs = Number(value) * 1000;
    if (mark === "HOLD") script.hold = value;
    if (mark === "SILENT") script.silent = true;
    if (mark === "BASH") script.calls.push({ name: null, command: value, input: {} });
    if (mark === "TOOL") {
      const [, name = "", json = "{}"] = /^(\S+)\s*(\{.*\})?$/.exec(value) ?? [];
      script.calls.push({ name, command: "", input: asObject(JSON.parse(json)) });
    }
    if (mark === "ERR") {
      const [status, times] = value.split("*");
      script.error = { status: Number(status), times: times === undefined ? Number.POSITIVE_INFINITY : Number(times) };
    }
  }
  return script;
}

function toolBlock({ name, command, input }: Script["calls"][number], tools: Tool[], counter: number): Block {
  const id = `toolu_fake${counter}`;
  if (name !== null) return { kind: "tool", id, name, input };
  const call = shellCall(tools, command);
  return call === null ? { kind: "text", text: "no shell tool was offered" } : { kind: "tool", id, ...call };
}

/** A value that matches the schema: a side question needs only a valid answer. */
function sampleOf(schema: JsonObject): unknown {
  if (Array.isArray(schema["enum"])) return schema["enum"][0];
  const type = String(schema["type"]).toLowerCase();
  if (type === "object")
    return Object.fromEntries(
      Object.entries(asObject(schema["properties"])).map(([key, inner]) => [key, sampleOf(asObject(inner))]),
    );
  if (type === "array") return [];
  if (type === "boolean") return false;
  return type === "number" || type === "integer" ? 0 : "x";
}

function encode(events: AsyncGenerator<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      const next = await events.next();
      if (next.done) controller.close();
      else controller.enqueue(encoder.encode(next.value));
    },
    async cancel() {
      await events.return(undefined);
    },
  });
}
