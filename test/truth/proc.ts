// The harness's own view of /proc: whether a process lives, and its identity.
import { readFileSync, readlinkSync } from "node:fs";

export interface ProcStat {
  state: string;
  start: string;
}

/** A missing file or process is null; every other error is thrown. */
export function absentAsNull<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    const code = errorCode(error);
    if (code === "ENOENT" || code === "ESRCH") return null;
    throw error;
  }
}

export function errorCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

export function readProcStat(pid: number): ProcStat | null {
  const text = absentAsNull(() => readFileSync(`/proc/${pid}/stat`, "utf8"));
  if (text === null) return null;
  // The name stands in brackets and may hold brackets and blanks itself.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return { state: fields[0] ?? "", start: fields[19] ?? "" };
}

/** When it was started, by the clock on the wall; to a tick or two. */
export function wallTimeOf({ start }: ProcStat): number {
  const upSeconds = Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]);
  return Date.now() - upSeconds * 1000 + Number(start) * tickMs;
}

const tickMs = 10;

export function readProcName(pid: number): string {
  return absentAsNull(() => readFileSync(`/proc/${pid}/comm`, "utf8").trimEnd()) ?? "";
}

export function readProcArguments(pid: number): string[] {
  return absentAsNull(() => readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")) ?? [];
}

export function readProcChildren(pid: number): number[] {
  const text = absentAsNull(() => readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")) ?? "";
  return text.split(" ").filter(Boolean).map(Number);
}

export function ignoresTerm(pid: number): boolean {
  const status = absentAsNull(() => readFileSync(`/proc/${pid}/status`, "utf8")) ?? "";
  const mask = /^SigIgn:\s*([0-9a-f]+)/m.exec(status)?.[1] ?? "0";
  return (BigInt(`0x${mask}`) & (1n << 14n)) !== 0n;
}

export function isLive(stat: ProcStat | null): boolean {
  return stat !== null && stat.state !== "Z" && stat.state !== "X";
}

export const bootId = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
export const pidNamespace = readlinkSync("/proc/self/ns/pid");

export async function until(sign: string, seen: () => boolean, limitMs = 5000): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (!seen()) {
    if (performance.now() > deadline) throw new Error(`harness: waited ${limitMs} ms in vain for: ${sign}`);
    await Bun.sleep(1);
  }
}
