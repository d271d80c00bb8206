// Performs one step of a script: a line of the record, a tool call, a question, or misbehavior.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { pause } from "../lib/deadline.ts";
import { type DetachedProcess, spawnDetached } from "../sys/spawn.ts";
import { writeErr } from "../sys/stdout.ts";
import type { Answers } from "./input.ts";
import type { SessionRecord } from "./record.ts";
import type { Step } from "./steps.ts";

export interface Run {
  record: SessionRecord;
  answers: Answers;
  permission: string | null;
  mayRunCommands(): Promise<boolean>;
  lastReply: string | null;
  tool: DetachedProcess | null;
}

export async function perform(step: Step, run: Run): Promise<void> {
  const { record, answers } = run;
  switch (step.do) {
    case "prompt":
    case "title":
      return record.add(step.do, { text: step.text });
    case "say":
      return say(step.text, run);
    case "work":
      return await pause(step.ms);
    case "tool":
      return await call("shell", step.text, run, () => runTool(step.text, run));
    case "edit":
      return await call("edit", `${step.file}:${step.text}`, run, () => writeText(step.file, step.text));
    case "ask": {
      const { kind, text } = step;
      record.add("question", { kind, text, tool: kind === "permission" ? "shell" : null, options: ["yes", "no"] });
      return record.add("answer", { text: await answers.next() });
    }
    case "background":
      return record.add("background", { shells: step.shells, subagents: step.subagents });
    case "continued":
      return record.add("continued", { by: step.text });
    case "end":
      return record.end(step.outcome);
    case "exit":
      return process.exit(step.status);
    case "stderr":
      return writeErr(`${step.text}\n`);
    case "ignore":
      process.removeAllListeners(step.signal);
      process.on(step.signal, () => {});
      return;
    case "idle":
      for (;;) {
        record.add("prompt", { text: await answers.next() });
        record.add("reply", { text: "done" });
        record.end("completed");
      }
  }
}

export function say(text: string, run: Run): void {
  run.record.reply(text);
  run.lastReply = text;
}

type DemoTool = "shell" | "edit";

const deniedBy: Readonly<Record<string, readonly DemoTool[]>> = { read: ["shell", "edit"], edit: ["shell"] };

async function call(name: DemoTool, input: string, run: Run, act: () => string | Promise<string>): Promise<void> {
  const { record, permission } = run;
  record.add("tool", { name, input });
  const refusal = deniedBy[permission ?? ""]?.includes(name)
    ? `denied: its permission is ${permission}`
    : name === "shell" && !(await run.mayRunCommands())
      ? "denied: called from inside an agent's session"
      : null;
  record.add("tool-result", { name, text: refusal ?? (await act()), denied: refusal !== null });
}

/** Runs in its own kernel session, as with real agents: killing the agent's process group does not reach it. */
async function runTool(command: string, run: Run): Promise<string> {
  const env = { ...process.env, DEMO_AGENT_SESSION: run.record.id };
  run.tool = spawnDetached(["/bin/sh", "-c", command], { cwd: process.cwd(), env });
  const status = await run.tool.exited;
  run.tool = null;
  return `exit ${status}`;
}

/** Kills the tool and its process group. */
export function killTool({ tool }: Run): void {
  if (tool === null) return;
  try {
    process.kill(-tool.pid, "SIGKILL");
  } catch (error) {
    // The tool has just exited.
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}

/** A failure is part of the tool's result, as with real agents. */
function writeText(file: string, text: string): string {
  const path = resolve(file);
  try {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    return `wrote ${file}`;
  } catch (error) {
    if (error instanceof Error && "code" in error) return `cannot write ${file}: ${error.message}`;
    throw error;
  }
}
