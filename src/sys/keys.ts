// Single keys from a terminal.

/** Calls `onKey` for every key that is pressed. Returns a function that gives the terminal its normal mode back. */
export function readKeys(onKey: (key: string) => void): () => void {
  const { stdin } = process;
  if (!stdin.isTTY) return () => undefined;
  const onData = (bytes: Buffer): void => {
    for (const key of bytes.toString("utf8")) onKey(key);
  };
  stdin.setRawMode(true);
  stdin.on("data", onData);
  return () => {
    stdin.off("data", onData);
    stdin.setRawMode(false);
    stdin.pause();
  };
}
