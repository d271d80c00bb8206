// Shared by the dialects of the fake model: the parsed request, the answer, its pace and its token usage.

export type JsonObject = Record<string, unknown>;
export type Block = { kind: "text"; text: string } | { kind: "tool"; id: string; name: string; input: JsonObject };

export interface Tool {
  name: string;
  schema: JsonObject;
}

/** Delays while text is streamed; null: none. */
export type Pace = { sleepMs: number; until: Promise<void> | null } | null;

export interface Asked {
  model: string;
  /** The last text that a person (or a calling agent) wrote. */
  text: string;
  /** Tool results since that text. */
  toolResults: string[];
  tools: Tool[];
  stream: boolean;
  /** The answer must be JSON of this shape: a side question of the agent's own. */
  schema: JsonObject | null;
}

/** The content of an answer, and a number that no other answer has. */
export interface Answer {
  model: string;
  blocks: Block[];
  counter: number;
}

/** One API that the fake model speaks. */
export interface Dialect {
  name: string;
  asked(body: JsonObject, path: string): Asked;
  whole(answer: Answer): JsonObject;
  /** The answer as server-sent events, each ready to be written. */
  events(answer: Answer, pace: Pace): AsyncGenerator<string>;
  error(status: number): JsonObject;
}

/** The token usage of every answered request; tests multiply it. */
export const usagePerRequest = { input: 1234, output: 56, cacheRead: 200, cacheWrite: 10 };

export const isCall = (block: Block): block is Block & { kind: "tool" } => block.kind === "tool";

export const sse = (value: JsonObject, event?: string): string =>
  `${event === undefined ? "" : `event: ${event}\n`}data: ${JSON.stringify(value)}\n\n`;

/** The pieces in which a text is streamed. */
export async function* words(text: string, pace: Pace): AsyncGenerator<string> {
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

export async function pause(pace: Pace): Promise<void> {
  if (pace === null) return;
  if (pace.until !== null) await pace.until;
  await Bun.sleep(pace.sleepMs);
}

export const asObject = (value: unknown): JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};

export const asList = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.map(asObject) : []);

/** Texts that agents insert as if a person had written them. */
const isAside = (text: string): boolean => /^(?:<system-reminder>|<<<BEGIN_)/.test(text);

export function textOf(content: unknown): string {
  if (typeof content === "string") return isAside(content) ? "" : content;
  return asList(content)
    .map((part) => (typeof part["text"] === "string" ? part["text"] : ""))
    .filter((text) => text !== "" && !isAside(text))
    .join("\n");
}
