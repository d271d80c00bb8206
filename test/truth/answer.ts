// Parses agentctl's JSON without trusting it.

export interface OwnerRow {
  pid: number;
  start: string;
  boot: string;
}

export interface Row {
  id: string | null;
  agent: string;
  state: string;
  activity: string | null;
  outcome: string | null;
  reasonCode: string | null;
  waitingText: string | null;
  link: string | null;
  process: OwnerRow | null;
  processes: OwnerRow[];
}

export interface ListAnswer {
  complete: boolean;
  rows: Row[];
}

/** Thrown when the JSON breaks the contract; the message says where. */
export class ShapeError extends Error {}

export function parseList(text: string): ListAnswer {
  const list = object(parse(text), "list");
  if (typeof list["complete"] !== "boolean") throw new ShapeError("complete is no boolean");
  return { complete: list["complete"], rows: array(list["sessions"], "sessions").map(parseRow) };
}

export function parseStatus(text: string): Row {
  const row = object(parse(text), "status");
  array(row["evidence"], "evidence");
  return parseRow(row);
}

function parseRow(value: unknown): Row {
  const row = object(value, "a session");
  const waiting = row["waiting"] === null ? null : object(row["waiting"], "waiting");
  const parsed: Row = {
    id: word(row["id"], "id"),
    agent: word(row["agent"], "agent") ?? "",
    state: word(row["state"], "state") ?? "",
    activity: word(row["activity"], "activity"),
    outcome: word(row["outcome"], "outcome"),
    reasonCode: word(row["reasonCode"], "reasonCode"),
    waitingText: waiting === null ? null : word(waiting["text"], "waiting.text"),
    link: word(row["link"], "link"),
    process: row["process"] === null ? null : owner(row["process"]),
    processes: array(row["processes"], "processes").map(owner),
  };
  checkNulls(parsed, waiting !== null);
  return parsed;
}

function checkNulls(row: Row, waits: boolean): void {
  const running = row.state === "running";
  const wrong = [
    !["running", "stopped", "unknown"].includes(row.state) && "state is no known word",
    running !== (row.activity !== null) && "activity must be null unless running",
    !running && row.link !== null && "link must be null unless running",
    running && row.id !== null && row.link === null && "a running session needs a link",
    running !== (row.process !== null) && "process must be null unless running",
    row.state !== "stopped" && row.outcome !== null && "outcome must be null unless stopped",
    (row.activity === "waiting") !== waits && "waiting must be null unless the activity is waiting",
  ].filter(Boolean);
  if (wrong.length > 0) throw new ShapeError(`row ${row.id}: ${wrong.join("; ")}`);
}

function owner(value: unknown): OwnerRow {
  const { pid, start, boot } = object(value, "a process");
  if (typeof pid !== "number" || typeof start !== "string" || typeof boot !== "string") {
    throw new ShapeError("a process is no {pid, start, boot}");
  }
  return { pid, start, boot };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ShapeError(`no JSON: ${JSON.stringify(text.slice(0, 80))}`, { cause: error });
  }
}

function object(value: unknown, what: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new ShapeError(`${what} is no object`);
  return { ...value };
}

function array(value: unknown, what: string): unknown[] {
  if (!Array.isArray(value)) throw new ShapeError(`${what} is no array`);
  return value;
}

function word(value: unknown, what: string): string | null {
  if (value === null || typeof value === "string") return value;
  throw new ShapeError(`${what} is neither text nor null`);
}
