// What launch and run have in common: flags, the agent, the place, the permission, and the request that comes of them.
import { readdirSync, realpathSync, statSync } from "node:fs";
import { resolve } from "node:path";
import type { Adapter } from "../adapters/adapter.ts";
import { type Order, type OwnSetting, type Permission, type Place, permissions } from "../adapters/invocation.ts";
import { adapterNamed, adapters } from "../adapters/registry.ts";
import { commandOf, findBinary } from "../control/binary.ts";
import { agentEnvironment, ownHome } from "../control/environment.ts";
import type { Launched } from "../control/launch.ts";
import { type Hooks, supportFolder, wantsHooks } from "../control/notes.ts";
import type { OwnWorktree } from "../control/start-in-worktree.ts";
import type { StartRequest } from "../control/start-session.ts";
import { AgentctlError } from "../core/problem.ts";
import type { Session } from "../core/session.ts";
import { oneLine } from "../lib/width.ts";
import { errorCode, failureText, isGone } from "../observe/failure.ts";
import { readWhole, withFile } from "../observe/files.ts";
import { placeOf } from "../observe/place.ts";
import { type Arguments, type FlagSpec, parseDuration, usage } from "./arguments.ts";
import type { Context } from "./command.ts";
import { branchMeant, checkPromptFits, noPrompt, promptFlags, readPrompt } from "./prompt.ts";
import { contextFlags, withContext } from "./prompt-context.ts";

export const orderFlags: readonly FlagSpec[] = [
  ...promptFlags,
  ...contextFlags,
  { flag: "--cwd", value: "DIR", help: "where it works (default: here)" },
  { flag: "--model", value: "M", help: "the agent's own name of a model" },
  { flag: "--permission", value: "P", help: "read, edit or bypass (default: the agent's own setting)" },
  { flag: "--name", value: "N", help: "a name for this session, to refer to it by" },
  { flag: "--group", value: "G", help: "a name that several sessions share" },
  { flag: "--label", value: "k=v", repeated: true, help: "anything you want to find it by" },
  {
    flag: "--worktree",
    value: "BRANCH",
    optional: true,
    help: "in a git worktree of its own (default: on a new branch)",
  },
  { flag: "--base", value: "REF", help: "what its new branch begins at (default: HEAD)" },
  { flag: "--setup", value: "CMD", help: "a shell command that makes the new worktree ready" },
  { flag: "--max-time", value: "T", help: "end it after so long (90s, 10m, 2h)" },
  { flag: "--on-start", value: "CMD", help: "run this when the session's id is known" },
  { flag: "--on-exit", value: "CMD", help: "run this when the agent has ended" },
  { flag: "--share", help: "begin although another session is busy in the same place" },
  { flag: "--start-timeout", value: "T", help: "how long it may take to begin its session (default: 60s)" },
  { flag: "--json", help: "print JSON" },
];

export const sweepFlags: readonly FlagSpec[] = [
  { flag: "--agent", value: "A[=MODEL]", repeated: true, help: "a session of this agent, each in its own worktree" },
  { flag: "--matrix", value: "FILE", help: "sessions by a YAML file; arrays in it multiply out" },
  { flag: "--max-parallel", value: "N", help: "not more than so many at once; waits until the last one has begun" },
  { flag: "--yes", short: "-y", help: "more than 64 without asking" },
];

export const orderNotes = [
  "AGENT is one of those that `agentctl adapters` shows; it may be left out where only one is installed.",
  "The prompt is TEXT, -p TEXT, the content of -F FILE, or - for standard input. What stands behind -- goes to the agent.",
  "Permission: read looks and changes nothing, edit changes files of its directory, bypass does everything unasked.",
  "The agent gets your environment, without what would make it a part of the session that you call from.",
  "A hook is run by sh, in the session's directory, whatever has become of this command, for five minutes at most.",
  "It finds AGENTCTL_SESSION_ID, _AGENT, _CWD, _GROUP, _NAME, _MODEL, _BRANCH, _LAUNCH_ID, _EXIT_STATUS and _OUTCOME",
  "in its environment; agentctl status says how it went.",
].join("\n");

export function requestOf(args: Arguments, context: Context, command: string, tied: boolean): StartRequest {
  const { adapter, words } = agentOf(args, context, command);
  const { prompt, spec } = withContext(readPrompt(args, words, command), args, context);
  const note = {
    name: nameIn(args, "--name", command),
    group: nameIn(args, "--group", command),
    labels: labelsOf(args, command),
    spec,
    worktree: null,
    commit: null,
    hooks: hooksOf(args, adapter, command),
  };
  return startRequest(args, context, command, {
    adapter,
    which: { kind: "new", session: null },
    prompt,
    permission: permissionOf(args.one("--permission"), command),
    inherited: null,
    cwd: directoryOf(args.one("--cwd"), context),
    home: homeOf(adapter, context),
    tied,
    before: null,
    ref: null,
    note,
  });
}

