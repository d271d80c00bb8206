// Does the work of list.c in agentctl's runtime and prints the same lines. No TypeScript program that answers the same question can
// be much faster. The distance from list.c to this program is the runtime's; the distance from this program to agentctl is ours.
import {
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  statSync,
  writeSync,
} from "node:fs";
import { DatabaseSync } from "node:sqlite";

interface Live {
  start: string;
  status: string;
  alive: boolean;
}

const all = process.argv[2] === "-a";
const home = process.argv[all ? 3 : 2] ?? "";
const since = Date.now() - 7 * 86_400_000;
const maxBytes = 64 << 20;
const byId = new Map<string, Live>();
const byPid = new Map<number, Live>();
const lines: string[] = [];
let older = 0;
let buffer = Buffer.allocUnsafeSlow(64 * 1024);

announcements(`${home}/.claude/sessions`);
for (const name of readdirSync("/proc")) if (name >= "0" && name < ":") visitProcess(name);
const claude = {
  agent: "c",
  prompt: needle('"type":"user"'),
  marks: ['"type":"assistant"', '"type":"user"'].map(needle),
};
const codex = {
  agent: "x",
  prompt: needle('"user.text"'),
  marks: ['"task_complete"', '"task_started"', '"turn_aborted"'].map(needle),
};
const directory = needle('"cwd":"');
for (const folder of below(`${home}/.claude/projects`)) visitRecords(folder, claude);
for (const year of below(`${home}/.codex/sessions`))
  for (const month of below(year)) for (const day of below(month)) visitRecords(day, codex);
readDatabase(`${home}/.local/share/opencode/opencode.db`);
if (all) lines.push(`${cleared(`${home}/.claude/history.jsonl`)} cleared`, `${older} older`);
if (lines.length > 0) writeSync(1, `${lines.join("\n")}\n`);
process.exit(0);

function needle(text: string): Buffer {
  return Buffer.from(text);
}

function names(path: string): string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    return orNothing(error, []);
  }
}

function below(path: string): string[] {
  return names(path).map((name) => `${path}/${name}`);
}

function textOf(path: string): string {
  try {
    const fd = openSync(path, "r");
    const got = readSync(fd, buffer, 0, buffer.length, null);
    closeSync(fd);
    return buffer.toString("latin1", 0, got);
  } catch (error) {
    return orNothing(error, "");
  }
}

/** The file or the process does not exist (any more). */
function orNothing<T>(error: unknown, nothing: T): T {
  if (error instanceof Error && "code" in error) return nothing;
  throw error;
}

function valueIn(text: string, key: string): string | null {
  const at = text.indexOf(key);
  return at === -1 ? null : text.slice(at + key.length, text.indexOf('"', at + key.length));
}

function add(id: string, pid: number, live: Live): void {
  byId.set(id, live);
  byPid.set(pid, live);
}

function announcements(folder: string): void {
  for (const name of names(folder)) {
    const text = name.endsWith(".json") ? textOf(`${folder}/${name}`) : "";
    const id = valueIn(text, '"sessionId":"');
    if (id === null) continue;
    const [start, status] = ['"procStart":"', '"status":"'].map((key) => valueIn(text, key));
    add(id, Number.parseInt(name, 10), { start: start ?? "", status: status ?? "?", alive: false });
  }
}

function visitProcess(name: string): void {
  const stat = textOf(`/proc/${name}/stat`);
  const end = stat.lastIndexOf(")");
  if (end === -1) return;
  let at = end + 2;
  for (let field = 0; field < 19; field += 1) at = stat.indexOf(" ", at) + 1;
  const pid = Number(name);
  const announced = byPid.get(pid);
  if (announced?.start === stat.slice(at, stat.indexOf(" ", at))) announced.alive = true;
  const kind = kindOf(stat.slice(stat.indexOf("(") + 1, end));
  if (kind === "" || stat[end + 2] === "Z" || stat[end + 2] === "X") return;
  const words = textOf(`/proc/${name}/cmdline`).split("\0");
  if (kind === "n") return;
  const flag = kind === "o" ? words.findIndex((word) => word === "--session" || word === "-s") : -1;
  if (flag !== -1) add(words[flag + 1] ?? "", pid, { start: "", status: "", alive: true });
  statSync(`/proc/${name}`);
  textOf(`/proc/${name}/environ`);
  readlinkSync(`/proc/${name}/cwd`);
  readlinkSync(`/proc/${name}/exe`);
  if (kind === "x") for (const fd of names(`/proc/${name}/fd`)) visitOpenFile(pid, fd);
}

