// Ourselves: how to start us again (the compiled binary, or bun with our source), and which build we are.
import { statSync } from "node:fs";

const isCompiled = (): boolean => Bun.main.startsWith("/$bunfs");

export const selfCommand = (): string[] => (isCompiled() ? [process.execPath] : [process.execPath, Bun.main]);

/** null: the source is run as it is, and may be another one the next time. */
export function ownBuild(): string | null {
  if (!isCompiled()) return null;
  try {
    // By its path we might meet the build that has taken our place.
    const path = process.platform === "linux" ? "/proc/self/exe" : process.execPath;
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(" ");
  } catch (error) {
    if (error instanceof Error) return null;
    throw error;
  }
}
