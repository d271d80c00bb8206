// Writes a Claude Code record of a given size, with the lines of captured files of 2.1.197 and 2.1.325.
import type { Dice } from "../../test/truth/random.ts";
import { Clock, type Conversation, nextTurn, outputBytes } from "./conversation.ts";
import type { Prose } from "./prose.ts";

export interface TokenSum {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
}

/** `tokens` counts the tokens of each message once. */
export function* claudeLines(talk: Conversation, prose: Prose, tokens?: TokenSum): Generator<string> {
  const pen = new Pen(talk, prose, tokens);
  yield* pen.opening();
  for (let isLast = false; !isLast; ) {
    const next = nextTurn(prose.dice, talk.bytes - pen.written);
    isLast = next.isLast;
    if (isLast) pen.clock.hurry();
    yield* pen.turn(isLast ? talk.ending : "completed", pen.written + next.bytes);
  }
}

class Pen {
  written = 0;
  readonly clock: Clock;
  readonly #dice: Dice;
  readonly #rest: string;
  readonly #isNew: boolean;
  #parent: string | null = null;

  constructor(
    readonly talk: Conversation,
    readonly prose: Prose,
    readonly tokens: TokenSum | undefined,
  ) {
    this.#dice = prose.dice;
    this.clock = new Clock(talk, 4_000);
    // One in three is from the version that also records its requests; those records are never small.
    this.#isNew = talk.bytes > 130_000 && this.#dice.chance(0.33);
    const version = this.#isNew ? "2.1.325" : "2.1.197";
    this.#rest = `"userType":"external","entrypoint":"cli","cwd":"${talk.cwd}","sessionId":"${talk.id}","version":"${version}","gitBranch":"main"}`;
  }

  *opening(): Generator<string> {
    yield this.#plain(`"type":"mode","mode":"normal"`);
    yield this.#plain(`"type":"permission-mode","permissionMode":"default"`);
  }

  *turn(ending: Conversation["ending"], until: number): Generator<string> {
    const isFirst = this.#parent === null;
    const prompt = isFirst ? this.talk.prompt : this.prose.text(60);
    const message = `"message":{"role":"user","content":"${prompt}"}`;
    yield this.#line("user", `"promptId":"${this.#dice.uuid()}",${message},"permissionMode":"default"`);
    if (isFirst) yield* this.#attachments();
    do yield* this.#toolCall((until - this.written) / 2);
    while (this.written < until - answerBytes);
    yield* this.#end(ending);
  }

  *#attachments(): Generator<string> {
    const sizes = this.#isNew ? [1_200, 700, 1_200, 5_500, 13_000, 1_200, 6_300] : [2_200, 4_700];
    for (const size of sizes)
      yield this.#line("attachment", `"attachment":{"type":"skill_listing","rest":"${this.prose.text(size)}"}`);
    if (!this.#isNew) return;
    for (const [type, key, size] of newLines)
      yield this.#plain(`"type":"${type}","hash":"${this.#dice.uuid()}","${key}":"${this.prose.text(size)}"`);
  }

