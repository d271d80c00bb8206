// The tools of the demo agent: a shell and an editor.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { type DetachedProcess, spawnDetached } from "../sys/spawn.ts";
import type { SessionRecord } from "./record.ts";

export interface Run {
  record: SessionRecord;
  nextAnswer(): Promise<string>;
  permission: string | null;
  mayRunCommands(): Promise<boolean>;
  lastReply: string | null;
  tool: DetachedProcess | null;
}

type DemoTool = "shell" | "edit";

const deniedBy: Readonly<Record<string, readonly DemoTool[]>> = { read: ["shell", "edit"], edit: ["shell"] };

export async function call(
  name: DemoTool,
  input: string,
  run: Run,
  act: () => string | Promise<string>,
): Promise<void> {
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
export async function runTool(command: string, run: Run): Promise<string> {
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
export function writeText(file: string, text: string): string {
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
