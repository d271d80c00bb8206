// What agentctl can and cannot see here: processes, stores, installed agents, tmux and git, its own notes.
import { accessSync, constants, statSync } from "node:fs";
import { adapters } from "../agents/registry.ts";
import { findBinary, findProgram, installedVersion } from "../control/agent-program.ts";
import { type Conflicts, conflictsOf } from "../control/conflicts/find-conflicts.ts";
import { agentctlHome, readNotes } from "../control/notes.ts";
import { deriveSessions } from "../core/derive.ts";
import type { Evidence } from "../core/evidence.ts";
import type { Problem } from "../core/problem.ts";
import type { SessionList } from "../core/session.ts";
import { failureText, isGone } from "../lib/errors.ts";
import type { Environment } from "../observe/homes.ts";
import { observe } from "../observe/observe.ts";
import { cacheProblems } from "../observe/record-cache.ts";
import { runCommand } from "../sys/spawn.ts";

export interface Health {
  evidence: Evidence;
  list: SessionList;
  agents: AgentHealth[];
  tools: Tool[];
  notes: NotesHealth;
  conflicts: Conflicts;
  problems: Problem[];
}

interface AgentHealth {
  agent: string;
  /** null: not installed. */
  binary: string | null;
  version: string | null;
  verified: readonly string[];
  /** Versions that are installed or recorded, and newer than every version that agentctl was tested with. */
  newer: string[];
}

interface Tool {
  name: "tmux" | "git";
  /** null: not installed. */
  path: string | null;
  version: string | null;
}

/** agentctl's own folder. */
export type NotesHealth =
  | { state: "none" }
  | { state: "readable"; home: string; count: number; isOpenToOthers: boolean; problems: Problem[] }
  | { state: "not-a-folder"; home: string }
  | { state: "unreadable"; home: string; message: string };

export async function checkHealth(env: Environment): Promise<Health> {
  const { evidence } = await observe({ adapters, env });
  const list = deriveSessions(evidence, adapters);
  return {
    evidence,
    list,
    agents: adapters
      .filter(({ command }) => command !== "agentctl")
      .map((adapter) => agentHealth(adapter, evidence, env)),
    tools: await Promise.all([toolHealth("tmux", "-V", env), toolHealth("git", "--version", env)]),
    notes: notesHealth(env),
    conflicts: await conflictsOf(list.sessions, env),
    problems: [...list.problems, ...cacheProblems(env)],
  };
}

function agentHealth(adapter: (typeof adapters)[number], { stores }: Evidence, env: Environment): AgentHealth {
  const recorded = stores
    .filter(({ agent }) => agent === adapter.agent)
    .flatMap(({ rows }) => rows)
    .flatMap(({ reading }) => (reading.ok ? (reading.value.facts.agentVersion ?? []) : []));
  const version = installedVersion(adapter, env);
  const newer = [...new Set([...recorded, ...(version === null ? [] : [version])])]
    .filter((each) => adapter.verified.every((known) => isNewer(each, known)))
    .sort((a, b) => (isNewer(a, b) ? 1 : -1));
  return { agent: adapter.agent, binary: findBinary(adapter, env), version, verified: adapter.verified, newer };
}

/** Compares number by number: "1.10.0" is newer than "1.9.3". A part that is no number counts as 0. */
function isNewer(a: string, b: string): boolean {
  const [left, right] = [a, b].map((version) => version.split(/[.+-]/).map((part) => Number.parseInt(part, 10) || 0));
  for (let index = 0; index < Math.max(left?.length ?? 0, right?.length ?? 0); index += 1) {
    const difference = (left?.[index] ?? 0) - (right?.[index] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return false;
}

const toolMs = 1_000;

async function toolHealth(name: Tool["name"], flag: string, env: Environment): Promise<Tool> {
  const path = findProgram(name, env);
  if (path === null) return { name, path, version: null };
  const { out } = await runCommand([path, flag], { cwd: "/", maxMs: toolMs });
  return { name, path, version: /\d[\w.]*/.exec(out)?.[0] ?? null };
}

function notesHealth(env: Environment): NotesHealth {
  const home = agentctlHome(env);
  try {
    const stat = statSync(home);
    if (!stat.isDirectory()) return { state: "not-a-folder", home };
    accessSync(home, constants.R_OK | constants.W_OK);
    const { notes, problems } = readNotes(env);
    return { state: "readable", home, count: notes.length, isOpenToOthers: (stat.mode & 0o077) !== 0, problems };
  } catch (error) {
    return isGone(error) ? { state: "none" } : { state: "unreadable", home, message: failureText(error) };
  }
}
