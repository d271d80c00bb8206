// Puts back the variables that the holder's shell dropped, and becomes the agent.
import { unlinkSync } from "node:fs";
import { fieldsOf } from "../../agents/fields.ts";
import { findProgram } from "../../control/agent-program.ts";
import { checkHeldWith } from "../../control/guard-hidden-commands.ts";
import { readWhole } from "../../observe/files.ts";
import { withOwnFile } from "../../observe/own-files.ts";
import { becomeProgram } from "../../sys/exec.ts";
import type { Context } from "../command.ts";

const maxBytes = 4 * 1024 * 1024;

export function runExecAgent(words: readonly string[], { env }: Context): number {
  checkHeldWith(["exec-agent", ...words]);
  const [file = "", program = "", ...args] = words;
  const dropped = fieldsOf(withOwnFile(file, (open) => JSON.parse(readWhole(open, maxBytes).toString("utf8")))) ?? {};
  unlinkSync(file);
  const whole = Object.entries({ ...env, ...dropped }).filter(
    (entry): entry is [string, string] => typeof entry[1] === "string",
  );
  const path = program.includes("/") ? program : (findProgram(program, env) ?? program);
  return becomeProgram(path, args, Object.fromEntries(whole));
}
