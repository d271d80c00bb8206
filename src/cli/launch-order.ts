// What launch and run have in common: flags, the agent, the place, the permission, and the request that comes of them.
import { realpathSync, statSync } from "node:fs";
import { resolve } from "node:path";
import type { Adapter } from "../adapters/adapter.ts";
import { type OwnSetting, type Permission, permissions } from "../adapters/invocation.ts";
import { adapterNamed, adapters } from "../adapters/registry.ts";
import { commandOf, findBinary } from "../control/binary.ts";
import { agentEnvironment, ownHome } from "../control/environment.ts";
import type { StartRequest } from "../control/start-session.ts";
import { AgentctlError } from "../core/problem.ts";
import { oneLine } from "../lib/width.ts";
import { errorCode, failureText, isGone } from "../observe/failure.ts";
import { readWhole, withFile } from "../observe/files.ts";
import { placeOf } from "../observe/place.ts";
import { type Arguments, type FlagSpec, parseDuration, usage } from "./arguments.ts";
import type { Context } from "./command.ts";
import { checkPromptFits, noPrompt, promptFlags, readPrompt } from "./prompt.ts";

export const orderFlags: readonly FlagSpec[] = [
  ...promptFlags,
  { flag: "--cwd", value: "DIR", help: "where it works (default: here)" },
  { flag: "--model", value: "M", help: "the agent's own name of a model" },
  { flag: "--permission", value: "P", help: "read, edit or bypass (default: the agent's own setting)" },
  { flag: "--name", value: "N", help: "a name for this session, to refer to it by" },
  { flag: "--group", value: "G", help: "a name that several sessions share" },
  { flag: "--label", value: "k=v", repeated: true, help: "anything you want to find it by" },
  { flag: "--max-time", value: "T", help: "end it after so long (90s, 10m, 2h)" },
  { flag: "--share", help: "begin although another session is busy in the same place" },
  { flag: "--start-timeout", value: "T", help: "how long it may take to begin its session (default: 60s)" },
  { flag: "--json", help: "print JSON" },
];

export const orderNotes = [
  "AGENT is one of those that `agentctl adapters` shows; it may be left out where only one is installed.",
  "The prompt is TEXT, -p TEXT, the content of -F FILE, or - for standard input. What stands behind -- goes to the agent.",
  "Permission: read looks and changes nothing, edit changes files of its directory, bypass does everything unasked.",
  "The agent gets your environment, without what would make it a part of the session that you call from.",
].join("\n");

export function requestOf(args: Arguments, context: Context, command: string, tied: boolean): StartRequest {
  const { adapter, words } = agentOf(args, context, command);
  const prompt = readPrompt(args, words, command);
  const note = {
    name: nameIn(args, "--name", command),
    group: nameIn(args, "--group", command),
    labels: labelsOf(args, command),
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
  const program = commandOf(adapter, context.env);
  const isRoot = process.getuid?.() === 0;
  const refusal = adapter.invocation.refuses(order, { isRoot, env: context.env });
  if (refusal !== null) throw new AgentctlError("agent-missing", refusal);
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
  if (first !== undefined && named === null && (others.length > 0 || hasPrompt)) {
    const known = adapters.map(({ agent }) => agent).join(", ");
    throw usage(`no agent is called ${first} (known: ${known})`, command);
  }
  if (named !== null) throw usage(`${command} ${first} needs a prompt`, command);
  if (first === undefined && !hasPrompt) throw noPrompt(command);
  return { adapter: onlyInstalled(context, command), words: args.words };
}

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
  const isPlain = /^[\p{L}\p{N}][\p{L}\p{N} ._/-]*$/u.test(name) && name.length <= longestName;
  if (!isPlain) throw usage(`${flag} takes letters, digits, spaces and . _ / -`, command);
  return name;
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
