// Writes help and version without loading node:fs, which stdout.ts needs. Loading it takes over a millisecond.

/** false: writing failed. */
export async function writeFirst(text: string): Promise<boolean> {
  try {
    await Bun.write(Bun.stdout, text);
    return true;
  } catch (error) {
    if (error instanceof Error) return false;
    throw error;
  }
}
