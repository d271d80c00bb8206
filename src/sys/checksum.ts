// A short number for bytes that must not have changed. Not a secret, and nothing that somebody could not forge.

export const checksum = (bytes: Uint8Array | string): string => Bun.hash(bytes).toString(16);
