// OpenClaw keeps one SQLite database for each of its agents. The record of a session is assembled from its tables.
import type { Assembly, Reader } from "../adapter.ts";
import { type Fields, idOrNull, jsonIn, parsedFields, textIn } from "../fields.ts";

/** A session key has one session after the other (a reset begins a new one); each session is a window. */
const windows = "SELECT session_id FROM session_windows ORDER BY created_at, session_id";

/** Only a few values are extracted from entry_json, because it has tens of kilobytes. */
const state = `
  SELECT w.session_key, w.created_at, w.updated_at, w.transcript_updated_at, w.started_at, w.ended_at, w.status,
    w.model_provider, w.model, w.display_name, n.label, n.fork_source_session_id AS forked_from,
    json_extract(n.entry, '$.permissionMode') AS permission, json_extract(n.entry, '$.spawnedCwd') AS cwd,
    (SELECT s.current_session_id FROM session_nodes s WHERE s.session_key = w.spawned_by) AS spawner,
    (SELECT s.session_id FROM session_windows s WHERE s.previous_session_id = w.session_id ORDER BY s.created_at) AS successor
  FROM session_windows w
  LEFT JOIN (
    SELECT *, CASE WHEN json_valid(entry_json) THEN entry_json ELSE '{}' END AS entry FROM session_nodes
  ) n ON n.session_key = w.session_key AND n.current_session_id = w.session_id
  WHERE w.session_id = ?`;

/** Prompts that were accepted and are not yet in the conversation. */
const inputs =
  "SELECT state, accepted_at, message_json FROM session_pending_inputs WHERE session_id = ? ORDER BY seq DESC";

const events = (order: "ASC" | "DESC"): string =>
  `SELECT event_json, event_zstd FROM transcript_events WHERE session_id = ? ORDER BY seq ${order}`;

/** A new database has no tables yet. A database with other tables is an error. */
const isNew = (reader: Reader): boolean => reader.rows("SELECT 1 FROM sqlite_master LIMIT 1").length === 0;

export const store: Assembly = {
  *sessions(reader) {
    if (isNew(reader)) return;
    for (const row of reader.rows(windows)) yield { id: textIn(row, "session_id") ?? "" };
  },
  *forward(reader, id) {
    for (const row of reader.each(events("ASC"), id)) yield eventIn(row, reader);
  },
  *backward(reader, id) {
    for (const row of reader.rows(state, id)) yield { type: stateType, ...row };
    for (const row of reader.rows(inputs, id))
      yield { type: inputType, state: row["state"], at: row["accepted_at"], message: jsonIn(row, "message_json") };
    for (const row of reader.each(events("DESC"), id)) yield eventIn(row, reader);
  },
};

/** OpenClaw chooses UUIDs. A person may choose other ids (`openclaw agent --session-id`), which must match this rule of OpenClaw. */
export const isSessionId = (text: string): boolean => /^[\p{L}\p{N}][\p{L}\p{N}\p{M}._-]{0,127}$/u.test(text);

export const sessionIn = (fields: Fields, key: string): string | null => idOrNull(textIn(fields, key), isSessionId);

/** Lines that agentctl makes from the other tables. */
export const stateType = "agentctl.state";
export const inputType = "agentctl.input";

/** 2026.9.6 compresses events that are longer than some thousand characters. */
function eventIn(row: Fields, reader: Reader): unknown {
  const packed = row["event_zstd"];
  return packed instanceof Uint8Array ? parsedFields(reader.unpacked(packed)) : jsonIn(row, "event_json");
}
