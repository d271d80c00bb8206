// Announcements in files: written whole for a twin, or with one thing wrong; and read back.
import { lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { ClaimFormat } from "./format.ts";
import { demoFormat } from "./format-demo.ts";
import { absentAsNull, bootId, pidNamespace } from "./proc.ts";
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
  const path = join(folder, format.fileOf(claim));
  mkdirSync(dirname(path), { recursive: true });
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

/** Every one below the folder; a `null` claim could not be understood. */
export function readClaims(folder: string, format: ClaimFormat): ClaimReading[] {
  return namesBelow(folder).flatMap((name) => {
    const { pid, session = "" } = format.pattern.exec(name)?.groups ?? {};
    return pid === undefined ? [] : [{ pid: Number(pid), claim: readClaim(folder, format, Number(pid), session) }];
  });
}

/** And in the folders in it, as deep as announcements are. */
function namesBelow(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const isFolder = absentAsNull(() => lstatSync(join(folder, name)))?.isDirectory() ?? false;
    return isFolder ? readdirSync(join(folder, name)).map((below) => join(name, below)) : [name];
  });
}

export function readClaim(folder: string, format: ClaimFormat, pid: number, session: string): Claim | null {
  const text = absentAsNull(() => readFileSync(join(folder, format.fileOf({ pid, session })), "utf8"));
  return text === null ? null : format.parse(text, pid, session);
}

/** What is not said is not wrong. */
export function isFromHere(claim: Claim): boolean {
  return (claim.boot ?? bootId) === bootId && (claim.namespace ?? pidNamespace) === pidNamespace;
}
