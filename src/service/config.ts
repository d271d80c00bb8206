// A person's settings: the value of each, where it comes from, and what is wrong with them.
import { type Fields, fieldsOf, textIn } from "../agents/fields.ts";
import { type Permission, permissions } from "../agents/invocation.ts";
import { adapterNamed, adapters } from "../agents/registry.ts";
import { agentctlHome } from "../control/notes.ts";
import { Failure } from "../core/failure.ts";
import type { ProblemDetail, SettingShape } from "../core/problem.ts";
import { cacheFolder, type Environment, readSettings, settingsPath } from "../observe/homes.ts";

export interface Setting {
  key: string;
  /** null: not set. */
  value: string | null;
  from: "default" | "config" | "environment";
}

export interface Config {
  path: string;
  exists: boolean;
  settings: Setting[];
  faults: ProblemDetail[];
}

/** The values that launch and run use if the command line has none. */
export interface LaunchDefaults {
  permission: Permission | null;
  model: string | null;
}

const knownSettings = ["defaults", "homes", "insideAgents", "worktrees"];

export function readConfig(env: Environment): Config {
  const { settings, problems, fields, exists } = readSettings(env);
  const { general, byAgent, faults } = parseDefaults(fields ?? {});
  const set = (key: string, value: string | null): Setting => ({
    key,
    value,
    from: value === null ? "default" : "config",
  });
  const variable = (key: string, fallback: string): Setting =>
    env[key] ? { key, value: env[key], from: "environment" } : { key, value: fallback, from: "default" };
  const programs = adapters.map(({ agent }) => `AGENTCTL_${agent.toUpperCase().replaceAll("-", "_")}_BIN`);
  return {
    path: settingsPath(env),
    exists,
    settings: [
      set("defaults.permission", general),
      ...[...byAgent].flatMap(([agent, { permission, model }]) => [
        ...(permission === null ? [] : [set(`defaults.${agent}.permission`, permission)]),
        ...(model === null ? [] : [set(`defaults.${agent}.model`, model)]),
      ]),
      ...Object.entries(settings.homes).map(([agent, homes]) => set(`homes.${agent}`, homes.join(", "))),
      {
        key: "insideAgents",
        value: settings.insideAgents,
        from: "insideAgents" in (fields ?? {}) ? "config" : "default",
      },
      set("worktrees", settings.worktrees),
      variable("AGENTCTL_HOME", agentctlHome(env)),
      { ...variable("XDG_CACHE_HOME", cacheFolder(env)), value: cacheFolder(env) },
      ...programs.flatMap((key) => (env[key] ? [variable(key, "")] : [])),
    ],
    faults: [...problems.map(({ detail }) => detail), ...faults, ...unknownSettings(fields ?? {}, knownSettings)],
  };
}

/** Throws where the settings cannot be used: a launch must not get more than the permission that a person has set. */
export function launchDefaults(agent: string, env: Environment): LaunchDefaults {
  const { fields, problems } = readSettings(env);
  const { general, byAgent, faults } = parseDefaults(fields ?? {});
  const [first, ...more] = fields === null ? problems.map(({ detail }) => detail) : faults;
  if (first !== undefined) throw new Failure("config-invalid", { path: settingsPath(env), details: [first, ...more] });
  const own = byAgent.get(agent);
  return { permission: own?.permission ?? general, model: own?.model ?? null };
}

interface Defaults {
  general: Permission | null;
  byAgent: Map<string, LaunchDefaults>;
  faults: ProblemDetail[];
}

function parseDefaults(fields: Fields): Defaults {
  const parsed: Defaults = { general: null, byAgent: new Map(), faults: [] };
  const { faults } = parsed;
  const invalid = (setting: string, expected: SettingShape) =>
    faults.push({ code: "setting-invalid", setting, expected });
  const given = fieldsOf(fields["defaults"] ?? {});
  if (given === null) {
    invalid("defaults", "defaults");
    return parsed;
  }
  const permissionIn = (from: Fields, key: string): Permission | null => {
    const known = permissions.find((each) => each === from["permission"]) ?? null;
    if (known === null && from["permission"] !== undefined) invalid(`${key}.permission`, "permission");
    return known;
  };
  parsed.general = permissionIn(given, "defaults");
  for (const [name, value] of Object.entries(given)) {
    if (name === "permission") continue;
    const [key, adapter, own] = [`defaults.${name}`, adapterNamed(name), fieldsOf(value)];
    if (adapter === null) faults.push({ code: "setting-of-unknown-agent", setting: key, agent: name });
    else if (own === null) invalid(key, "agent-defaults");
    else {
      const model = textIn(own, "model");
      if (model === null && own["model"] !== undefined) invalid(`${key}.model`, "text");
      faults.push(...unknownSettings(own, ["model", "permission"], `${key}.`));
      parsed.byAgent.set(adapter.agent, { permission: permissionIn(own, key), model });
    }
  }
  return parsed;
}

const unknownSettings = (fields: Fields, known: readonly string[], prefix = ""): ProblemDetail[] =>
  Object.keys(fields)
    .filter((key) => !known.includes(key))
    .map((key) => ({ code: "setting-unknown", setting: prefix + key }));
