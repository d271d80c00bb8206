// Shows an answer again whenever it changes: full screen on a terminal, one text per change in a pipe.
import { exitCodes } from "../core/problem.ts";
import { pause } from "../lib/deadline.ts";
import { readKeys } from "../sys/keys.ts";
import { isTerminal, sealed, terminalSize } from "../sys/stdout.ts";
import type { Context } from "./command.ts";

interface Answer {
  text: string;
  /** Changes only if something other than the time has changed. */
  fingerprint(): string;
  problems: string;
}

type LookAgain = () => Promise<Answer>;

const pauseMs = 500;

export async function watch(context: Context, look: LookAgain): Promise<number> {
  return isTerminal(1) ? await watchOnScreen(context, look) : await watchInPipe(context, look);
}

async function watchInPipe(context: Context, look: LookAgain): Promise<never> {
  let before: { fingerprint: string | null; problems: string | null } = { fingerprint: null, problems: null };
  for (;;) {
    const { text, problems, ...now } = await look();
    const fingerprint = now.fingerprint();
    if (fingerprint !== before.fingerprint) context.out(text);
    if (problems !== before.problems) context.err(problems);
    before = { fingerprint, problems };
    await pause(pauseMs);
  }
}

/** Uses the alternate screen: afterwards the terminal shows its earlier content again. */
async function watchOnScreen(context: Context, look: LookAgain): Promise<number> {
  const left = Promise.withResolvers<number>();
  const onSignal = (): void => left.resolve(exitCodes.interrupted);
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) process.on(signal, onSignal);
  const stopKeys = readKeys((key) => {
    if (key === "q") left.resolve(0);
    if (key === "\u0003") left.resolve(exitCodes.interrupted);
  });
  context.out(sealed("enter-screen"));
  try {
    for (;;) {
      const shown = look().then(({ text, problems }) => {
        const rows = terminalSize()?.rows ?? 24;
        context.out(`${sealed("home")}${sealed("clear-below")}${fitting(text + problems, rows)}`);
        return pause(pauseMs);
      });
      const code = await Promise.race([left.promise, shown]);
      if (typeof code === "number") return code;
    }
  } finally {
    context.out(sealed("leave-screen"));
    stopKeys();
    for (const signal of signals) process.off(signal, onSignal);
  }
}

/** The first lines that fit: lines that scroll away cannot be read. */
function fitting(text: string, rows: number): string {
  const lines = text.split("\n").slice(0, -1);
  if (lines.length < rows) return text;
  return [...lines.slice(0, rows - 2), `… and ${lines.length - rows + 2} more lines`, ""].join("\n");
}
