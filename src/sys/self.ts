// How to start ourselves again: the compiled binary, or bun with our source.

export const selfCommand = (): string[] =>
  Bun.main.startsWith("/$bunfs") ? [process.execPath] : [process.execPath, Bun.main];
