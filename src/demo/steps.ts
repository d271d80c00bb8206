// The steps of a script: a line of the record, a tool call, a question, or misbehavior.
import { constants } from "node:os";
import { pause } from "../lib/deadline.ts";
import { writeErr } from "../sys/stdout.ts";
import { call, type Run, runTool, writeText } from "./tools.ts";

export interface Step {
  verb: string;
  perform(run: Run): void | Promise<void>;
}

/** null: not a step. */
export function parseStep(line: string): Step | null {
  const [, verb = "", rest = ""] = /^([a-z]+)(?::(.*))?$/s.exec(line) ?? [];
  const perform = Object.hasOwn(verbs, verb) ? (verbs[verb]?.(rest) ?? null) : null;
  return perform === null ? null : { verb, perform };
}

const verbs: Readonly<Record<string, (rest: string) => Step["perform"] | null>> = {
  prompt: (text) => (run) => run.record.add("prompt", { text }),
  title: (text) => (run) => run.record.add("title", { text }),
  say: (text) => (run) => say(text, run),
  work: (seconds) =>
    /^\d+(\.\d+)?$/.test(seconds) ? () => pause(Math.min(Number(seconds) * 1000, longestPauseMs)) : null,
  tool: (command) => (run) => call("shell", command, run, () => runTool(command, run)),
  edit: (rest) => {
    const [, file, text = ""] = /^([^:]+):(.*)$/s.exec(rest) ?? [];
    return file === undefined ? null : (run) => call("edit", rest, run, () => writeText(file, text));
  },
  ask: (rest) => {
    const [, kind = "question", text = rest] = /^([a-z]+):(.*)$/s.exec(rest) ?? [];
    return async ({ record, nextAnswer }) => {
      record.add("question", { kind, text, tool: kind === "permission" ? "shell" : null, options: ["yes", "no"] });
      record.add("answer", { text: await nextAnswer() });
    };
  },
  background: (rest) => {
    const [, shells, subagents = 0] = /^(\d+)(?::(\d+))?$/.exec(rest) ?? [];
    const fields = { shells: Number(shells), subagents: Number(subagents) };
    return shells === undefined ? null : (run) => run.record.add("background", fields);
  },
  continued: (by) => (run) => run.record.add("continued", { by }),
  end: (outcome) =>
    /^(completed|failed|interrupted)?$/.test(outcome) ? (run) => run.record.end(outcome || "completed") : null,
  exit: (status) => (/^\d{1,3}$/.test(status) ? () => process.exit(Number(status)) : null),
  stderr: (text) => () => writeErr(`${text}\n`),
  ignore: (name) => {
    const signal = signals.find((each) => each === name);
    if (signal === undefined) return null;
    return () => {
      process.removeAllListeners(signal);
      process.on(signal, () => {});
    };
  },
  idle: (rest) => (rest === "" ? answerForever : null),
};

async function answerForever({ record, nextAnswer }: Run): Promise<void> {
  for (;;) {
    record.add("prompt", { text: await nextAnswer() });
    record.add("reply", { text: "done" });
    record.end("completed");
  }
}

export function say(text: string, run: Run): void {
  run.record.reply(text);
  run.lastReply = text;
}

/** Timers have 32 bits: a longer pause would end at once. */
const longestPauseMs = 2 ** 31 - 1;

const signals = (Object.keys(constants.signals) as NodeJS.Signals[]).filter(
  (name) => name !== "SIGKILL" && name !== "SIGSTOP",
);

/** A prompt is prose: a single word is not a step, and a prompt cannot contain another prompt. */
export const stepsInPrompt = (prompt: string): Step[] =>
  prompt
    .split(/\r?\n/)
    .filter((line) => line.includes(":"))
    .flatMap((line) => parseStep(line) ?? [])
    .filter(({ verb }) => verb !== "prompt" && verb !== "idle");