function kindOf(name: string): string {
  if (name.startsWith("claude")) return "c";
  if (name.startsWith("codex")) return "x";
  if (name.startsWith("opencode")) return "o";
  return name.startsWith("node") || name === "MainThread" || name === "bun" ? "n" : "";
}

function visitOpenFile(pid: number, fd: string): void {
  const target = readlinkSync(`/proc/${pid}/fd/${fd}`);
  if (!target.includes("/thread-writer-locks/") || !textOf(`/proc/${pid}/fdinfo/${fd}`).includes("lock:")) return;
  add(target.slice(-41, -5), pid, { start: "", status: "", alive: true });
}

function visitRecords(folder: string, format: typeof claude): void {
  for (const name of names(folder)) {
    if (name.length < 42 || !name.endsWith(".jsonl")) continue;
    const named = byId.get(name.slice(-42, -6));
    const owner = named?.alive === true ? named : null;
    const isRecent = all && statSync(`${folder}/${name}`).mtimeMs >= since;
    if (owner !== null || isRecent) readRecord(`${folder}/${name}`, name, format, owner);
    else if (all) older += 1;
  }
}

/** Doubles the window until it contains enough, or the whole file. */
function window(
  fd: number,
  first: number,
  size: number,
  at: "start" | "end",
  isEnough: (bytes: Buffer) => boolean,
): Buffer {
  for (let length = first; ; length *= 2) {
    if (buffer.length < length) buffer = Buffer.allocUnsafeSlow(length);
    const got = readSync(fd, buffer, 0, length, at === "start" ? 0 : Math.max(0, size - length));
    const bytes = buffer.subarray(0, got);
    if (isEnough(bytes) || length >= size || length >= maxBytes) return bytes;
  }
}

function readRecord(path: string, name: string, { agent, prompt, marks }: typeof claude, owner: Live | null): void {
  const fd = openSync(path, "r");
  const { size, mtimeMs } = fstatSync(fd);
  const head = window(fd, 8 * 1024, size, "start", (bytes) => bytes.includes(prompt));
  const from = head.indexOf(directory) + directory.length;
  const cwd = from < directory.length ? "" : head.toString("latin1", from, head.indexOf(34, from));
  const lastOf = (bytes: Buffer): number[] => marks.map((mark) => bytes.lastIndexOf(mark));
  const tail = window(fd, 16 * 1024, size, "end", (bytes) => lastOf(bytes).some((at) => at !== -1));
  closeSync(fd);
  const places = lastOf(tail);
  const mark = marks[places.indexOf(Math.max(...places))]?.toString() ?? "?";
  const status = owner === null ? "stopped" : owner.status || "running";
  lines.push(`${agent} ${name.slice(0, 60)} ${status} ${mark} ${cwd} ${Math.floor(mtimeMs / 1000)}`);
}

function readDatabase(path: string): void {
  if (!existsSync(path)) return;
  const database = new DatabaseSync(path, { readOnly: true });
  const prepared = (sql: string) => {
    const statement = database.prepare(sql);
    return (value: string) => statement.all(value) as Record<string, string>[];
  };
  const last = prepared(
    "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created DESC, id DESC LIMIT 1",
  );
  const parts = prepared("SELECT data FROM part WHERE message_id = ? ORDER BY id");
  const session = prepared("SELECT title, directory, model, time_created, time_updated FROM session WHERE id = ?");
  for (const row of database.prepare(`SELECT id${all ? ", time_updated" : ""} FROM session`).all()) {
    const { id, time_updated: updated } = row as { id: string; time_updated?: number };
    const owner = byId.get(id);
    if (owner === undefined && !(updated !== undefined && updated >= since)) {
      older += 1;
      continue;
    }
    const [message] = last(id);
    const bytes = parts(message?.["id"] ?? "").reduce((sum, { data = "" }) => sum + data.length, 0);
    const [{ title, directory } = {}] = session(id);
    const turn = message?.["data"]?.includes('"completed"') ? "completed" : "open";
    lines.push(`o ${id} ${owner === undefined ? "stopped" : "running"} ${turn} ${bytes} ${title} ${directory}`);
  }
}

function cleared(path: string): number {
  if (!existsSync(path)) return 0;
  const fd = openSync(path, "r");
  const { size } = fstatSync(fd);
  const end = window(fd, 256 * 1024, size, "end", () => true);
  closeSync(fd);
  return end.toString("latin1").split('"display":"/clear').length - 1;
}
