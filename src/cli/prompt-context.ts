// What goes into a prompt besides its text: the specification is named first, the content of files stands behind it.
import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { AgentctlError } from "../core/problem.ts";
import { failureText, isGone } from "../observe/failure.ts";
import { readWhole, withFile } from "../observe/files.ts";
import type { Arguments, FlagSpec } from "./arguments.ts";
import type { Context } from "./command.ts";

export const contextFlags: readonly FlagSpec[] = [
  { flag: "--spec", value: "FILE", help: "what is to be done: kept with the launch, and named first in the prompt" },
  { flag: "--context", value: "FILE", repeated: true, help: "a text file whose content goes with the prompt" },
];

const mostOfOne = 256 * 1024;
const mostOfAll = 1024 * 1024;

/** The prompt with everything that goes with it, and the specification's path. */
export function withContext(
  prompt: string,
  args: Arguments,
  { cwd }: Context,
): { prompt: string; spec: string | null } {
  const wished = args.one("--spec");
  const spec = wished === null ? null : specAt(resolve(cwd, wished));
  const named = spec === null ? [] : [`Read this specification first: ${spec}`];
  let left = mostOfAll;
  const texts = args.all("--context").map((name) => {
    const text = textOf(name, resolve(cwd, name));
    left -= Buffer.byteLength(text);
    if (left < 0) throw refused(name, `all of --context together is larger than ${mostOfAll} bytes`);
    return `Content of ${name}:\n\n${text.trimEnd()}\n\nEnd of ${name}.`;
  });
  return { prompt: [...named, prompt, ...texts].join("\n\n"), spec };
}

function specAt(path: string): string {
  try {
    if (!statSync(path).isFile()) throw Object.assign(new Error("not a file"), { code: "EINVAL" });
    accessSync(path, constants.R_OK);
    return realpathSync(path);
  } catch (error) {
    throw refused(path, isGone(error) ? "no such file" : failureText(error), error);
  }
}

function textOf(name: string, path: string): string {
  try {
    const bytes = withFile(path, (file) => readWhole(file, mostOfOne));
    if (bytes.includes(0)) throw refused(name, "it is no text");
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    if (error instanceof AgentctlError) throw error;
    if (error instanceof TypeError) throw refused(name, "it is no text: not UTF-8", error);
    throw refused(name, isGone(error) ? "no such file" : failureText(error), error);
  }
}

const refused = (name: string, why: string, cause?: unknown): AgentctlError =>
  new AgentctlError("usage", `cannot use ${name}: ${why}`, cause === undefined ? {} : { cause });
