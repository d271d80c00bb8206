// Shows an answer again whenever it changes, until the person has seen enough.
import { pause } from "../lib/deadline.ts";
import { isTerminal, sealed, terminalSize } from "../sys/stdout.ts";
import type { Context } from "./command.ts";

interface Answer {
  text: string;
  /** The same as long as nothing has changed but the time. */
  fingerprint(): string;
  problems: string;
}

const pauseMs = 500;

export async function watch(context: Context, look: () => Promise<Answer>): Promise<number> {
  const onScreen = isTerminal(1);
  let before: { fingerprint: string | null; problems: string | null } = { fingerprint: null, problems: null };
  for (;;) {
    const now = await look();
    const fingerprint = now.fingerprint();
    // On a screen the ages move on, too; a pipe gets a line only when something is different.
    if (onScreen) context.out(frame(fitting(now.text + now.problems, terminalSize()?.rows ?? 24)));
    else if (fingerprint !== before.fingerprint) context.out(now.text);
    if (!onScreen && now.problems !== before.problems) context.err(now.problems);
    before = { fingerprint, problems: now.problems };
    await pause(pauseMs);
  }
}

const frame = (text: string): string => `${sealed("home")}${sealed("clear-below")}${text}`;

/** The top of it: what scrolls away at every frame cannot be read. */
function fitting(text: string, rows: number): string {
  const lines = text.split("\n").slice(0, -1);
  if (lines.length < rows) return text;
  return [...lines.slice(0, rows - 2), `… and ${lines.length - rows + 2} more lines`, ""].join("\n");
}
