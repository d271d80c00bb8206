// When this host booted, in wall-clock milliseconds: exact enough to order a process start and a message.
import { dlopen, FFIType } from "bun:ffi";
import { isError, tryOr } from "../lib/errors.ts";

const clockRealtime = 0;
const clockBoottime = 7;
const maxAttempts = 20;

/** null: the C library was not found (musl has another name for it). The caller uses /proc/uptime, exact to 10 ms. */
export const bootedAt = (): number | null => tryOr(null, readBootTime, isError);

function readBootTime(): number | null {
  const { symbols, close } = dlopen("libc.so.6", {
    clock_gettime: { args: [FFIType.i32, FFIType.ptr], returns: FFIType.i32 },
  });
  // Larger than struct timespec: Bun may move small buffers during an ffi call.
  const buffer = new BigInt64Array(512);
  const read = (clock: number): number => {
    if (symbols.clock_gettime(clock, buffer) !== 0) return Number.NaN;
    return Number(buffer[0] ?? 0n) * 1000 + Number(buffer[1] ?? 0n) / 1e6;
  };
  // If the process was preempted between the readings, they do not belong together: read again.
  let moment = Number.NaN;
  for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
    const before = read(clockBoottime);
    const now = read(clockRealtime);
    const after = read(clockBoottime);
    moment = now - (before + after) / 2;
    if (after - before < 0.5) break;
  }
  close();
  return Number.isNaN(moment) ? null : moment;
}
