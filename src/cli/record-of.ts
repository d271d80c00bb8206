// From a session to what can be read of its record.
import { adapterNamed } from "../adapters/registry.ts";
import { AgentctlError } from "../core/problem.ts";
import { findRecord, type RecordPlace } from "../observe/conversation.ts";
import { errorCode, failureText } from "../observe/failure.ts";
import { recordAt } from "../observe/records.ts";
import type { Row } from "./sessions.ts";

export function recordOf(row: Row): RecordPlace {
  const { agent, home, id, record } = row.session;
  const adapter = adapterNamed(agent);
  const path = record?.source ?? null;
  if (adapter !== null && id !== null) {
    const file = path === null ? readingOf(row, () => findRecord(adapter, home, id)) : recordAt(adapter, path, id);
    if (file !== null) return { adapter, home, file };
  }
  throw new AgentctlError("not-found", `${row.ref} has written nothing yet`, { hint: `agentctl status ${row.ref}` });
}

/** What could not be read is not empty: exit 8. */
export function readingOf<T>(row: Row, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (errorCode(error) === "") throw error;
    const message = `the record of ${row.ref} cannot be read: ${failureText(error)}`;
    throw new AgentctlError("cannot-tell", message, { hint: `agentctl why ${row.ref}`, cause: error });
  }
}

/** What was passed over, for stderr; "" if nothing was. */
export function passedOver({ broken, unknown }: { broken: number; unknown: number }, missing: string | null): string {
  const notes = [
    broken > 0 ? `${broken} broken ${broken === 1 ? "line" : "lines"} skipped` : null,
    unknown > 0 ? `${unknown} ${unknown === 1 ? "line" : "lines"} of an unknown kind skipped` : null,
    missing === null ? null : `it continues ${missing}, whose record is not there`,
  ];
  return notes.map((note) => (note === null ? "" : `agentctl: ${note}\n`)).join("");
}
