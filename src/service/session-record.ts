// The record of a session, and the error where it cannot be read.
import { adapterNamed } from "../agents/registry.ts";
import { Failure } from "../core/failure.ts";
import { errorCode } from "../lib/errors.ts";
import { findRecord, type RecordPlace } from "../observe/conversation.ts";
import { failureOf } from "../observe/failure.ts";
import { recordAt } from "../observe/records.ts";
import type { SessionRow } from "./look.ts";

export function recordOf(row: SessionRow): RecordPlace {
  const { agent, home, id, record } = row.session;
  const adapter = adapterNamed(agent);
  const path = record?.source ?? null;
  if (adapter !== null && id !== null) {
    const file = path === null ? readingOf(row, () => findRecord(adapter, home, id)) : recordAt(adapter, path, id);
    if (file !== null) return { adapter, home, file };
  }
  throw new Failure("nothing-recorded", { ref: row.ref });
}

/** A record that cannot be read is not empty: exit code 8. */
export function readingOf<T>(row: SessionRow, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (errorCode(error) === "") throw error;
    throw new Failure("record-unreadable", { ref: row.ref, detail: failureOf(error) }, { cause: error });
  }
}
