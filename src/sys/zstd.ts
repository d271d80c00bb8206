// Zstandard. Loading node:zlib takes longer than everything else that a list does: only who needs it loads it.

export const unpack = (bytes: Uint8Array, most: number): string =>
  process.getBuiltinModule("node:zlib").zstdDecompressSync(bytes, { maxOutputLength: most }).toString("utf8");
