// The steps of a script: what a line says, and which lines of a prompt are steps.
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

/** null: this is no step. */
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

/** A later time would be one that is over already, by the timer's 32 bits. */
const longestPauseMs = 2 ** 31 - 1;

const signals = (Object.keys(constants.signals) as NodeJS.Signals[]).filter(
  (name) => name !== "SIGKILL" && name !== "SIGSTOP",
);

/** A prompt is prose: a single word in it is no step, and it cannot hold another prompt. */
export const stepsInPrompt = (prompt: string): Step[] =>
  prompt
    .split(/\r?\n/)
    .filter((line) => line.includes(":"))
    .flatMap((line) => parseStep(line) ?? [])
    .filter((step) => step.do !== "prompt" && step.do !== "idle");
