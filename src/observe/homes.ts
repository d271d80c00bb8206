// Finds the data folders of agents: the default one, the one that the environment names, and those of config.json.
import { lstatSync, readlinkSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Adapter } from "../agents/adapter.ts";
import { type Fields, fieldsOf, textIn } from "../agents/fields.ts";
import type { Problem, ProblemDetail } from "../core/problem.ts";
import { isGone, tryOr } from "../lib/errors.ts";
import { failureOf } from "./failure.ts";
import { readWhole } from "./files.ts";
import { hasShared, isShared, mayHang } from "./mounts.ts";
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

export const settingsPath = (env: Environment): string =>
  join(env["XDG_CONFIG_HOME"] || join(env["HOME"] ?? "/", ".config"), "agentctl", "config.json");

/** Deleting the cache changes no answer. */
export const cacheFolder = (env: Environment): string =>
  join(env["XDG_CACHE_HOME"] || join(env["HOME"] ?? "/", ".cache"), "agentctl");

/** Without an absolute path there is no place for a cache. */
export const wantsCache = (env: Environment): boolean =>
  !env["AGENTCTL_NO_CACHE"] && (env["XDG_CACHE_HOME"] || env["HOME"] || "").startsWith("/");

export interface ReadSettings {
  settings: Settings;
  problems: Problem[];
  /** All fields of the file; null: it cannot be read. */
  fields: Fields | null;
  exists: boolean;
}

export function readSettings(env: Environment): ReadSettings {
  const path = settingsPath(env);
  const problems: Problem[] = [];
  const report = (detail: ProblemDetail): void => {
    problems.push({ code: "config-unreadable", agent: null, source: path, detail });
  };
  const { fields, exists, detail = null } = readFields(path);
  if (detail !== null) report(detail);
  return { settings: settingsIn(fields ?? {}, env, report), problems, fields, exists };
}

function readFields(path: string): Pick<ReadSettings, "fields" | "exists"> & { detail?: ProblemDetail } {
  try {
    const text = withSettingsFile(path, (file) => readWhole(file, settingsLimit).toString("utf8"));
    const fields = fieldsOf(JSON.parse(text));
    return { fields, exists: true, ...(fields === null ? { detail: { code: "not-an-object" } } : {}) };
  } catch (error) {
    const isAbsent = isGone(error) && !isDanglingLink(path) && !isDanglingLink(dirname(path));
    return isAbsent ? { fields: {}, exists: false } : { fields: null, exists: true, detail: failureOf(error) };
  }
}

function settingsIn(fields: Fields, env: Environment, report: (detail: ProblemDetail) => void): Settings {
  const homes = checkedHomes(fields["homes"], env, report);
  const inside = fields["insideAgents"] ?? "guarded";
  if (inside !== "guarded" && inside !== "free")
    report({ code: "setting-invalid", setting: "insideAgents", expected: "inside-agents" });
  const folder = expanded(textIn(fields, "worktrees"), env);
  const worktrees = folder?.startsWith("/") === true ? folder : null;
  if (fields["worktrees"] !== undefined && worktrees === null)
    report({ code: "setting-invalid", setting: "worktrees", expected: "absolute-folder" });
  return { homes, insideAgents: inside === "free" ? "free" : "guarded", worktrees };
}

/** Settings behind a link whose target is missing, like an unmounted disk, are not known. */
const isDanglingLink = (path: string): boolean =>
  tryOr(false, () => lstatSync(path).isSymbolicLink() && statSync(path, { throwIfNoEntry: false }) === undefined);

const expanded = (folder: string | null, env: Environment): string | null =>
  folder?.replace(/^~(?=\/|$)/, env["HOME"] ?? "~") ?? null;

/** Reports values of a wrong type: the sessions of a home that is silently skipped would be invisible. */
function checkedHomes(value: unknown, env: Environment, report: (detail: ProblemDetail) => void): Settings["homes"] {
  const homes: Record<string, string[]> = {};
  const named = value === undefined ? {} : fieldsOf(value);
  if (named === null) report({ code: "setting-invalid", setting: "homes", expected: "homes" });
  for (const [agent, folders] of Object.entries(named ?? {})) {
    if (!Array.isArray(folders) || folders.some((folder) => typeof folder !== "string")) {
      report({ code: "setting-invalid", setting: `homes.${agent}`, expected: "folders" });
      continue;
    }
    const named = folders.map((folder) => expanded(String(folder), env) ?? "");
    for (const folder of named)
      if (!folder.startsWith("/")) report({ code: "setting-not-absolute", setting: `homes.${agent}`, path: folder });
    homes[agent] = named.filter((folder) => folder.startsWith("/"));
  }
  return homes;
}

export function homesOf(adapter: Adapter, env: Environment, settings: Settings): string[] {
  const own = adapter.home(pickedFrom(env, adapter.environment));
  const plain = adapter.home(env["HOME"] === undefined ? {} : { HOME: env["HOME"] });
  const named = [own, plain, ...(settings.homes[adapter.agent] ?? [])].filter((home) => home !== null);
  return named.map((home) => (home.startsWith("/") ? home : resolve(home)));
}

/** The real path of a home. Follows links one by one and stops where reading may hang. `links`: targets that were read before. */
export function realHome(home: string, mounts: string, links: Map<string, string | null> = new Map()): string {
  const rest = partsOf(home);
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
    // A loop of links: reading the store reports it.
    if (followed > mostLinks) return home;
    if (target.startsWith("/")) real = "";
    rest.unshift(...partsOf(target));
  }
  return real === "" ? "/" : real;
}

const mostLinks = 40;

const partsOf = (path: string): string[] => path.split("/").filter((part) => part !== "" && part !== ".");

/** The store, or a folder of it behind a link, is on a file system that processes of other hosts may write to. */
export function isSharedStore({ records, announcements }: Adapter, home: string, mounts: string): boolean {
  if (!hasShared(mounts)) return false;
  const links = new Map<string, string | null>();
  const sets = [...records, ...(announcements === undefined ? [] : [announcements])];
  const folders = ["", ...sets.map(({ folder }) => folder.replace(/\*.*$/, ""))];
  return folders.some((folder) => isShared(realHome(join(home, folder), mounts, links), mounts));
}

/** null: not a link, missing, or unreadable. Reading the store shows which. */
const linkTarget = (path: string): string | null =>
  tryOr(null, () => (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ? readlinkSync(path) : null));

const pickedFrom = (env: Environment, keys: readonly string[]): Record<string, string> =>
  Object.fromEntries(keys.flatMap((key) => (env[key] === undefined ? [] : [[key, env[key]]])));
