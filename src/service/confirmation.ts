// An act that needs a confirmation throws it. A front door that can ask repeats its request with the keys that were confirmed.
import type { Confirmation, Confirmed } from "../core/confirmation.ts";
import { Failure } from "../core/failure.ts";

export class ConfirmationRequired extends Failure<"confirmation-required"> {
  constructor(confirmations: readonly [Confirmation, ...Confirmation[]]) {
    super("confirmation-required", { confirmations });
  }
}

export function checkConfirmed(needed: readonly Confirmation[], confirmed: Confirmed): void {
  if (confirmed === "all") return;
  const [first, ...more] = needed.filter(({ key }) => !confirmed.includes(key));
  if (first !== undefined) throw new ConfirmationRequired([first, ...more]);
}
