// A question to a person. Without a terminal there is nobody to ask, and the answer is no.
import { readLine } from "../sys/stdin.ts";
import { isTerminal } from "../sys/stdout.ts";
import type { Context } from "./command.ts";

export const canAsk = (): boolean => isTerminal(0) && isTerminal(2);

export function confirm(question: string, context: Context): boolean {
  context.err(`${question} [y/N] `);
  return /^y(es)?$/i.test(readLine().trim());
}
