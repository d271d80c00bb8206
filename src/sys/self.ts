// How to start ourselves again: the compiled binary, or bun with our source.
import { statSync } from "node:fs";

export const selfCommand = (): string[] =>
  Bun.main.startsWith("/$bunfs") ? [process.execPath] : [process.execPath, Bun.main];

/** Which build this is; null: not a compiled one, whose source may change at any time. */
export function selfStamp(): string | null {
  if (!Bun.main.startsWith("/$bunfs")) return null;
  const { size, mtimeMs } = statSync(process.execPath);
  return `${size}:${mtimeMs}`;
}
