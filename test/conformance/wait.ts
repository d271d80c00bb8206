// Waiting for a sign, never for a time.

const patienceMs = 10_000;

export async function waitFor(what: string, look: () => boolean): Promise<void> {
  const end = performance.now() + patienceMs;
  while (!look()) {
    if (performance.now() > end) throw new Error(`waited ${patienceMs} ms for ${what}`);
    await Bun.sleep(5);
  }
}
