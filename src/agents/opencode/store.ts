// Reads OpenCode's sessions as lines, from its database or from the JSON files of older versions.
import type { Assembly, LikeNames, Reader } from "../adapter.ts";
import { type Fields, fieldsIn, fieldsOf, jsonIn, listIn, millisIn, textIn } from "../fields.ts";

/** A row with JSON inside. */
export interface Piece {
  id: string;
  createdAt: number | null;
  updatedAt: number | null;
  /** null: not a JSON object. */
  data: Fields | null;
}

/** A message with its parts, and with the last message of each subagent that it waits for. */
export interface MessageLine extends Piece {
  type: "last" | "prompt" | "first";
  parts: Piece[];
  subagents: MessageLine[];
}

export type SessionLine = { type: "session" } & Fields;

/** Checks every field of a message that `backward` yielded. */
export function messageIn(line: Fields, nesting = mostNesting): MessageLine {
  const subagents = nesting === 0 ? [] : listIn(line, "subagents");
  return {
    ...pieceIn(line),
    type: "last",
    parts: listIn(line, "parts").map(pieceIn),
    subagents: subagents.map((subagent) => messageIn(subagent, nesting - 1)),
  };
}

const pieceIn = (fields: Fields): Piece => ({
  id: textIn(fields, "id") ?? "",
  createdAt: millisIn(fields, "createdAt"),
  updatedAt: millisIn(fields, "updatedAt"),
  data: fieldsOf(fields["data"]),
});

interface Source {
  session(): Fields | null;
  last(session: string): Piece | null;
  first(): Piece | null;
  /** Oldest first. */
  messages(): Iterable<Piece>;
  message(id: string): Piece | null;
  parts(message: string): Piece[];
}

/** The names of other databases match, too: only a database with OpenCode's tables has sessions. */
export const databaseLines: Assembly = {
  *sessions(reader, like) {
    if (!hasTables(reader)) return;
    const { condition, values } = like === null ? { condition: "", values: [] } : conditionFor(like);
    for (const row of reader.rows(`SELECT id, directory, time_updated FROM session ${condition}`, ...values)) {
      const id = textIn(row, "id");
      if (id !== null) yield { id, cwd: textIn(row, "directory"), updatedAt: millisIn(row, "time_updated") };
    }
  },
  newest(reader, id) {
    const [row] = reader.rows(newest, id);
    return row === undefined ? null : millisIn(row, "newest");
  },
  forward: (reader, id) => forward(database(reader, id)),
  backward: (reader, id) => backward(database(reader, id), id),
};

/** One query for all conditions, so that no session comes twice. */
function conditionFor({ ids, beginnings, directories }: LikeNames): { condition: string; values: readonly string[] } {
  const among = (values: readonly string[]): string => `IN (${values.map(() => "?").join(", ")})`;
  const byLength = [...Map.groupBy(beginnings, ({ length }) => length)];
  const terms = [
    `id ${among(ids)}`,
    ...(directories.length === 0 ? [] : [`directory ${among(directories)}`, "typeof(directory) <> 'text'"]),
    ...byLength.map(([length, starts]) => `lower(substr(id, 1, ${length})) ${among(starts)}`),
  ];
  const values = [...ids, ...directories, ...byLength.flatMap(([, starts]) => starts)];
  return { condition: `WHERE ${terms.join(" OR ")}`, values };
}

/** The newest time of the session itself, of its last message, and of that message's parts. */
const newest = `
  SELECT max(s.time_updated, coalesce(m.time_created, 0), coalesce(m.time_updated, 0),
    coalesce((SELECT max(p.time_created, p.time_updated) FROM part p WHERE p.message_id = m.id
      ORDER BY max(p.time_created, p.time_updated) DESC LIMIT 1), 0)) AS newest
  FROM session s LEFT JOIN message m ON m.session_id = s.id
  WHERE s.id = ? ORDER BY m.time_created DESC, m.id DESC LIMIT 1`;

export const fileLines: Assembly = {
  sessions: null,
  forward: (reader, id) => forward(files(reader, id)),
  backward: (reader, id) => backward(files(reader, id), id),
};

function hasTables(reader: Reader): boolean {
  const sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name IN ('session', 'message', 'part')";
  return reader.rows(sql).length === 3;
}

const messagesInOrder = "SELECT * FROM message WHERE session_id = ? ORDER BY time_created, id";
const newestMessage = "SELECT * FROM message WHERE session_id = ? ORDER BY time_created DESC, id DESC";

function database(reader: Reader, id: string): Source {
  const one = (sql: string, value: string): Piece | null =>
    reader.rows(`${sql} LIMIT 1`, value).map(pieceOf)[0] ?? null;
  return {
    session: () => reader.rows("SELECT * FROM session WHERE id = ? LIMIT 1", id)[0] ?? null,
    last: (session) => one(newestMessage, session),
    first: () => one(messagesInOrder, id),
    // One by one, because a message may contain the diff of a whole repository.
    *messages() {
      for (const row of reader.each(messagesInOrder, id)) yield pieceOf(row);
    },
    message: (message) => one("SELECT * FROM message WHERE id = ?", message),
    parts: (message) => reader.rows("SELECT * FROM part WHERE message_id = ? ORDER BY id", message).map(pieceOf),
  };
}

const pieceOf = (row: Fields): Piece => ({
  id: textIn(row, "id") ?? "",
  createdAt: millisIn(row, "time_created"),
  updatedAt: millisIn(row, "time_updated"),
  data: fieldsOf(jsonIn(row, "data")),
});