  /** The line contains the output twice. */
  *#toolCall(left: number): Generator<string> {
    const id = `toolu_${this.#dice.uuid()}`;
    yield* this.#answer(
      `{"type":"tool_use","id":"${id}","name":"Bash","input":{"command":"${this.prose.text(80)}"}}`,
      "tool_use",
    );
    const output = this.prose.text(outputBytes(this.#dice, left));
    const block = `{"tool_use_id":"${id}","type":"tool_result","content":"${output}","is_error":false}`;
    yield this.#line(
      "user",
      `"message":{"role":"user","content":[${block}]},"toolUseResult":{"stdout":"${output}","stderr":"","interrupted":false}`,
    );
  }

  *#end(ending: Conversation["ending"]): Generator<string> {
    const text = (words: string) => `{"type":"text","text":"${words}"}`;
    if (ending === "working") return;
    if (ending === "asking" || ending === "cut-off") {
      const block = `{"type":"tool_use","id":"toolu_${this.#dice.uuid()}","name":"Bash","input":{"command":"make it so"}}`;
      yield* this.#answer(block, "tool_use");
      return;
    }
    if (ending === "interrupted")
      yield this.#line("user", `"message":{"role":"user","content":[${text("[Request interrupted by user]")}]}`);
    else if (ending === "failed")
      yield this.#line(
        "assistant",
        `"message":{"id":"${this.#dice.uuid()}","model":"<synthetic>","role":"assistant","stop_reason":"stop_sequence","content":[${text("API Error: 400")}]},"error":"unknown","isApiErrorMessage":true`,
      );
    else yield* this.#answer(text(this.prose.text(400 + this.#dice.below(2_000))), "end_turn");
    yield this.#line("system", `"subtype":"turn_duration","durationMs":3046,"isMeta":false`);
    yield this.#plain(`"type":"last-prompt","lastPrompt":"${this.talk.prompt}","leafUuid":"${this.#parent}"`);
    yield this.#plain(`"type":"mode","mode":"normal"`);
    yield this.#plain(`"type":"permission-mode","permissionMode":"default"`);
  }

  /** A message with text and a tool call is written as two lines with the same usage. */
  *#answer(block: string, stop: string): Generator<string> {
    if (this.#isNew)
      yield this.#plain(`"type":"api-request","id":"${this.#dice.uuid()}","params":"${this.prose.text(1_000)}"`);
    const id = `msg_${this.#dice.uuid()}`;
    const usage = this.#usage();
    const message = (content: string) =>
      `"message":{"id":"${id}","type":"message","role":"assistant","model":"claude-opus-4-8","content":[${content}],"stop_reason":"${stop}","stop_sequence":null,"usage":${usage}},"requestId":"req_${id.slice(4, 12)}"`;
    if (stop === "tool_use" && this.#dice.chance(0.3))
      yield this.#line("assistant", message(`{"type":"text","text":"${this.prose.text(200)}"}`));
    yield this.#line("assistant", message(block));
  }

  #usage(): string {
    const [input, output] = [1 + this.#dice.below(20), 20 + this.#dice.below(900)];
    const [cacheRead, cacheWrite] = [5_000 + this.#dice.below(90_000), this.#dice.below(4_000)];
    if (this.tokens !== undefined) {
      this.tokens.input += input;
      this.tokens.output += output;
      this.tokens.cacheRead += cacheRead;
      this.tokens.cacheWrite += cacheWrite;
    }
    return `{"input_tokens":${input},"cache_creation_input_tokens":${cacheWrite},"cache_read_input_tokens":${cacheRead},"output_tokens":${output},"server_tool_use":{"web_search_requests":0,"web_fetch_requests":0},"service_tier":"standard","cache_creation":{"ephemeral_1h_input_tokens":0,"ephemeral_5m_input_tokens":${cacheWrite}},"speed":"standard"}`;
  }

  #line(type: string, fields: string): string {
    const id = this.#dice.uuid();
    const parent = this.#parent === null ? "null" : `"${this.#parent}"`;
    this.#parent = id;
    return this.#count(
      `{"parentUuid":${parent},"isSidechain":false,"type":"${type}",${fields},"uuid":"${id}","timestamp":"${this.clock.next()}",${this.#rest}\n`,
    );
  }

  #plain(fields: string): string {
    return this.#count(`{${fields},"sessionId":"${this.talk.id}"}\n`);
  }

  #count(line: string): string {
    this.written += line.length;
    return line;
  }
}

const answerBytes = 4_000;

/** Written by 2.1.325, once per record. */
const newLines = [
  ["api-request-shape", "shape", 40_000],
  ["api-request-blob", "message", 1_300],
  ["api-request-blob", "message", 11_000],
] as const;
