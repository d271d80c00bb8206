// Runs one session in one process; its steps come from arguments, a script or a prompt.
import { readFileSync, rmSync } from "node:fs";
import { pause } from "../lib/deadline.ts";
import { writeErr, writeOut } from "../sys/stdout.ts";
import { fail, readArguments } from "./arguments.ts";
import { inputLines, readPrompt, waitForever } from "./input.ts";
import { announce, hasRecord, SessionRecord } from "./record.ts";
import { parseStep, type Step, say, stepsInPrompt } from "./steps.ts";
import { killTool, type Run } from "./tools.ts";

export async function runSession(
  home: string,
  args: readonly string[],
  mayRunCommands: () => Promise<boolean>,
): Promise<number> {
  const { options, rest } = readArguments(args);
  const option = (name: string): string | null => options.get(name) ?? null;
  const failure = option("--fail-start");
  if (failure !== null) {
    writeErr(`${failure}\n`);
    return 1;
  }
  const script = option("--script");
  const scripted = script === null ? null : readScript(script);
  const steps = rest.map(stepOf);
  const permission = permissionOf(option("--permission"));
  const id = sessionId(home, option("--session-id"), option("--resume"));
  const prompt = options.has("-p") ? await readPrompt() : null;

  await pause(delayOf(option("--announce-after")));
  const record = new SessionRecord(home, id);
  const nextAnswer = prompt === null ? inputLines() : waitForever;
  const run: Run = { record, nextAnswer, permission, mayRunCommands, lastReply: null, tool: null };
  obeySignals(run);
  if (!options.has("--no-announce")) {
    const announcement = announce(home, id);
    process.once("exit", () => rmSync(announcement, { force: true }));
  }
  if (!options.has("--resume")) record.begin({ parent: option("--parent"), model: option("--model"), permission });

  if (prompt !== null) return await runHeadless(prompt, [...(scripted ?? stepsInPrompt(prompt)), ...steps], run);
  for (const step of [...(scripted ?? []), ...steps]) await step.perform(run);
  return 0;
}

async function runHeadless(prompt: string, steps: readonly Step[], run: Run): Promise<number> {
  const { record } = run;
  const silent = !steps.some((step) => step.verb === "say");
  record.add("prompt", { text: prompt });
  for (const step of steps) {
    if (step.verb === "end" && silent && run.lastReply === null) say(defaultReply(prompt), run);
    await step.perform(run);
  }
  if (run.lastReply === null) say(defaultReply(prompt), run);
  if (record.turnOpen) record.end("completed");
  writeOut(`${run.lastReply}\n`);
  return record.outcome === "failed" ? 1 : 0;
}

const defaultReply = (prompt: string): string => {
  const [line = ""] = prompt.trimStart().slice(0, 200).split(/\r?\n/);
  return `done: ${[...line].slice(0, 60).join("")}`;
};

function sessionId(home: string, chosen: string | null, old: string | null): string {
  if (chosen !== null && old !== null) return fail("--session-id and --resume cannot be combined", 2);
  if (old !== null) return hasRecord(home, old) ? old : fail(`no such session: ${old}`, 1);
  if (chosen !== null) return hasRecord(home, chosen) ? fail(`session id in use: ${chosen}`, 1) : chosen;
  return crypto.randomUUID();
}

const permissionOf = (word: string | null): string | null =>
  word === null || ["read", "edit", "bypass"].includes(word) ? word : fail(`unknown permission ${word}`, 2);

const delayOf = (ms: string | null): number =>
  ms === null || /^\d{1,9}$/.test(ms) ? Number(ms) : fail(`--announce-after needs milliseconds, not ${ms}`, 2);

const stepOf = (text: string): Step => parseStep(text) ?? fail(`unknown step ${JSON.stringify(text)}`, 2);

function readScript(path: string): Step[] {
  try {
    return readFileSync(path, "utf8")
      .split(/\r?\n/)
      .filter((line) => line.trim() !== "")
      .map(stepOf);
  } catch (error) {
    if (error instanceof Error && "code" in error) return fail(`cannot read the script: ${error.message}`, 1);
    throw error;
  }
}

/** SIGINT also kills the tool. After SIGTERM and SIGHUP the tool lives on and the record has no end, as with Claude Code 2.1.197. */
function obeySignals(run: Run): void {
  process.on("SIGINT", () => {
    killTool(run);
    if (run.record.turnOpen) run.record.end("interrupted");
    process.exit(130);
  });
  process.on("SIGTERM", () => process.exit(143));
  process.on("SIGHUP", () => process.exit(129));
}
