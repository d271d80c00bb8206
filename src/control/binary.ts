// Where an agent's program is: what the environment says, else as a shell would find it.
import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { delimiter, dirname, join, resolve } from "node:path";
import type { Adapter } from "../adapters/adapter.ts";
import { fieldsOf, textIn } from "../adapters/fields.ts";
import { AgentctlError } from "../core/problem.ts";
import { errorCode } from "../observe/failure.ts";
import { readWhole, withFile } from "../observe/files.ts";
import type { Environment } from "../observe/homes.ts";
import { selfCommand } from "../sys/self.ts";

const overrideKey = (adapter: Adapter): string => `AGENTCTL_${adapter.agent.toUpperCase().replaceAll("-", "_")}_BIN`;

/** null: not installed. The built-in agent is this program. */
export function findBinary(adapter: Adapter, env: Environment): string | null {
  const override = env[overrideKey(adapter)];
  if (override) return isProgram(override) ? resolve(override) : null;
  if (adapter.command === "agentctl") return process.execPath;
  return findProgram(adapter.command, env);
}

export function findProgram(name: string, env: Environment): string | null {
  const folders = (env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  return folders.map((folder) => resolve(folder, name)).find(isProgram) ?? null;
}

/** The words that start it. */
export function commandOf(adapter: Adapter, env: Environment): string[] {
  const found = findBinary(adapter, env);
  if (found !== null) return found === process.execPath ? selfCommand() : [found];
  const key = overrideKey(adapter);
  const override = env[key];
  if (override)
    throw new AgentctlError("agent-missing", `${key} names no program: ${override}`, {
      hint: "it must be an executable file",
    });
  const message = `${adapter.title} is not installed: no ${adapter.command} in PATH`;
  throw new AgentctlError("agent-missing", message, { hint: `${adapter.install}   (or set ${key})` });
}

/** By the package that its program belongs to, without running it; null: it does not say. */
export function installedVersion(adapter: Adapter, env: Environment): string | null {
  const found = findBinary(adapter, env);
  if (found === null || found === process.execPath) return null;
  let folder = dirname(pathBehind(found));
  for (let up = 0; up < packageDepth && folder !== "/"; up += 1, folder = dirname(folder)) {
    const version = versionIn(join(folder, "package.json"));
    if (version !== null) return version;
  }
  return null;
}

const packageDepth = 4;
const packageBytes = 1024 * 1024;

function pathBehind(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return path;
  }
}

function versionIn(path: string): string | null {
  try {
    const fields = fieldsOf(JSON.parse(withFile(path, (file) => readWhole(file, packageBytes)).toString("utf8")));
    return fields === null ? null : textIn(fields, "version");
  } catch (error) {
    if (error instanceof SyntaxError || errorCode(error) !== "") return null;
    throw error;
  }
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return false;
  }
}
