// Limits for waiting: a deadline or an AbortSignal.

export interface Deadline {
  remainingMs(): number;
  isOver(): boolean;
}

export function deadlineIn(ms: number): Deadline {
  const end = performance.now() + ms;
  return {
    remainingMs: () => Math.max(0, end - performance.now()),
    isOver: () => performance.now() >= end,
  };
}

/** The promise's value, or null if the deadline comes first. */
export async function within<T>(deadline: Deadline, promise: Promise<T>): Promise<T | null> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const over = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), deadline.remainingMs());
  });
  try {
    return await Promise.race([promise, over]);
  } finally {
    clearTimeout(timer);
  }
}

/** The promise's value; throws the signal's reason as soon as it is aborted. */
export async function unlessAborted<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason);
  signal.addEventListener("abort", onAbort);
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([aborted.promise, promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
