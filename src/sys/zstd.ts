// Zstandard. Loading node:zlib takes longer than a whole `list`, so it is loaded only when needed.

export const unpack = (bytes: Uint8Array, maxBytes: number): string =>
  process.getBuiltinModule("node:zlib").zstdDecompressSync(bytes, { maxOutputLength: maxBytes }).toString("utf8");
