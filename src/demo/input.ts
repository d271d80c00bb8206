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

/** Reads lines from stdin. After the end of stdin the agent waits forever, as real agents do. */
export function inputLines(): () => Promise<string> {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  return async () => {
    const { value, done } = await lines.next();
    return done === true ? await waitForever() : value;
  };
}

/** The timer keeps the process alive. */
export const waitForever = (): Promise<string> => new Promise(() => setInterval(() => {}, 3_600_000));
