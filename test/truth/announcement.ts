// Announcements in files (`<pid>.json`): written whole for a twin, or with one thing wrong; and read back.
import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ClaimFormat } from "./format.ts";
import { demoFormat } from "./format-demo.ts";
import { absentAsNull, bootId, pidNamespace } from "./proc.ts";
import { parseObject } from "./record.ts";
import type { Twin } from "./twin.ts";

export interface Claim {
  pid: number;
  /** null: a format, or a version, that does not say. */
  start: string | null;
  boot: string | null;
  namespace: string | null;
  session: string;
  /** The process's own word about what it does. */
  status: string | null;
  waitingFor: string | null;
}

interface ClaimReading {
  pid: number;
  claim: Claim | null;
}

export function writeAnnouncement(
  folder: string,
  format: ClaimFormat,
  claim: Claim,
  twin: Pick<Twin, "cwd" | "argv" | "bornMs">,
): void {
  const path = join(folder, `${claim.pid}.json`);
  const draft = format.inPlace ? path : `${path}.tmp`;
  writeFileSync(draft, format.write(claim, twin));
  if (draft !== path) renameSync(draft, path);
}

/** Of a demo process, without a twin. */
export function writeClaim(folder: string, claim: Omit<Claim, "status" | "waitingFor">, cwd: string): void {
  const { claims } = demoFormat;
  const whole = { ...claim, status: null, waitingFor: null };
  if (claims !== null) writeAnnouncement(folder, claims, whole, { cwd, argv: [], bornMs: Date.now() });
}

/** Every `<pid>.json`; a `null` claim could not be understood. */
export function readClaims(folder: string, format: ClaimFormat): ClaimReading[] {
  const readings: ClaimReading[] = [];
  for (const name of readdirSync(folder)) {
    const pid = /^(\d+)\.json$/.exec(name)?.[1];
    if (pid === undefined) continue;
    readings.push({ pid: Number(pid), claim: readClaim(folder, format, Number(pid)) });
  }
  return readings;
}

export function readClaim(folder: string, format: ClaimFormat, pid: number): Claim | null {
  const text = absentAsNull(() => readFileSync(join(folder, `${pid}.json`), "utf8"));
  const value = text === null ? null : parseObject(text);
  return value === null ? null : format.parse(value, pid);
}

/** What is not said is not wrong. */
export function isFromHere(claim: Claim): boolean {
  return (claim.boot ?? bootId) === bootId && (claim.namespace ?? pidNamespace) === pidNamespace;
}