export const startJson = (
  launched: Launched,
  { adapter, cwd, note, order }: StartRequest,
  now: { ref: string; session: Session | null } | null,
) => ({
  id: launched.id,
  ref: now?.ref ?? launched.id,
  agent: adapter.agent,
  launch: launched.launch,
  process: now?.session?.processes[0]?.identity ?? null,
  cwd: now?.session?.cwd ?? cwd,
  group: note.group,
  permission: order.permission,
});

/** null: no worktree is wanted. */
export function worktreeOf(args: Arguments, agent: string, command: string): OwnWorktree | null {
  const [base, setup] = [args.one("--base"), args.one("--setup")];
  if (!args.has("--worktree")) {
    for (const flag of ["--base", "--setup"]) if (args.has(flag)) throw usage(`${flag} goes with --worktree`, command);
    return null;
  }
  const branch = args.one("--worktree") || null;
  const named = args.one("--name") ?? branch;
  const name = folderName(named ?? `${agent}-${crypto.randomUUID().slice(0, 8)}`);
  return { branch, base, setup, name, namedBy: named === null ? "agentctl" : "person" };
}

/** One word for a folder. */
export const folderName = (text: string): string =>
  text.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[-.]+|[-.]+$/g, "") || "session";

interface Beginning extends Pick<StartRequest, "adapter" | "cwd" | "home" | "tied" | "before" | "ref" | "note"> {
  which: { kind: "new"; session: null } | { kind: "continue"; session: string };
  prompt: string;
  permission: Permission | null;
  /** What the session was launched with; null: nobody knows, or it is new. */
  inherited: Permission | null;
}

/** What launch, run and send have in common; says on stderr what the agent may do, where nobody said it now. */
export function startRequest(args: Arguments, context: Context, command: string, wanted: Beginning): StartRequest {
  const { adapter, which, prompt, inherited, ...rest } = wanted;
  checkPromptFits(prompt, adapter);
  const permission = wanted.permission ?? inherited;
  const facts = { model: args.one("--model"), permission, prompt, extra: args.rest };
  const order = which.kind === "new" ? { ...facts, ...which } : { ...facts, ...which };
  // What begins in a host needs no program of ours.
  const program = adapter.host?.create === undefined ? commandOf(adapter, context.env) : [];
  const isRoot = process.getuid?.() === 0;
  checkWords(adapter, order, { home: rest.home, own: supportFolder(context.env), cwd: rest.cwd, at: 0 });
  const refusal = adapter.invocation.refuses(order, { isRoot, env: context.env });
  if (refusal !== null) throw new AgentctlError("agent-missing", refusal);
  if (permission !== null) checkEffect(adapter, permission);
  const own = ownSettingOf(adapter, rest.home, rest.cwd);
  const unless = args.rest.length > 0 ? " (unless what you hand on says otherwise)" : "";
  const talk = (text: string): void => context.err(`agentctl: ${oneLine(text)}\n`);
  if (permission === null) talk(`${adapter.agent}: ${own.meaning}${unless}`);
  else if (wanted.permission === null)
    talk(`--permission ${permission}, as it was launched: ${adapter.invocation.permissions[permission].meaning}`);
  const duration = (flag: string, text: string): number => positive(parseDuration(text, command), flag, command);
  const maxTime = args.one("--max-time");
  return {
    ...rest,
    adapter,
    command: program,
    order,
    env: context.env,
    maxTimeMs: maxTime === null ? null : duration("--max-time", maxTime),
    startTimeoutMs: duration("--start-timeout", args.one("--start-timeout") ?? "60s"),
    share: args.has("--share"),
    ownIsBypass: own.isBypass,
    warn: talk,
  };
}

/** Throws for a value that the agent would take for an option, before anything is made for the launch. */
function checkWords({ invocation }: Adapter, order: Order, place: Place): void {
  invocation.headless(order, place);
}

function positive(ms: number, flag: string, command: string): number {
  if (ms === 0) throw usage(`${flag} must be more than nothing`, command);
  return ms;
}

/** With one word that word is the prompt, unless the prompt comes from elsewhere. */
function agentOf(args: Arguments, context: Context, command: string): { adapter: Adapter; words: string[] } {
  const [first, ...others] = args.words;
  const named = first === undefined ? null : adapterNamed(first);
  const hasPrompt = args.one("--prompt") !== null || args.one("--file") !== null;
  if (named !== null && (others.length > 0 || hasPrompt)) return { adapter: named, words: others };
  if (first !== undefined && named === null && (others.length > 0 || hasPrompt))
    throw usage(noAgentText(first), command, branchMeant(args, [first]));
  if (named !== null) throw usage(`${command} ${first} needs a prompt`, command);
  if (first === undefined && !hasPrompt) throw noPrompt(command);
  return { adapter: onlyInstalled(context, command), words: args.words };
}

export const noAgentText = (name: string): string =>
  `no agent is called ${name} (known: ${adapters.map(({ agent }) => agent).join(", ")})`;

