// Announcements in files: written correctly for a fake agent, or with one error, and read back.
import { lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { FakeAgent } from "./fake-agent.ts";
import type { AnnouncementFormat } from "./format.ts";
import { demoFormat } from "./format-demo.ts";
import { absentAsNull, bootId, pidNamespace } from "./proc.ts";

export interface Announcement {
  pid: number;
  /** null: a format, or a version, that does not say. */
  start: string | null;
  boot: string | null;
  namespace: string | null;
  session: string;
  /** The activity that the process itself reports. */
  status: string | null;
  waitingFor: string | null;
}

interface AnnouncementReading {
  pid: number;
  announcement: Announcement | null;
}

export function writeAnnouncement(
  folder: string,
  format: AnnouncementFormat,
  announcement: Announcement,
  fake: Pick<FakeAgent, "cwd" | "argv" | "bornMs">,
): void {
  const path = join(folder, format.fileOf(announcement));
  mkdirSync(dirname(path), { recursive: true });
  const draft = format.inPlace ? path : `${path}.tmp`;
  writeFileSync(draft, format.write(announcement, fake));
  if (draft !== path) renameSync(draft, path);
}

/** Of a demo process that is not a fake agent. */
export function writeDemoAnnouncement(
  folder: string,
  announcement: Omit<Announcement, "status" | "waitingFor">,
  cwd: string,
): void {
  const { announcements } = demoFormat;
  const whole = { ...announcement, status: null, waitingFor: null };
  if (announcements !== null) writeAnnouncement(folder, announcements, whole, { cwd, argv: [], bornMs: Date.now() });
}

/** Every one below the folder; a `null` announcement could not be understood. */
export function readAnnouncements(folder: string, format: AnnouncementFormat): AnnouncementReading[] {
  return namesBelow(folder).flatMap((name) => {
    const { pid, session = "" } = format.pattern.exec(name)?.groups ?? {};
    return pid === undefined
      ? []
      : [{ pid: Number(pid), announcement: readAnnouncement(folder, format, Number(pid), session) }];
  });
}

/** And in the folders in it, as deep as announcements are. */
function namesBelow(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const isFolder = absentAsNull(() => lstatSync(join(folder, name)))?.isDirectory() ?? false;
    return isFolder ? readdirSync(join(folder, name)).map((below) => join(name, below)) : [name];
  });
}

export function readAnnouncement(
  folder: string,
  format: AnnouncementFormat,
  pid: number,
  session: string,
): Announcement | null {
  const text = absentAsNull(() => readFileSync(join(folder, format.fileOf({ pid, session })), "utf8"));
  return text === null ? null : format.parse(text, pid, session);
}

/** A missing value is not wrong. */
export function isFromHere(announcement: Announcement): boolean {
  return (announcement.boot ?? bootId) === bootId && (announcement.namespace ?? pidNamespace) === pidNamespace;
}
