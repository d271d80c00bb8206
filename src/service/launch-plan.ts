// From a request to the plan of a start. Every check that needs no look at sessions is here: the agent, the prompt, the directory,
// the permission, the hooks.
import { readdirSync, realpathSync, statSync } from "node:fs";
import { resolve } from "node:path";
import type { Adapter } from "../agents/adapter.ts";
import type { Permission } from "../agents/invocation.ts";
import { adapterNamed, adapters } from "../agents/registry.ts";
import { commandOf, findBinary } from "../control/agent-program.ts";
import { agentEnvironment, ownHome } from "../control/child-environment.ts";
import { type Hooks, supportFolder, wantsHooks } from "../control/notes.ts";
import type { LaunchPlan } from "../control/start-agent.ts";
import type { NewWorktree } from "../control/worktrees/add-worktree.ts";
import { Failure, UsageError } from "../core/failure.ts";
import type { OwnSetting } from "../core/permission.ts";
import { errorCode, failureText, isGone } from "../lib/errors.ts";
import { readWhole, withFile } from "../observe/files.ts";
import type { Environment } from "../observe/homes.ts";
import { placeOf } from "../observe/place.ts";
import { noAgentText } from "./agent-names.ts";
import type { Call } from "./call.ts";
import { launchDefaults } from "./config.ts";
import { withContext } from "./prompt-context.ts";

/** What a launch and a message to a stopped session have in common. */
export interface StartRequest {
  prompt: string;
  /** null: the model of the agent's own setting. */
  model: string | null;
  /** null: the permission that the session was launched with, else the agent's own setting. */
  permission: Permission | null;
  /** Arguments for the agent itself. */
  extra: readonly string[];
  maxTimeMs: number | null;
  /** null: one minute. */
  startTimeoutMs: number | null;
  /** Start even if another session is active in the same place. */
  share: boolean;
}

export interface LaunchRequest extends StartRequest {
  /** null: the only agent that is installed. */
  agent: string | null;
  cwd: string | null;
  name: string | null;
  group: string | null;
  labels: Record<string, string>;
  /** A file that the prompt names first. */
  spec: string | null;
  /** Files whose content goes with the prompt. */
  context: readonly string[];
  hooks: Hooks;
  worktree: WorktreeRequest | null;
}

export interface WorktreeRequest {
  /** null: a new branch with a name of agentctl's. */
  branch: string | null;
  base: string | null;
  setup: string | null;
  /** The name of its folder; null: made from the name of the session or the branch. */
  folder: string | null;
}

export function planLaunch(request: LaunchRequest, call: Call, tied: boolean): LaunchPlan {
  const adapter = request.agent === null ? onlyInstalled(call.env) : adapterFor(request.agent);
  const { prompt, spec } = withContext(request, call.cwd);
  const { name, group, labels, hooks } = request;
  const defaults = launchDefaults(adapter.agent, call.env);
  checkHooks(hooks, adapter);
  return planStart({ ...request, prompt, model: request.model ?? defaults.model }, call, {
    adapter,
    which: { kind: "new", session: null },
    inherited: defaults.permission,
    cwd: directoryAt(resolve(call.cwd, request.cwd ?? ".")),
    newWorktree: newWorktreeFor(request, adapter.agent),
    home: homeOf(adapter, call.env),
    tied,
    before: null,
    ref: null,
    note: { name, group, labels, spec, worktree: null, commit: null, launchedBy: null, hooks },
  });
}

function newWorktreeFor({ worktree, name }: LaunchRequest, agent: string): NewWorktree | null {
  if (worktree === null) return null;
  const { branch, base, setup, folder } = worktree;
  const named = folder === null ? (name ?? branch) : null;
  const folderName = named ?? folder ?? `${agent}-${crypto.randomUUID().slice(0, 8)}`;
  return { branch, base, setup, name: oneWord(folderName), namedBy: named === null ? "agentctl" : "person" };
}

const oneWord = (text: string): string =>
  text.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[-.]+|[-.]+$/g, "") || "session";

interface StartFacts
  extends Pick<LaunchPlan, "adapter" | "cwd" | "newWorktree" | "home" | "tied" | "before" | "ref" | "note"> {
  which: { kind: "new"; session: null } | { kind: "continue"; session: string };
  /** The permission of the session's launch, or the default of a new one; null: not known. */
  inherited: Permission | null;
}

const startTimeoutMs = 60_000;

