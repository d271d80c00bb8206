// A first word before anything is loaded: what stands in stdout.ts takes node:fs.

/** false: it could not be written. */
export async function writeFirst(text: string): Promise<boolean> {
  try {
    await Bun.write(Bun.stdout, text);
    return true;
  } catch (error) {
    if (error instanceof Error) return false;
    throw error;
  }
}
