// Reads stdin: a whole prompt, or line by line.
import { createInterface } from "node:readline";
import { fail } from "./arguments.ts";

const longestPrompt = 16 * 1024 * 1024;

/** Decodes by hand, because the platform's decoder would drop a byte order mark. */
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

/** Lines from stdin. After the end of stdin the agent waits forever, as real agents do. */
export class InputLines implements Answers {
  private readonly lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

  async next(): Promise<string> {
    const { value, done } = await this.lines.next();
    return done === true ? await noAnswers.next() : value;
  }
}

/** Waits forever. The timer keeps the process alive. */
export const noAnswers: Answers = {
  next: () => new Promise<string>(() => setInterval(() => {}, 3_600_000)),
};
