// Parses the steps of a script, and finds the lines of a prompt that are steps.
import { constants } from "node:os";

export type Step =
  | { do: "prompt" | "title" | "say" | "tool" | "continued" | "stderr"; text: string }
  | { do: "work"; ms: number }
  | { do: "edit"; file: string; text: string }
  | { do: "ask"; kind: string; text: string }
  | { do: "background"; shells: number; subagents: number }
  | { do: "end"; outcome: string }
  | { do: "exit"; status: number }
  | { do: "ignore"; signal: NodeJS.Signals }
  | { do: "idle" };

/** null: not a step. */
export function parseStep(line: string): Step | null {
  const [, verb = "", rest = ""] = /^([a-z]+)(?::(.*))?$/s.exec(line) ?? [];
  switch (verb) {
    case "prompt":
    case "title":
    case "say":
    case "tool":
    case "continued":
    case "stderr":
      return { do: verb, text: rest };
    case "work":
      return /^\d+(\.\d+)?$/.test(rest) ? { do: verb, ms: Math.min(Number(rest) * 1000, longestPauseMs) } : null;
    case "edit": {
      const [, file, text = ""] = /^([^:]+):(.*)$/s.exec(rest) ?? [];
      return file === undefined ? null : { do: verb, file, text };
    }
    case "ask": {
      const [, kind = "question", text = rest] = /^([a-z]+):(.*)$/s.exec(rest) ?? [];
      return { do: verb, kind, text };
    }
    case "background": {
      const [, shells, subagents = 0] = /^(\d+)(?::(\d+))?$/.exec(rest) ?? [];
      return shells === undefined ? null : { do: verb, shells: Number(shells), subagents: Number(subagents) };
    }
    case "end":
      return /^(completed|failed|interrupted)?$/.test(rest) ? { do: verb, outcome: rest || "completed" } : null;
    case "exit":
      return /^\d{1,3}$/.test(rest) ? { do: verb, status: Number(rest) } : null;
    case "ignore": {
      const signal = signals.find((name) => name === rest);
      return signal === undefined ? null : { do: verb, signal };
    }
    case "idle":
      return rest === "" ? { do: verb } : null;
    default:
      return null;
  }
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
    .filter((step) => step.do !== "prompt" && step.do !== "idle");
