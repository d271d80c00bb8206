// A point in time after which nobody waits any longer.

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

/** The promise's value, or null when the deadline came first. */
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

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
