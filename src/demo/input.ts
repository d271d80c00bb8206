// What a person or a program says on stdin: a whole prompt, or one line after the other.
import { createInterface } from "node:readline";
import { fail } from "./arguments.ts";

const longestPrompt = 16 * 1024 * 1024;

/** All of stdin, as it is: a decoder of the platform would drop a byte order mark. */
export async function readPrompt(): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of process.stdin) {
    chunks.push(Buffer.from(chunk));
    bytes += chunk.length;
    if (bytes > longestPrompt) fail("the prompt is longer than 16 MB", 1);
  }
  const prompt = Buffer.concat(chunks).toString("utf8");
  return prompt.trim() === "" ? fail("no prompt", 1) : prompt;
}

export interface Answers {
  next(): Promise<string>;
}

/** Lines from stdin, one at a time. After its end nobody will ever answer: the agent waits on, as real ones do. */
export class InputLines implements Answers {
  private readonly lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

  async next(): Promise<string> {
    const { value, done } = await this.lines.next();
    return done === true ? await nobody.next() : value;
  }
}

/** The timer keeps the process alive. */
export const nobody: Answers = {
  next: () => new Promise<string>(() => setInterval(() => {}, 3_600_000)),
};
