// The one place that looks into a file system error.

export const errorCode = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";

/** Not there (any more): the one silence we allow. */
export const isGone = (error: unknown): boolean => {
  const code = errorCode(error);
  return code === "ENOENT" || code === "ESRCH";
};

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

export function failureText(error: unknown): string {
  const code = errorCode(error);
  if (words[code] !== undefined) return words[code];
  return error instanceof Error ? error.message : String(error);
}
