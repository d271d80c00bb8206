// Which data folders to look into: the default, what the environment says, what a person configured.
import { lstatSync, readlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Adapter } from "../adapters/adapter.ts";
import { fieldsOf, textIn } from "../adapters/fields.ts";
import type { Problem } from "../core/problem.ts";
import { errorCode, failureText, isGone } from "./failure.ts";
import { readWhole } from "./files.ts";
import { mayHang } from "./mounts.ts";
import { withSettingsFile } from "./own-files.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Settings {
  homes: Readonly<Record<string, readonly string[]>>;
  /** "free": an agent that calls agentctl may do what a person may. */
  insideAgents: "guarded" | "free";
  /** Where worktrees are made, a folder per repository; null: beside the repository. */
  worktrees: string | null;
}

const settingsLimit = 1024 * 1024;

const settingsPath = (env: Environment): string =>
  join(env["XDG_CONFIG_HOME"] || join(env["HOME"] ?? "/", ".config"), "agentctl", "config.json");

/** Deleting it changes no answer. */
export const cacheFolder = (env: Environment): string =>
  join(env["XDG_CACHE_HOME"] || join(env["HOME"] ?? "/", ".cache"), "agentctl");

/** Without a home of its own it has no place. */
export const wantsCache = (env: Environment): boolean =>
  !env["AGENTCTL_NO_CACHE"] && (env["XDG_CACHE_HOME"] || env["HOME"] || "").startsWith("/");

export function readSettings(env: Environment): { settings: Settings; problems: Problem[] } {
  const path = settingsPath(env);
  const none: Settings = { homes: {}, insideAgents: "guarded", worktrees: null };
  const problemOf = (message: string): Problem => ({ code: "config-unreadable", agent: null, source: path, message });
  const broken = (message: string) => ({ settings: none, problems: [problemOf(message)] });
  try {
    const value: unknown = withSettingsFile(path, (file) =>
      JSON.parse(readWhole(file, settingsLimit).toString("utf8")),
    );
    const fields = fieldsOf(value);
    if (fields === null) return broken("not a JSON object");
    const { homes, problems } = checkedHomes(fields["homes"], env, path);
    const inside = fields["insideAgents"] ?? "guarded";
    if (inside !== "guarded" && inside !== "free")
      problems.push(problemOf('"insideAgents" must be "guarded" or "free"'));
    const worktrees = expanded(textIn(fields, "worktrees"), env);
    if (fields["worktrees"] !== undefined && worktrees?.startsWith("/") !== true)
      problems.push(problemOf('"worktrees" must be the absolute path of a folder'));
    return {
      settings: {
        homes,
        insideAgents: inside === "free" ? "free" : "guarded",
        worktrees: worktrees?.startsWith("/") === true ? worktrees : null,
      },
      problems,
    };
  } catch (error) {
    return isGone(error) ? { settings: none, problems: [] } : broken(failureText(error));
  }
}

const expanded = (folder: string | null, env: Environment): string | null =>
  folder?.replace(/^~(?=\/|$)/, env["HOME"] ?? "~") ?? null;

/** Wrong types are said, not passed over: a home that is silently not looked into makes its sessions invisible. */
function checkedHomes(
  value: unknown,
  env: Environment,
  source: string,
): { homes: Settings["homes"]; problems: Problem[] } {
  const homes: Record<string, string[]> = {};
  const problems: Problem[] = [];
  const wrong = (message: string) => problems.push({ code: "config-unreadable", agent: null, source, message });
  const named = value === undefined ? {} : fieldsOf(value);
  if (named === null) wrong('"homes" must be an object: {"homes": {"<agent>": ["<folder>"]}}');
  for (const [agent, folders] of Object.entries(named ?? {})) {
    if (!Array.isArray(folders) || folders.some((folder) => typeof folder !== "string")) {
      wrong(`"homes"."${agent}" must be a list of folders`);
      continue;
    }
    const named = folders.map((folder) => expanded(String(folder), env) ?? "");
    for (const folder of named)
      if (!folder.startsWith("/")) wrong(`"homes"."${agent}": not an absolute path: "${folder}"`);
    homes[agent] = named.filter((folder) => folder.startsWith("/"));
  }
  return { homes, problems };
}

/** The names of the homes of one agent, as the environment and the settings give them. */
export function homesOf(adapter: Adapter, env: Environment, settings: Settings): string[] {
  const own = adapter.home(pickedFrom(env, adapter.environment));
  const plain = adapter.home(env["HOME"] === undefined ? {} : { HOME: env["HOME"] });
  const named = [own, plain, ...(settings.homes[adapter.agent] ?? [])].filter((home) => home !== null);
  return named.map((home) => (home.startsWith("/") ? home : resolve(home)));
}

/**
 * A home is known by its real path, so that the same store reached through a link is not listed twice. Links are followed one by
 * one: asking about anything on a server that does not answer would hang, so there the name stays as it is. `links`: what was
 * found out of paths before, in the same look.
 */
export function realHome(home: string, mounts: string, links: Map<string, string | null> = new Map()): string {
  const rest = home.split("/").filter((part) => part !== "" && part !== ".");
  let real = "";
  for (let followed = 0; rest.length > 0; ) {
    const next = rest.shift() ?? "";
    const path = next === ".." ? real.slice(0, Math.max(0, real.lastIndexOf("/"))) : `${real}/${next}`;
    const known = links.get(path);
    const target = known !== undefined ? known : next === ".." || mayHang(path, mounts) ? null : linkTarget(path);
    links.set(path, target);
    if (target === null) {
      real = path;
      continue;
    }
    followed += 1;
    // A loop: reading the store says so, under the name it was given.
    if (followed > mostLinks) return home;
    if (target.startsWith("/")) real = "";
    rest.unshift(...target.split("/").filter((part) => part !== "" && part !== "."));
  }
  return real === "" ? "/" : real;
}

const mostLinks = 40;

function linkTarget(path: string): string | null {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true ? readlinkSync(path) : null;
  } catch (error) {
    // Not a link, not there, or not to be seen: what it is shows when the store is read.
    if (errorCode(error) === "") throw error;
    return null;
  }
}

function pickedFrom(env: Environment, keys: readonly string[]): Record<string, string> {
  const picked: Record<string, string> = {};
  for (const key of keys) if (env[key] !== undefined) picked[key] = env[key];
  return picked;
}
