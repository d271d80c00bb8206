// Reads the codes and texts of errors of the operating system.
import { Failure } from "../core/failure.ts";
import type { ProblemDetail } from "../core/problem.ts";

export const errorCode = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";

/** The file or process does not exist, or no longer: the only failure that is never reported. */
export const isGone = (error: unknown): boolean => ["ENOENT", "ESRCH"].includes(errorCode(error));

export const isSystemError = (error: unknown): boolean => errorCode(error) !== "";

export const isError = (error: unknown): boolean => error instanceof Error;

/** Returns `otherwise` if the call fails with an expected error: by default, one of the operating system. */
export function tryOr<T, U>(otherwise: U, call: () => T, isExpected = isSystemError): T | U {
  try {
    return call();
  } catch (error) {
    if (!isExpected(error)) throw error;
    return otherwise;
  }
}

const words: Record<string, string> = {
  EACCES: "permission denied",
  EPERM: "not permitted",
  ENOTDIR: "not a folder",
  EISDIR: "a folder where a file should be",
  ELOOP: "a loop of symbolic links",
  EIO: "input/output error",
  EMFILE: "too many open files",
  ENXIO: "a pipe or device where a file should be",
};

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

export function failureText(error: unknown): string {
  const code = errorCode(error);
  if (words[code] !== undefined) return words[code];
  return error instanceof Error ? error.message : String(error);
}

/** Returns a failure unchanged, and any other error as a failure with its text. */
export const asFailure = (error: unknown): Failure =>
  error instanceof Failure ? error : new Failure("system-error", { detail: failureText(error) }, { cause: error });
