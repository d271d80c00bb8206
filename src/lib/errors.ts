// Errors of the operating system, and errors that look like them.

export const errorCode = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";

/** The file or process does not exist, or no longer. */
export const isGone = (error: unknown): boolean => ["ENOENT", "ESRCH"].includes(errorCode(error));

export const isSystemError = (error: unknown): boolean => errorCode(error) !== "";

export const isError = (error: unknown): boolean => error instanceof Error;

export const hasCode =
  (...codes: string[]) =>
  (error: unknown): boolean =>
    codes.includes(errorCode(error));

export const errorWith = (code: string, message: string, cause?: unknown): Error =>
  Object.assign(new Error(message, cause === undefined ? {} : { cause }), { code });

export function requireRegularFile(stat: { isDirectory(): boolean; isFile(): boolean }): void {
  if (stat.isDirectory()) throw errorWith("EISDIR", "a folder where a file should be");
  if (!stat.isFile()) throw errorWith("ENXIO", "not a regular file");
}

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

/** The text for a person. */
export function failureText(error: unknown): string {
  const code = errorCode(error);
  if (words[code] !== undefined) return words[code];
  return error instanceof Error ? error.message : String(error);
}
