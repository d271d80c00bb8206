// Which data folders to look into: the default, what the environment says, what a person configured.
import { realpathSync } from "node:fs";
import { join } from "node:path";
import type { Adapter } from "../adapters/adapter.ts";
import { fieldsOf, textsIn } from "../adapters/fields.ts";
import type { Problem } from "../core/problem.ts";
import { errorCode, failureText, isGone } from "./failure.ts";
import { readWhole, withFile } from "./files.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Settings {
  homes: Readonly<Record<string, readonly string[]>>;
}

const settingsLimit = 1024 * 1024;

const settingsPath = (env: Environment): string =>
  join(env["XDG_CONFIG_HOME"] || join(env["HOME"] ?? "/", ".config"), "agentctl", "config.json");

export function readSettings(env: Environment): { settings: Settings; problems: Problem[] } {
  const path = settingsPath(env);
  const none: Settings = { homes: {} };
  const broken = (message: string) => ({
    settings: none,
    problems: [{ code: "config-unreadable" as const, agent: null, source: path, message }],
  });
  try {
    const value: unknown = withFile(path, (file) => JSON.parse(readWhole(file, settingsLimit).toString("utf8")));
    const fields = fieldsOf(value);
    if (fields === null) return broken("not a JSON object");
    const named = fieldsOf(fields["homes"]) ?? {};
    const homes = Object.fromEntries(Object.keys(named).map((agent) => [agent, textsIn(named, agent)]));
    return { settings: { homes }, problems: [] };
  } catch (error) {
    return isGone(error) ? { settings: none, problems: [] } : broken(failureText(error));
  }
}

/** The names of the homes of one agent, as the environment and the settings give them. */
export function homesOf(adapter: Adapter, env: Environment, settings: Settings): string[] {
  const own = adapter.home(definedOnly(env));
  const plain = adapter.home(env["HOME"] === undefined ? {} : { HOME: env["HOME"] });
  return [own, plain, ...(settings.homes[adapter.agent] ?? [])].filter((home) => home !== null);
}

/** A home is known by its real path, so that the same store reached through a link is not listed twice. */
export function realHome(home: string): string {
  try {
    return realpathSync(home);
  } catch (error) {
    // Not there, or not reachable: reading the store says so, under the name it was given.
    if (errorCode(error) === "") throw error;
    return home.replace(/\/+$/, "") || "/";
  }
}

const definedOnly = (env: Environment): Record<string, string> =>
  Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined));