/** Notices say what the agent may do, unless the request says it. */
export function planStart(request: StartRequest, call: Call, facts: StartFacts): LaunchPlan {
  const { env } = call;
  const { which, inherited, ...rest } = facts;
  const { adapter, cwd, home } = rest;
  const { prompt, model, extra } = request;
  checkPromptFits(prompt, adapter);
  const permission = request.permission ?? inherited;
  const shared = { cwd, home, supportFolder: supportFolder(env), at: Date.now(), model, permission, prompt, extra };
  const order = which.kind === "new" ? { ...shared, ...which } : { ...shared, ...which };
  // A session that begins in a server needs no program here.
  const command = adapter.server?.create === undefined ? commandOf(adapter, env) : [];
  // Throws for a value that the agent would take for an option, before anything is made for the launch.
  adapter.invocation.headless(order);
  const refusal = adapter.invocation.refuses?.(order, { isRoot: process.getuid?.() === 0, env }) ?? null;
  if (refusal !== null) throw new Failure("agent-refused", { agent: adapter.title, refusal });
  if (permission !== null) checkEffect(adapter, permission);
  const own = ownSettingOf(adapter, home, cwd);
  if (permission === null)
    call.onNotice({ code: "own-permission", facts: { agent: adapter.agent, own, hasArguments: extra.length > 0 } });
  else if (request.permission === null && permission === "bypass") {
    const { effect } = adapter.invocation.permissions[permission];
    const from = which.kind === "new" ? "config" : "launch";
    call.onNotice({ code: "inherited-permission", facts: { permission, from, effect } });
  }
  return {
    ...rest,
    ...order,
    caller: call.caller,
    command,
    env,
    maxTimeMs: request.maxTimeMs,
    startTimeoutMs: request.startTimeoutMs ?? startTimeoutMs,
    share: request.share,
    ownIsBypass: own.isBypass,
  };
}

function adapterFor(name: string): Adapter {
  const adapter = adapterNamed(name);
  if (adapter === null) throw new UsageError(noAgentText(name));
  return adapter;
}

/** The demo agent does not count: it must be named. */
function onlyInstalled(env: Environment): Adapter {
  const installed = adapters.filter((adapter) => adapter.command !== "agentctl" && findBinary(adapter, env) !== null);
  const [only] = installed;
  if (only !== undefined && installed.length === 1) return only;
  if (only === undefined) throw new Failure("no-agent-installed", {});
  const names = installed.map(({ agent }) => agent).join(", ");
  throw new UsageError(`which agent? ${names} are installed`, { hint: `agentctl launch ${only.agent} …` });
}

/** The system limits the length of an argument. */
export function checkPromptFits(prompt: string, adapter: Adapter): void {
  const bytes = Buffer.byteLength(prompt);
  if (adapter.invocation.promptBy === "stdin" || bytes < longestArgument) return;
  const message = `the prompt is ${bytes} bytes long; ${adapter.title} takes it as an argument, which may have ${longestArgument}`;
  throw new UsageError(message, { hint: "put the text into a file and let the prompt name it" });
}

/** MAX_ARG_STRLEN of Linux. */
const longestArgument = 128 * 1024;

function directoryAt(path: string): string {
  try {
    const real = realpathSync(path);
    if (statSync(real).isDirectory()) return real;
  } catch (error) {
    if (errorCode(error) === "ENOENT") throw new UsageError(`no such directory: ${path}`, { cause: error });
    throw new UsageError(`cannot work in ${path}: ${failureText(error)}`, { cause: error });
  }
  throw new UsageError(`not a directory: ${path}`);
}

function homeOf(adapter: Adapter, env: Environment): string {
  const home = ownHome(adapter, agentEnvironment(env, adapter, null));
  if (home === null) throw new Failure("home-unset", { agent: adapter.title });
  return home;
}

/** Throws if a file of this host makes the permission void. */
export function checkEffect(
  { title, invocation }: Pick<Adapter, "title" | "invocation">,
  permission: Permission,
): void {
  const { folders, name } = invocation.permissions[permission].voidedBy ?? { folders: [], name: /^/ };
  for (const folder of folders) {
    const found = namesIn(folder).find((each) => name.test(each));
    if (found !== undefined)
      throw new Failure("permission-void", { agent: title, permission, policy: `${folder}/${found}` });
  }
}

/** The agent cannot read a folder that we cannot read. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (isGone(error) || ["ENOTDIR", "EACCES"].includes(errorCode(error))) return [];
    throw error;
  }
}

/** What the agent may do without --permission. A setting that cannot be read may allow everything. */
export function ownSettingOf(adapter: Adapter, home: string, cwd: string): OwnSetting {
  const { files, judge } = adapter.invocation.ownSetting;
  const places = [...new Set([cwd, placeOf(cwd) ?? cwd])];
  const texts: (string | null)[] = [];
  for (const path of files(home, cwd)) {
    try {
      texts.push(withFile(path, (file) => readWhole(file, settingLimit).toString("utf8")));
    } catch (error) {
      if (!isGone(error) && errorCode(error) !== "ENOTDIR")
        return { mode: null, effect: null, isBypass: true, unread: { path, detail: failureText(error) } };
      texts.push(null);
    }
  }
  return judge(texts, places);
}

const settingLimit = 16 * 1024 * 1024;

/** Hooks need a process of ours that sees the agent exit. */
export function checkHooks(hooks: Hooks, { title, server }: Adapter): void {
  if (server?.create === undefined || !wantsHooks(hooks)) return;
  throw new Failure("hooks-not-supported", { agent: title });
}
