// The whole prompt of a launch: it names the specification first, then comes the text, then the content of context files.
import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { Failure, UsageError } from "../core/failure.ts";
import { failureText, isGone } from "../lib/errors.ts";
import { readWhole, withFile } from "../observe/files.ts";

const mostOfOne = 256 * 1024;
const mostOfAll = 1024 * 1024;

/** Returns the real path of the specification, too. */
export function withContext(
  request: { prompt: string; spec: string | null; context: readonly string[] },
  cwd: string,
): { prompt: string; spec: string | null } {
  const spec = request.spec === null ? null : specAt(resolve(cwd, request.spec));
  const named = spec === null ? [] : [`Read this specification first: ${spec}`];
  let left = mostOfAll;
  const texts = request.context.map((name) => {
    const text = textOf(name, resolve(cwd, name));
    left -= Buffer.byteLength(text);
    if (left < 0) throw refused(name, `all of --context together is larger than ${mostOfAll} bytes`);
    return `Content of ${name}:\n\n${text.trimEnd()}\n\nEnd of ${name}.`;
  });
  return { prompt: [...named, request.prompt, ...texts].join("\n\n"), spec };
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
    if (bytes.includes(0)) throw refused(name, "it is not text");
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    if (error instanceof Failure) throw error;
    if (error instanceof TypeError) throw refused(name, "it is not text: not UTF-8", error);
    throw refused(name, isGone(error) ? "no such file" : failureText(error), error);
  }
}

const refused = (name: string, why: string, cause?: unknown): UsageError =>
  new UsageError(`cannot use ${name}: ${why}`, cause === undefined ? {} : { cause });
