// Starts the process of a case in its own pid namespace, sends it orders, and ends it.
import { join } from "node:path";
import { intoNamespace } from "../test/truth/namespace.ts";
import type { Opening, Order } from "./case-main.ts";
import type { Measured, Traced } from "./measure.ts";

export class CaseProcess {
  readonly #child;
  readonly #lines: AsyncIterator<string>;

  private constructor(readonly opening: Opening) {
    const command = [
      ...intoNamespace,
      process.execPath,
      join(import.meta.dir, "case-main.ts"),
      JSON.stringify(opening),
    ];
    this.#child = Bun.spawn(command, { stdin: "pipe", stdout: "pipe", stderr: "inherit" });
    this.#lines = linesOf(this.#child.stdout);
    // Killing unshare kills the first process of the namespace, and with it all others.
    process.once("exit", () => this.#child.kill("SIGKILL"));
  }

  static async open(opening: Opening): Promise<CaseProcess> {
    const started = new CaseProcess(opening);
    await started.#hear();
    return started;
  }

  measure = (command: string): Promise<Measured> => this.#ask({ do: "measure", command });
  trace = (command: string): Promise<Traced | null> => this.#ask({ do: "trace", command });
  /** Describes each wrong answer. */
  check = (): Promise<string[]> => this.#ask({ do: "check" });
  checkAgain = (): Promise<string[]> => this.#ask({ do: "check again" });

  async close(): Promise<void> {
    await this.#child.stdin.end();
    await this.#child.exited;
  }

  async #ask<T>(order: Order): Promise<T> {
    await this.#child.stdin.write(`${JSON.stringify(order)}\n`);
    await this.#child.stdin.flush();
    return JSON.parse(await this.#hear());
  }

  async #hear(): Promise<string> {
    const { value, done } = await this.#lines.next();
    if (done === true) throw new Error(`bench: the case ${this.opening.case.name} ended without an answer`);
    return value;
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    const [...lines] = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}
