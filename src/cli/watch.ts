// Shows an answer again whenever it changes, until the person has seen enough.
import { pause } from "../lib/deadline.ts";
import { isTerminal } from "../sys/stdout.ts";
import type { Context } from "./command.ts";

interface Answer {
  text: string;
  fingerprint: string;
  problems: string;
}

const pauseMs = 500;

export async function watch(context: Context, look: () => Promise<Answer>): Promise<number> {
  const screen = isTerminal(1);
  let before: Answer | null = null;
  for (;;) {
    const now = await look();
    const changed = before === null || now.fingerprint !== before.fingerprint;
    // On a screen the ages move on, too; a pipe gets a line only when something is different.
    if (screen) context.out(`\x1b[H\x1b[J${now.text}`);
    else if (changed) context.out(now.text);
    if (now.problems !== before?.problems) context.err(now.problems);
    before = now;
    await pause(pauseMs);
  }
}
