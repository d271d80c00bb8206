// How to start agentctl again (the compiled binary, or bun with the source), and which build this is.
import { statSync } from "node:fs";
import { tryOr } from "../lib/errors.ts";

const isCompiled = (): boolean => Bun.main.startsWith("/$bunfs");

export const selfCommand = (): string[] => (isCompiled() ? [process.execPath] : [process.execPath, Bun.main]);

/** null: runs from source, which may change before the next run. */
export function ownBuild(): string | null {
  if (!isCompiled()) return null;
  // By its path we could find a newer build that has replaced this one.
  const path = process.platform === "linux" ? "/proc/self/exe" : process.execPath;
  const stat = tryOr(null, () => statSync(path, { bigint: true }));
  return stat && [stat.dev, stat.ino, stat.size, stat.mtimeNs, stat.ctimeNs].join(" ");
}
