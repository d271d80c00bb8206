// `demo-agent serve`: one process that serves many sessions. It takes orders from stdin and requests from a socket.
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { answerSocket } from "../sys/unix-socket.ts";
import { inputLines } from "./input.ts";
import { SessionRecord } from "./record.ts";

interface Served {
  activity: "working" | "waiting" | "idle";
  waiting: unknown;
}

const idle: Served = { activity: "idle", waiting: null };

export async function serve(home: string): Promise<number> {
  const folder = join(home, "servers");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const socket = join(folder, `${process.pid}.sock`);
  const running = new Map<string, Served>();
  const server = answerSocket(socket, (asked) => answer(asked, home, running));
  const leave = () => {
    server.stop();
    rmSync(socket, { force: true });
    process.exit(0);
  };
  process.on("SIGTERM", leave);
  process.on("SIGINT", leave);
  const nextLine = inputLines();
  for (;;) obey(await nextLine(), home, running);
}

function obey(line: string, home: string, running: Map<string, Served>): void {
  const [verb, id = "", ...words] = line.split(" ");
  const record = new SessionRecord(home, id);
  const text = words.join(" ");
  if (verb === "start") {
    record.begin({ parent: null, model: null, permission: null });
    record.add("prompt", { text });
    running.set(id, { activity: "working", waiting: null });
  } else if (verb === "ask") {
    const waiting = { kind: "question", text, tool: null, options: [] };
    record.add("question", waiting);
    running.set(id, { activity: "waiting", waiting });
  } else if (verb === "end") {
    record.end("completed");
    running.delete(id);
  }
}

/** `interrupt ID`, `message ID TEXT` (the text as a JSON string); every other request asks for the sessions. */
function answer(asked: string, home: string, running: Map<string, Served>): string {
  const [, verb, id = "", rest = ""] = /^(interrupt|message) (\S+) ?(.*)$/s.exec(asked) ?? [];
  const served = running.get(id);
  if (verb === "interrupt") {
    if (served === undefined || served.activity === "idle") return "no-turn";
    new SessionRecord(home, id).end("interrupted");
    running.set(id, idle);
    return "interrupted";
  }
  if (verb === "message") {
    if (served === undefined) return "no such session";
    const record = new SessionRecord(home, id);
    record.add("prompt", { text: JSON.parse(rest) });
    record.reply("done");
    record.end("completed");
    running.set(id, idle);
    return "begun";
  }
  return JSON.stringify({ sessions: [...running].map(([id, served]) => ({ id, ...served })) });
}
