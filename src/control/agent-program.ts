// Finds an agent's program: by the variable AGENTCTL_<AGENT>_BIN, or else in PATH.
import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { delimiter, dirname, join, resolve } from "node:path";
import type { Adapter } from "../agents/adapter.ts";
import { parsedFields, textIn } from "../agents/fields.ts";
import { Failure } from "../core/failure.ts";
import { tryOr } from "../lib/errors.ts";
import { readWhole, withFile } from "../observe/files.ts";
import type { Environment } from "../observe/homes.ts";
import { selfCommand } from "../sys/self.ts";

const overrideKey = (adapter: Adapter): string => `AGENTCTL_${adapter.agent.toUpperCase().replaceAll("-", "_")}_BIN`;

/** null: not installed. The built-in demo agent is agentctl itself. */
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

export function commandOf(adapter: Adapter, env: Environment): string[] {
  const found = findBinary(adapter, env);
  if (found !== null) return found === process.execPath ? selfCommand() : [found];
  const variable = overrideKey(adapter);
  const path = env[variable];
  if (path) throw new Failure("not-a-program", { variable, path });
  const { title: agent, command, install } = adapter;
  throw new Failure("agent-not-installed", { agent, command, install, variable });
}

/** From the package.json of its program, without running it; null: not known. */
export function installedVersion(adapter: Adapter, env: Environment): string | null {
  const found = findBinary(adapter, env);
  if (found === null || found === process.execPath) return null;
  let folder = dirname(tryOr(found, () => realpathSync(found)));
  for (let up = 0; up < packageDepth && folder !== "/"; up += 1, folder = dirname(folder)) {
    const version = versionIn(join(folder, "package.json"));
    if (version !== null) return version;
  }
  return null;
}

const packageDepth = 4;
const packageBytes = 1024 * 1024;

function versionIn(path: string): string | null {
  const text = tryOr(null, () => withFile(path, (file) => readWhole(file, packageBytes)).toString("utf8"));
  return textIn(parsedFields(text) ?? {}, "version");
}

const isProgram = (path: string): boolean =>
  tryOr(false, () => {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  });
