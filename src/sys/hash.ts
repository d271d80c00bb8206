// Fast hashes to recognize bytes again. They are not cryptographic.

export const hashOf = (bytes: Buffer | string): string => Bun.hash(bytes).toString(16).padStart(16, "0");

/** 32 bits, for uses where a collision does no harm. */
export const shortHashOf = (text: string): number => Bun.hash.xxHash32(text);