/** `storage/session/<project>/<id>.json`, `storage/message/<session>/<id>.json`, `storage/part/<message>/<id>.json`. */
function files(reader: Reader, id: string): Source {
  const pieceAt = (folder: string, name: string): Piece => {
    const data = fieldsOf(jsonOrNull(reader, `${folder}/${name}`));
    const { created, completed, start, end } = fieldsIn(data ?? {}, "time");
    const at = millisIn({ at: created ?? start }, "at");
    return {
      id: name.replace(/\.json$/, ""),
      createdAt: at,
      updatedAt: millisIn({ at: completed ?? end }, "at") ?? at,
      data,
    };
  };
  const piecesIn = (folder: string, choose = (names: string[]): string[] => names): Piece[] =>
    choose(reader.names(folder).filter((name) => name.endsWith(".json"))).map((name) => pieceAt(folder, name));
  const messagesOf = (session: string, choose?: (names: string[]) => string[]): Piece[] =>
    piecesIn(`../../message/${session}`, choose);
  return {
    session() {
      const info = fieldsOf(reader.json());
      if (info === null) return null;
      const { created, updated } = fieldsIn(info, "time");
      return { ...info, parent_id: info["parentID"], time_created: created, time_updated: updated };
    },
    // The ids of messages rise with time.
    last: (session) => messagesOf(session, (names) => names.slice(-1))[0] ?? null,
    first: () => messagesOf(id, (names) => names.slice(0, 1))[0] ?? null,
    messages: () => messagesOf(id),
    message: (message) => messagesOf(id, (names) => names.filter((name) => name === `${message}.json`))[0] ?? null,
    parts: (message) => piecesIn(`../../part/${message}`),
  };
}

/** null for a file that is not JSON, so that the other files are still read. */
function jsonOrNull(reader: Reader, path: string): unknown {
  try {
    return reader.json(path) ?? null;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EINVAL") return null;
    throw error;
  }
}

/** Deeper nesting of subagents was not seen. */
const mostNesting = 3;

/**
 * The session, its last message, the prompt of that message, and the first prompt. Each is a separate query, and OpenCode may write
 * between them. That does no harm: only the last message decides the status, and the prompts add texts and times.
 */
function* backward(source: Source, id: string): Generator<SessionLine | MessageLine> {
  const session = source.session();
  if (session !== null) yield { ...session, type: "session" };
  const last = source.last(id);
  if (last === null) return;
  yield withParts(source, last, "last", mostNesting);
  const prompt = textIn(last.data ?? {}, "parentID");
  const asked = prompt === null ? null : source.message(prompt);
  if (asked !== null) yield withParts(source, asked, "prompt", 0);
  const first = source.first();
  if (first !== null) yield withParts(source, first, "first", 0);
}

function withParts(source: Source, piece: Piece, type: MessageLine["type"], nesting: number): MessageLine {
  const parts = source.parts(piece.id);
  const subagents = nesting === 0 ? [] : parts.flatMap((part) => runningSubagent(part) ?? []);
  return {
    ...piece,
    type,
    parts,
    subagents: subagents.flatMap((session) => {
      const last = source.last(session);
      return last === null ? [] : [withParts(source, last, "last", nesting - 1)];
    }),
  };
}

/** The session of the subagent that this call waits for. */
function runningSubagent({ data }: Piece): string | null {
  const state = fieldsIn(data ?? {}, "state");
  if (data?.["tool"] !== "task" || state["status"] !== "running") return null;
  return textIn(fieldsIn(state, "metadata"), "sessionId");
}

/** Yields only entries that cannot change any more: started calls, results, complete texts, errors of completed messages. */
function* forward(source: Source): Generator<Fields> {
  const session = source.session();
  if (session !== null) {
    const { id, parent_id, directory, version, time_created } = session;
    yield { type: "session", id, parent_id, directory, version, time_created };
  }
  for (const message of source.messages()) {
    const data = message.data ?? {};
    const base = { role: data["role"], message: message.id, model: data["modelID"] };
    const completed = fieldsIn(data, "time")["completed"];
    if (message.data === null) yield { type: "broken", message: message.id };
    for (const part of source.parts(message.id)) {
      const line = { ...base, id: part.id, at: part.createdAt, data: part.data };
      if (part.data === null) yield { type: "broken", message: message.id, id: part.id };
      else if (part.data["type"] === "tool") yield* toolLines(line, part.data);
      else if (isWhole(part.data, data["role"], completed)) yield { ...line, type: "part" };
    }
    const error = fieldsOf(data["error"]);
    if (error !== null && completed !== undefined)
      yield { ...base, type: "error", id: message.id, at: completed, error };
  }
}

const isWhole = (part: Fields, role: unknown, completed: unknown): boolean =>
  role === "user" ||
  completed !== undefined ||
  part["type"] === "step-finish" ||
  fieldsIn(part, "time")["end"] !== undefined;

function* toolLines(line: Fields, part: Fields): Generator<Fields> {
  const state = fieldsIn(part, "state");
  const { status, input } = state;
  const { start, end } = fieldsIn(state, "time");
  if (status === "pending" || status === undefined) return;
  const call = { tool: part["tool"], callID: part["callID"], input };
  yield { ...line, at: start ?? line["at"], data: call, type: "call" };
  if (status !== "running") yield { ...line, at: end ?? line["at"], type: "result" };
}
