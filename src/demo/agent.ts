// The demo agent: a small scripted stand-in for a coding agent. It is an agent, not a part of the engine: it writes the
// records that src/adapters/demo.md describes and behaves under signals as the agents people use do.
import { randomUUID } from "node:crypto";
import { appendFileSync, mkdirSync, readFileSync, readlinkSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pause } from "../lib/deadline.ts";
import { spawnDetached } from "../sys/spawn.ts";
import { answerSocket } from "../sys/unix-socket.ts";

export const demoAgentHelp = `demo-agent: a scripted agent to try agentctl with.

  agentctl demo-agent [--session-id ID | --resume ID] [--no-announce] [--parent ID] STEP…
  agentctl demo-agent serve            hosts sessions; lines on stdin: start ID | ask ID TEXT | end ID

Steps, done in order:
  prompt:TEXT  say:TEXT  title:TEXT      lines of the record; a prompt opens a turn
  work:SECONDS                           stay busy
  tool:COMMAND                           run a shell command in a session of its own, as agents do
  ask:KIND:TEXT                          ask a person and wait for a line on stdin
  background:SHELLS:SUBAGENTS            what runs beside the turn from now on
  continued:ID                           the conversation goes on under another id
  end[:completed|failed|interrupted]     close the turn
  idle                                   stay alive; each line on stdin is a prompt, answered at once
`;

export async function runDemoAgent(args: readonly string[]): Promise<number> {
  const home = process.env["DEMO_AGENT_HOME"] || join(process.env["HOME"] ?? "/", ".demo-agent");
  if (args[0] === "--help") {
    writeFileSync(1, demoAgentHelp);
    return 0;
  }
  return args[0] === "serve" ? await serve(home) : await runSession(home, args);
}

async function runSession(home: string, args: readonly string[]): Promise<number> {
  const { options, steps } = splitArguments(args);
  const id = options.get("--session-id") ?? options.get("--resume") ?? randomUUID();
  const announcement = options.has("--no-announce") ? null : announce(home, id);
  const record = new SessionRecord(home, id);
  const leave = (status: number): never => {
    if (announcement !== null) rmSync(announcement, { force: true });
    process.exit(status);
  };
  process.on("SIGINT", () => {
    if (record.turnOpen) record.add("end", { outcome: "interrupted" });
    leave(130);
  });
  process.on("SIGTERM", () => leave(143));
  process.on("SIGHUP", () => leave(129));

  if (!options.has("--resume")) record.begin(options.get("--parent") ?? null);
  const lines = new InputLines();
  for (const step of steps) await perform(step, record, lines);
  return leave(0);
}

function splitArguments(args: readonly string[]): { options: Map<string, string>; steps: string[] } {
  const options = new Map<string, string>();
  const steps: string[] = [];
  for (let index = 0; index < args.length; index += 1) {
    const argument = args[index] ?? "";
    if (argument === "--no-announce") options.set(argument, "");
    else if (argument.startsWith("--")) {
      index += 1;
      options.set(argument, args[index] ?? "");
    } else steps.push(argument);
  }
  return { options, steps };
}

async function perform(step: string, record: SessionRecord, lines: InputLines): Promise<void> {
  const [, verb = "", rest = ""] = /^([a-z]+):?(.*)$/s.exec(step) ?? [];
  switch (verb) {
    case "prompt":
    case "title":
      return record.add(verb, { text: rest });
    case "say":
      return record.add("reply", { text: rest, tokens: { input: 10, output: 5, cacheRead: 0, cacheWrite: 0 } });
    case "work":
      return await pause(Number(rest) * 1000);
    case "tool":
      return await runTool(rest, record);
    case "ask": {
      const [, kind, text] = /^([a-z]+):(.*)$/s.exec(rest) ?? [null, "question", rest];
      record.add("question", { kind, text, tool: kind === "permission" ? "shell" : null, options: ["yes", "no"] });
      return record.add("answer", { text: await lines.next() });
    }
    case "background": {
      const [shells, subagents] = rest.split(":").map(Number);
      return record.add("background", { shells: shells ?? 0, subagents: subagents ?? 0 });
    }
    case "continued":
      return record.add("continued", { by: rest });
    case "end":
      return record.add("end", { outcome: rest === "" ? "completed" : rest });
    case "idle":
      for (;;) {
        record.add("prompt", { text: await lines.next() });
        record.add("reply", { text: "done" });
        record.add("end", { outcome: "completed" });
      }
    default:
      process.stderr.write(`demo-agent: unknown step ${JSON.stringify(step)}\n`);
      process.exit(2);
  }
}

