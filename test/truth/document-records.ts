// Records that are whole documents: replaced with every change, as their agents do it, and read back.
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { FakeAgent } from "./fake-agent.ts";
import type { DocumentsFormat } from "./format.ts";
import { aroundStartMs } from "./oracle-directory.ts";
import { parseObject, type RecordReading, readLines } from "./read-record.ts";
import type { Session } from "./simulated-host.ts";

export function replaceDocuments(session: Session, { put }: DocumentsFormat, text: string): void {
  const folder = dirname(session.format.recordPath(session));
  mkdirSync(folder, { recursive: true });
  const lines = text
    .split("\n")
    .map(parseObject)
    .filter((line) => line !== null);
  const written: Record<string, string> = Object.assign({}, ...lines.map((line) => put(session, line)));
  for (const [name, whole] of Object.entries(written)) {
    writeFileSync(join(folder, `${name}.tmp`), whole);
    renameSync(join(folder, `${name}.tmp`), join(folder, name));
  }
}

export function readDocuments(session: Session, documents: DocumentsFormat): RecordReading {
  const lines = documents.lines(session);
  if (lines === null) return { kind: "absent" };
  return lines === "unreadable" ? { kind: "unreadable" } : readLines(lines, session.format.reader);
}

/** The record names a process by its pid alone: it is meant if it was there when that was written. */
export function isNamedBy(session: Session, { owner }: DocumentsFormat, { pid, startMs }: FakeAgent): boolean {
  const named = owner(session);
  return named?.pid === pid && named.writtenMs > startMs - aroundStartMs;
}
