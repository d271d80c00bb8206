// A number for bytes, to know them again. It is fast; it keeps no secret and stops no forger.

export const hashOf = (bytes: Buffer | string): string => Bun.hash(bytes).toString(16).padStart(16, "0");

/** The same in 32 bits, where two that share one are no harm. */
export const shortHashOf = (text: string): number => Bun.hash.xxHash32(text);