/** In a kernel session of its own: killing the agent's group must not reach it, as with real agents. */
async function runTool(command: string, record: SessionRecord): Promise<void> {
  record.add("tool", { name: "shell", input: command });
  const tool = spawnDetached(["/bin/sh", "-c", command], { cwd: process.cwd(), env: process.env });
  const status = await tool.exited;
  record.add("tool-result", { name: "shell", text: `exit ${status}`, denied: false });
}

class SessionRecord {
  turnOpen = false;
  private readonly path: string;

  constructor(
    home: string,
    private readonly id: string,
  ) {
    mkdirSync(join(home, "sessions"), { recursive: true, mode: 0o700 });
    this.path = join(home, "sessions", `${id}.jsonl`);
  }

  begin(parent: string | null): void {
    this.add("session", { version: 1, id: this.id, cwd: process.cwd(), model: "demo-1", parent });
  }

  add(type: string, fields: Record<string, unknown>): void {
    if (type === "prompt") this.turnOpen = true;
    if (type === "end") this.turnOpen = false;
    appendFileSync(this.path, `${JSON.stringify({ type, at: new Date().toISOString(), ...fields })}\n`, {
      mode: 0o600,
    });
  }
}

function announce(home: string, session: string): string {
  const folder = join(home, "live");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `${process.pid}.json`);
  const at = new Date().toISOString();
  const word = { pid: process.pid, ...ownIdentity(), session, cwd: process.cwd(), at };
  writeFileSync(`${path}.tmp`, JSON.stringify(word), { mode: 0o600 });
  renameSync(`${path}.tmp`, path);
  return path;
}

function ownIdentity(): { start: string | null; boot: string | null; namespace: string | null } {
  if (process.platform !== "linux") return { start: null, boot: null, namespace: null };
  const stat = readFileSync("/proc/self/stat", "latin1");
  const start = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? null;
  const boot = readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
  return { start, boot, namespace: readlinkSync("/proc/self/ns/pid") };
}

/** Lines from stdin, one at a time. After its end nobody will ever answer: the agent waits on, as real ones do. */
class InputLines {
  private readonly lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

  async next(): Promise<string> {
    const { value, done } = await this.lines.next();
    if (done !== true) return value;
    return await new Promise<string>(() => setInterval(() => {}, 3_600_000));
  }
}

async function serve(home: string): Promise<number> {
  const folder = join(home, "hosts");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const socket = join(folder, `${process.pid}.sock`);
  const running = new Map<string, { activity: string; waiting: unknown }>();
  const answer = () => JSON.stringify({ sessions: [...running].map(([id, word]) => ({ id, ...word })) });
  const server = answerSocket(socket, answer);
  const leave = () => {
    server.stop();
    rmSync(socket, { force: true });
    process.exit(0);
  };
  process.on("SIGTERM", leave);
  process.on("SIGINT", leave);
  const lines = new InputLines();
  for (;;) {
    const [verb, id = "", ...words] = (await lines.next()).split(" ");
    const record = new SessionRecord(home, id);
    const text = words.join(" ");
    if (verb === "start") {
      record.begin(null);
      record.add("prompt", { text });
      running.set(id, { activity: "working", waiting: null });
    } else if (verb === "ask") {
      record.add("question", { kind: "question", text, tool: null, options: [] });
      running.set(id, { activity: "waiting", waiting: { kind: "question", text, tool: null, options: [] } });
    } else if (verb === "end") {
      record.add("end", { outcome: "completed" });
      running.delete(id);
    }
  }
}
