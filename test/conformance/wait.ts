// Tests wait for a sign, never for a fixed time.

const patienceMs = 10_000;
/** The times of files come from a clock of the kernel that is up to 10 ms late. */
const lateMs = 20;

export async function waitFor(what: string, look: () => boolean): Promise<void> {
  const end = performance.now() + patienceMs;
  while (!look()) {
    if (performance.now() > end) throw new Error(`waited ${patienceMs} ms for ${what}`);
    await Bun.sleep(5);
  }
}

/** Git compares times in whole seconds: a change in the next second is a later change. */
export async function untilNextSecond(): Promise<void> {
  const second = (): number => Math.floor((Date.now() - lateMs) / 1_000);
  const now = Math.floor(Date.now() / 1_000);
  await waitFor("the next second", () => second() > now);
}
