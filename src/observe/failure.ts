// Describes errors: as details of problems, as texts, as failures.
import { Failure } from "../core/failure.ts";
import type { ProblemDetail } from "../core/problem.ts";
import { errorCode, failureText } from "../lib/errors.ts";

/** An error of agentctl, not of the operating system. */
export class DetailError extends Error {
  constructor(readonly detail: ProblemDetail) {
    super(Object.values(detail).join(" "));
  }
}

export const failureOf = (error: unknown): ProblemDetail =>
  error instanceof DetailError
    ? error.detail
    : { code: "system-error", errno: errorCode(error), text: failureText(error) };

/** Returns a failure unchanged, and any other error as a failure with its text. */
export const asFailure = (error: unknown): Failure =>
  error instanceof Failure ? error : new Failure("system-error", { detail: failureText(error) }, { cause: error });
