// How to start agentctl again (the compiled binary, or bun with the source), and which build this is.
import { statSync } from "node:fs";

const isCompiled = (): boolean => Bun.main.startsWith("/$bunfs");

export const selfCommand = (): string[] => (isCompiled() ? [process.execPath] : [process.execPath, Bun.main]);

/** null: runs from source, which may change before the next run. */
export function ownBuild(): string | null {
  if (!isCompiled()) return null;
  try {
    // By its path we could find a newer build that has replaced this one.
    const path = process.platform === "linux" ? "/proc/self/exe" : process.execPath;
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(" ");
  } catch (error) {
    if (error instanceof Error) return null;
    throw error;
  }
}
