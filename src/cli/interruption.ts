// Turns SIGINT, SIGTERM and SIGHUP into AbortSignals for the service.
import { Failure } from "../core/failure.ts";

const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Runs `act` with a signal that the first SIGINT, SIGTERM or SIGHUP aborts, and one that the second aborts. */
export async function interruptible<T>(act: (first: AbortSignal, second: AbortSignal) => Promise<T>): Promise<T> {
  const [first, second] = [new AbortController(), new AbortController()];
  const onSignal = (): void => {
    if (first.signal.aborted) second.abort();
    first.abort(new Failure("interrupted", { result: "stopped" }));
  };
  for (const signal of signals) process.on(signal, onSignal);
  try {
    return await act(first.signal, second.signal);
  } finally {
    for (const signal of signals) process.off(signal, onSignal);
  }
}
