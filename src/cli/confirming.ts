// Asks a person at the terminal for the confirmations that the service requires.
import type { Confirmed } from "../core/confirmation.ts";
import { Failure } from "../core/failure.ts";
import { oneLine } from "../lib/width.ts";
import { ConfirmationRequired } from "../service/confirmation.ts";
import { readLine } from "../sys/stdin.ts";
import { isTerminal } from "../sys/stdout.ts";
import { confirmationQuestion } from "../words/confirmations.ts";
import type { Context } from "./command.ts";

const canAsk = (): boolean => isTerminal(0) && isTerminal(2);

function refuse(): never {
  throw new Failure("not-confirmed", {});
}

/** Calls `act`. If it requires confirmations, asks the person, and calls it again. Without a terminal it throws. */
export async function confirming<T>(
  act: (confirmed: Confirmed) => Promise<T>,
  isYes: boolean,
  context: Context,
  onNo: () => T = refuse,
): Promise<T> {
  const confirmed: string[] = [];
  for (;;) {
    try {
      return await act(isYes ? "all" : confirmed);
    } catch (error) {
      if (!(error instanceof ConfirmationRequired)) throw error;
      for (const each of error.facts.confirmations) {
        // This question protects a person from typing errors, so a script need not answer it.
        const isSkipped = each.code === "many-sessions" && !canAsk();
        if (!isSkipped && !canAsk()) throw error;
        if (!isSkipped && !isConfirmed(confirmationQuestion(each), context)) return onNo();
        confirmed.push(each.key);
      }
    }
  }
}

function isConfirmed(question: string, context: Context): boolean {
  context.err(`${oneLine(question)} [y/N] `);
  return /^y(es)?$/i.test(readLine().trim());
}
