// The announcement of a demo process (`live/<pid>.json`): written whole for a twin, or with one thing wrong; and read back.
import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { absentAsNull, bootId, pidNamespace } from "./proc.ts";

export interface Claim {
  pid: number;
  start: string;
  boot: string;
  namespace: string;
  session: string;
}

interface ClaimReading {
  pid: number;
  claim: Claim | null;
}

export function writeClaim(folder: string, claim: Claim, cwd: string): void {
  const text = JSON.stringify({ ...claim, cwd, at: new Date().toISOString() });
  const path = join(folder, `${claim.pid}.json`);
  writeFileSync(`${path}.tmp`, text);
  renameSync(`${path}.tmp`, path);
}

/** Every `<pid>.json`; a `null` claim could not be understood. */
export function readClaims(folder: string): ClaimReading[] {
  const readings: ClaimReading[] = [];
  for (const name of readdirSync(folder)) {
    const pid = /^(\d+)\.json$/.exec(name)?.[1];
    if (pid === undefined) continue;
    readings.push({ pid: Number(pid), claim: readClaim(folder, Number(pid)) });
  }
  return readings;
}

export function readClaim(folder: string, pid: number): Claim | null {
  const text = absentAsNull(() => readFileSync(join(folder, `${pid}.json`), "utf8"));
  return text === null ? null : parseClaim(text);
}

export function isFromHere(claim: Claim): boolean {
  return claim.boot === bootId && claim.namespace === pidNamespace;
}

function parseClaim(text: string): Claim | null {
  try {
    const { pid, start, boot, namespace, session } = JSON.parse(text);
    const strings = [start, boot, namespace, session];
    if (typeof pid !== "number" || !strings.every((value) => typeof value === "string")) return null;
    return { pid, start, boot, namespace, session };
  } catch (error) {
    // `null` and bare words parse, but cannot be taken apart: a TypeError.
    if (error instanceof SyntaxError || error instanceof TypeError) return null;
    throw error;
  }
}
