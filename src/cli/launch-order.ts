// Makes a request from the arguments that launch and run have in common.
import type { Permission } from "../agents/invocation.ts";
import { agentNamed, agentNames, noAgentText, permissionNames } from "../service/agent-names.ts";
import type { LaunchRequest, StartRequest, WorktreeRequest } from "../service/launch-plan.ts";
import { type Arguments, checkName, closest, type FlagSpec, labelsOf, parseDuration, usage } from "./arguments.ts";
import { branchMeant, noPrompt, promptFlags, readPrompt } from "./prompt.ts";

export const orderFlags: readonly FlagSpec[] = [
  ...promptFlags,
  { flag: "--spec", value: "FILE", help: "specification file; the prompt begins with its path" },
  { flag: "--context", value: "FILE", repeated: true, help: "text file; its content is added to the prompt" },
  { flag: "--cwd", value: "DIR", help: "directory of the session (default: here)" },
  { flag: "--model", value: "NAME", help: "model, as the agent names it" },
  {
    flag: "--permission",
    value: "P",
    help: "read, edit or bypass (default: from config.json, or the agent's own setting)",
  },
  { flag: "--name", value: "NAME", help: "name of the session, usable as a reference" },
  { flag: "--group", value: "NAME", help: "group of the session" },
  { flag: "--label", value: "KEY=VALUE", repeated: true, help: "label to find the session by" },
  { flag: "--worktree", value: "BRANCH", optional: true, help: "own git worktree (default: on a new branch)" },
  { flag: "--base", value: "REF", help: "start of the worktree's new branch (default: HEAD)" },
  { flag: "--setup", value: "CMD", help: "shell command that prepares the new worktree" },
  { flag: "--max-time", value: "T", help: "time limit after which the session is stopped (90s, 10m, 2h)" },
  { flag: "--on-start", value: "CMD", help: "shell command to run when the session id is known" },
  { flag: "--on-exit", value: "CMD", help: "shell command to run when the agent has exited" },
  { flag: "--share", help: "start even if another session is active in the directory" },
  { flag: "--start-timeout", value: "T", help: "time limit for the session to start (default: 60s)" },
  { flag: "--json", help: "JSON output" },
];

export const sweepFlags: readonly FlagSpec[] = [
  {
    flag: "--agent",
    value: "A[=MODEL]",
    repeated: true,
    help: "start a session of this agent in its own worktree; repeatable",
  },
  { flag: "--matrix", value: "FILE", help: "YAML file; one session per combination" },
  {
    flag: "--max-parallel",
    value: "N",
    help: "maximum number of sessions at the same time; waits until the last one has started",
  },
  { flag: "--yes", short: "-y", help: "do not ask before starting more than 64 sessions" },
];

export const orderNotes = [
  "AGENT is a name that `agentctl adapters` shows. It may be left out if only one agent is installed.",
  "The prompt is TEXT, -p TEXT, the content of -F FILE, or - for standard input. Arguments after -- go to the agent.",
  "Permission: read changes nothing, edit changes files in its directory, bypass does everything without asking.",
  "The agent gets your environment, except variables that would make it part of the calling session.",
  "--on-start and --on-exit set hooks. sh runs a hook in the session's directory, even after this command exits, for at most",
  "five minutes. The hook gets the variables AGENTCTL_SESSION_ID, _AGENT, _CWD, _GROUP, _NAME, _MODEL, _BRANCH,",
  "_LAUNCH_ID, _EXIT_STATUS, _OUTCOME and _LATE. agentctl status shows the result of the hook.",
].join("\n");

export function launchRequestOf(args: Arguments, command: string): LaunchRequest {
  const { agent, words } = agentIn(args, command);
  return {
    ...startRequestOf(args, readPrompt(args, words, command), command),
    agent,
    cwd: args.one("--cwd"),
    name: nameIn(args, "--name", command),
    group: nameIn(args, "--group", command),
    labels: Object.fromEntries(labelsOf(args, command)),
    spec: args.one("--spec"),
    context: args.all("--context"),
    hooks: { start: hookIn(args, "--on-start", command), exit: hookIn(args, "--on-exit", command) },
    worktree: worktreeIn(args, command),
  };
}

export function startRequestOf(args: Arguments, prompt: string, command: string): StartRequest {
  return {
    prompt,
    model: args.one("--model"),
    permission: permissionIn(args, command),
    extra: args.rest,
    maxTimeMs: durationIn(args, "--max-time", command),
    startTimeoutMs: durationIn(args, "--start-timeout", command),
    share: args.has("--share"),
  };
}

/** A single word is the prompt, unless the prompt comes from elsewhere. */
function agentIn(args: Arguments, command: string): { agent: string | null; words: string[] } {
  const [first, ...others] = args.words;
  const agent = first === undefined ? null : agentNamed(first);
  const hasPrompt = args.one("--prompt") !== null || args.one("--file") !== null;
  if (agent !== null && (others.length > 0 || hasPrompt)) return { agent, words: others };
  if (first !== undefined && agent === null && (others.length > 0 || hasPrompt))
    throw usage(noAgentText(first), command, branchMeant(args, [first]) ?? closest(first, ["claude", ...agentNames]));
  if (agent !== null) throw usage(`${command} ${first} needs a prompt`, command);
  if (first === undefined && !hasPrompt) throw noPrompt(command);
  return { agent: null, words: args.words };
}

function worktreeIn(args: Arguments, command: string): WorktreeRequest | null {
  const [base, setup] = [args.one("--base"), args.one("--setup")];
  if (args.has("--worktree")) return { branch: args.one("--worktree") || null, base, setup, folder: null };
  for (const flag of ["--base", "--setup"]) if (args.has(flag)) throw usage(`${flag} goes with --worktree`, command);
  return null;
}

function permissionIn(args: Arguments, command: string): Permission | null {
  const text = args.one("--permission");
  const known = permissionNames.find((each) => each === text);
  if (text === null || known !== undefined) return known ?? null;
  throw usage(`no such permission: ${text} (${permissionNames.join(", ")})`, command);
}

function durationIn(args: Arguments, flag: string, command: string): number | null {
  const text = args.one(flag);
  const ms = text === null ? null : parseDuration(text, command);
  if (ms === 0) throw usage(`${flag} must be greater than 0`, command);
  return ms;
}

function nameIn(args: Arguments, flag: string, command: string): string | null {
  const name = args.one(flag);
  if (name !== null) checkName(name, flag, command);
  return name;
}

function hookIn(args: Arguments, flag: string, command: string): string | null {
  const hook = args.one(flag);
  if (hook !== null && hook.trim() === "") throw usage(`${flag} needs a command`, command);
  return hook;
}