/** The built-in one does not count: nobody means it by not naming it. */
function onlyInstalled(context: Context, command: string): Adapter {
  const installed = adapters.filter(
    (adapter) => adapter.command !== "agentctl" && findBinary(adapter, context.env) !== null,
  );
  const [only] = installed;
  if (only !== undefined && installed.length === 1) return only;
  if (only === undefined)
    throw new AgentctlError("agent-missing", "no agent is installed", {
      hint: "agentctl adapters says how to install one",
    });
  const names = installed.map(({ agent }) => agent).join(", ");
  throw usage(`which agent? ${names} are installed: agentctl ${command} ${only.agent} …`, command);
}

function directoryOf(asked: string | null, context: Context): string {
  const path = resolve(context.cwd, asked ?? ".");
  try {
    const real = realpathSync(path);
    if (statSync(real).isDirectory()) return real;
  } catch (error) {
    if (errorCode(error) === "ENOENT") throw new AgentctlError("usage", `no such directory: ${path}`, { cause: error });
    throw new AgentctlError("usage", `cannot work in ${path}: ${failureText(error)}`, { cause: error });
  }
  throw new AgentctlError("usage", `not a directory: ${path}`);
}

export function permissionOf(text: string | null, command: string): Permission | null {
  if (text === null) return null;
  const known = permissions.find((each) => each === text);
  if (known === undefined) throw usage(`no such permission: ${text} (${permissions.join(", ")})`, command);
  return known;
}

function homeOf(adapter: Adapter, { env }: Context): string {
  const home = ownHome(adapter, agentEnvironment(env, adapter, null));
  if (home === null) throw new AgentctlError("failed", `${adapter.title} has no home without HOME`);
  return home;
}

export function checkEffect(
  { title, invocation }: Pick<Adapter, "title" | "invocation">,
  permission: Permission,
): void {
  const { folders, name, why } = invocation.permissions[permission].voidedBy ?? { folders: [], name: /^/, why: "" };
  for (const folder of folders) {
    const [found] = namesIn(folder).filter((each) => name.test(each));
    if (found === undefined) continue;
    const message = `${title} cannot be held to --permission ${permission} here: ${why} (${folder}/${found})`;
    throw new AgentctlError("agent-missing", message);
  }
}

/** What we may not read, the agent may not read either. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (isGone(error) || ["ENOTDIR", "EACCES"].includes(errorCode(error))) return [];
    throw error;
  }
}

/** What the agent may do if nobody says anything else. What cannot be read may allow everything. */
export function ownSettingOf(adapter: Adapter, home: string, cwd: string): OwnSetting {
  const { files, judge } = adapter.invocation.ownSetting;
  const places = [...new Set([cwd, placeOf(cwd) ?? cwd])];
  const texts: (string | null)[] = [];
  for (const path of files(home, cwd)) {
    try {
      texts.push(withFile(path, (file) => readWhole(file, settingLimit).toString("utf8")));
    } catch (error) {
      if (!isGone(error) && errorCode(error) !== "ENOTDIR")
        return { meaning: `its own setting, which cannot be read: ${path}: ${failureText(error)}`, isBypass: true };
      texts.push(null);
    }
  }
  return judge(texts, places);
}

const settingLimit = 16 * 1024 * 1024;

const longestName = 200;

function nameIn(args: Arguments, flag: string, command: string): string | null {
  const name = args.one(flag);
  if (name === null) return null;
  if (name.length > longestName) throw usage(`${flag} may have ${longestName} characters at most`, command);
  if (!/^[\p{L}\p{N} ._/-]*$/u.test(name)) throw usage(`${flag} takes letters, digits, spaces and . _ / -`, command);
  if (!/^[\p{L}\p{N}]/u.test(name)) throw usage(`${flag} must begin with a letter or a digit`, command);
  return name;
}

function hooksOf(args: Arguments, adapter: Adapter, command: string): Hooks {
  const hooks = { start: hookIn(args, "--on-start", command), exit: hookIn(args, "--on-exit", command) };
  checkHooks(hooks, adapter);
  return hooks;
}

/** Hooks need a holder. */
export function checkHooks(hooks: Hooks, { title, host }: Adapter): void {
  if (host?.create === undefined || !wantsHooks(hooks)) return;
  const message = `${title} begins its sessions in a host: nobody of ours is there when they end, to run a hook`;
  throw new AgentctlError("refused", message, { hint: "agentctl wait <ref> waits for the end" });
}

function hookIn(args: Arguments, flag: string, command: string): string | null {
  const hook = args.one(flag);
  if (hook !== null && hook.trim() === "") throw usage(`${flag} needs a command`, command);
  return hook;
}

function labelsOf(args: Arguments, command: string): Record<string, string> {
  return Object.fromEntries(
    args.all("--label").map((label) => {
      const [, key, value] = /^([^=\s]+)=([\s\S]*)$/.exec(label) ?? [];
      if (key === undefined || value === undefined) throw usage(`not a label: ${label} (like key=value)`, command);
      return [key, value];
    }),
  );
}
