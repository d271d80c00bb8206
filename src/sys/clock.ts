// The moment this machine booted, in wall-clock milliseconds, exact enough to place a start between two messages.
import { dlopen, FFIType } from "bun:ffi";

const clockRealtime = 0;
const clockBoottime = 7;
const mostAttempts = 20;

/** null: no such clock here (musl names its libc differently); /proc/uptime with its 10 ms must do then. */
export function bootedAt(): number | null {
  try {
    const { symbols, close } = dlopen("libc.so.6", {
      clock_gettime: { args: [FFIType.i32, FFIType.ptr], returns: FFIType.i32 },
    });
    // Larger than struct timespec: small buffers may move while ffi looks at them.
    const buffer = new BigInt64Array(512);
    const read = (clock: number): number => {
      if (symbols.clock_gettime(clock, buffer) !== 0) return Number.NaN;
      return Number(buffer[0] ?? 0n) * 1000 + Number(buffer[1] ?? 0n) / 1e6;
    };
    // Whoever is put aside between the two readings would be off by that time: then once more.
    let moment = Number.NaN;
    for (let attempt = 0; attempt < mostAttempts; attempt += 1) {
      const before = read(clockBoottime);
      const now = read(clockRealtime);
      const after = read(clockBoottime);
      moment = now - (before + after) / 2;
      if (after - before < 0.5) break;
    }
    close();
    return Number.isNaN(moment) ? null : moment;
  } catch (error) {
    if (error instanceof Error) return null;
    throw error;
  }
}
