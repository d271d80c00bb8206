// agentctl worktree: the worktrees of this repository, who lives in them, and how to be rid of them without losing work.
import { basename, resolve } from "node:path";
import { callerOf, refuseInside } from "../control/guard.ts";
import { oneAtATime } from "../control/places.ts";
import {
  type Inhabitants,
  type Reason,
  reasonsToKeep,
  someOf,
  type WorktreeFacts,
  worktreeFacts,
} from "../control/worktree-facts.ts";
import { type Repository, removeWorktree, repositoryAt } from "../control/worktrees.ts";
import { AgentctlError, exitCodes } from "../core/problem.ts";
import { jsonLine, oneLine } from "../lib/width.ts";
import { type Arguments, usage } from "./arguments.ts";
import type { Command, Context } from "./command.ts";
import { canAsk, confirm } from "./question.ts";
import { homeRelative, problemLines, shortBytes, table, terminalOf } from "./render.ts";
import { statusWord } from "./session-json.ts";
import { lookAroundAtRows, lookAtRows } from "./sessions.ts";

export const worktree: Command = {
  usage: "agentctl worktree list | remove <NAME | PATH>… [--discard] | prune [--dry-run] [-y]",
  summary: "Shows the git worktrees of this repository and the sessions in them; removes those that nobody needs.",
  notes: [
    "remove refuses where work would be lost (uncommitted files, commits that are neither merged nor pushed), where nobody can",
    "tell, where a process of yours stands in it (a setup, a shell), and where a session is live. --discard means it, but never",
    "removes a worktree under a live session. prune takes those that agentctl made and that hold nothing that is not elsewhere.",
    "Branches that agentctl named (agentctl/…) go with their worktrees; so do ignored files, which are named.",
    "JSON of remove and prune: a list of path, branch, result (removed, can-go, stays), branchRemoved, bytes, ignored, and keep:",
    "why it stays.",
  ].join("\n"),
  flags: [
    { flag: "--discard", help: "remove: also with uncommitted files and commits that are nowhere else" },
    { flag: "--dry-run", help: "prune: only say what would go" },
    { flag: "--yes", short: "-y", help: "prune: without asking" },
    { flag: "--json", help: "print JSON" },
  ],
  examples: [
    ["agentctl worktree list", "who lives where, and what is not merged"],
    ["agentctl worktree remove claude-1f2e3d4c", "one that is not needed any more"],
    ["agentctl worktree prune", "all that are merged or pushed, clean and empty"],
  ],
  async run(args, context) {
    const [what = "list", ...names] = args.words;
    if (what === "list" && names.length === 0) return await list(args, context);
    if (what === "remove" && names.length > 0) return await remove(names, args, context);
    if (what === "prune" && names.length === 0) return await prune(args, context);
    throw usage(`worktree takes list, remove NAME or prune: ${args.words.join(" ")}`, "worktree");
  },
};

interface Look {
  repository: Repository;
  worktrees: WorktreeFacts[];
}

async function look(context: Context, whoIsThere: (context: Context) => Promise<Inhabitants>): Promise<Look> {
  const repository = await repositoryAt(context.cwd, context.env);
  return { repository, worktrees: await worktreeFacts(repository, () => whoIsThere(context), context.env) };
}

/** For those who only look. */
async function sessionsThere(context: Context): Promise<Inhabitants> {
  const { rows, problems } = await lookAtRows(context);
  context.err(problemLines(problems));
  return { sessions: rows.map(({ session }) => session), processes: [], callerPids: new Set() };
}

/** For those who may take the ground away: everybody who stands there. */
async function everybodyThere(context: Context): Promise<Inhabitants> {
  const { rows, problems, around } = await lookAroundAtRows(context, "all");
  context.err(problemLines(problems));
  const { pids } = callerOf(around, context.env);
  return { sessions: rows.map(({ session }) => session), processes: around.table.rows, callerPids: pids };
}

async function list(args: Arguments, context: Context): Promise<number> {
  const { worktrees } = await look(context, sessionsThere);
  if (args.has("--json")) {
    context.out(jsonLine(worktrees.map(worktreeJson)));
    return 0;
  }
  const rows = worktrees.map((each) => [
    { text: homeRelative(each.path, context) },
    { text: each.branch ?? `(${each.commit?.slice(0, 8) ?? "nothing"})` },
    { text: workText(each) },
    { text: each.isGone ? "" : shortBytes(each.bytes) },
    { text: sessionsText(each) },
  ]);
  const columns = [
    { title: "WORKTREE", most: 60 },
    { title: "BRANCH", most: 40 },
    { title: "WORK" },
    { title: "SIZE", dropped: 1 },
    { title: "SESSIONS" },
  ];
  context.out(table(columns, rows, terminalOf(context)));
  return 0;
}

function workText({ isMain, isGone, contents, ahead, behind, isMerged, isPushed }: WorktreeFacts): string {
  if (isGone) return "its folder is gone";
  const parts = [
    contents.known ? null : "cannot be told",
    contents.known && contents.dirty.length > 0 ? `${contents.dirty.length} dirty` : null,
    ahead !== null && ahead > 0 ? `${ahead} ahead` : null,
    behind !== null && behind > 0 ? `${behind} behind` : null,
    !isMain && isMerged ? "merged" : isPushed && !isMerged ? "pushed" : null,
  ];
  return parts.filter((part) => part !== null).join(", ") || "clean";
}

const sessionsText = ({ sessions }: WorktreeFacts): string => {
  const live = sessions.filter(({ status }) => status.state !== "stopped");
  const over = sessions.length - live.length;
  const words = live.map((session) => `${session.agent} ${session.id?.slice(0, 8) ?? "?"} ${statusWord(session)}`);
  return [...words, ...(over > 0 ? [`${over} ended`] : [])].join(", ");
};

async function remove(names: readonly string[], args: Arguments, context: Context): Promise<number> {
  if (args.has("--discard")) await refuseInside("worktree remove --discard", context.env);
  return await oneAtATime(context.env, async () => {
    const { repository, worktrees } = await look(context, everybodyThere);
    const chosen = names.map((name) => worktreeNamed(name, worktrees, context));
    for (const each of chosen) {
      const reasons = reasonsToKeep(each).filter(({ final }) => final || !args.has("--discard"));
      if (reasons.length > 0) throw refusal(each, reasons);
    }
    const say = sayer(args.has("--json") ? "talk" : "answer", context);
    const gone: Fate[] = [];
    for (const each of chosen) gone.push(await takeAway(each, repository, args.has("--discard"), say, context));
    if (args.has("--json")) context.out(jsonLine(gone));
    return 0;
  });
}

function worktreeNamed(name: string, worktrees: readonly WorktreeFacts[], { cwd }: Context): WorktreeFacts {
  const path = resolve(cwd, name);
  const found = worktrees.filter((each) => each.path === path || basename(each.path) === name || each.branch === name);
  const [only] = found;
  if (only === undefined)
    throw new AgentctlError("not-found", `no worktree is called ${name}`, { hint: "agentctl worktree list" });
  if (found.length > 1)
    throw new AgentctlError("ambiguous", `${name} may be ${found.map((each) => each.path).join(" or ")}`, {
      hint: "its path says which",
    });
  return only;
}

const refusal = ({ path }: WorktreeFacts, reasons: readonly Reason[]): AgentctlError =>
  new AgentctlError(
    "refused",
    [`${oneLine(path)} stays:`, ...reasons.map(({ why }) => `  ${oneLine(why)}`)].join("\n"),
    {
      hint: reasons.some(({ final }) => final)
        ? "agentctl list shows who is live"
        : "--discard removes it all the same",
    },
  );

async function takeAway(
  each: WorktreeFacts,
  repository: Repository,
  discard: boolean,
  say: Say,
  context: Context,
): Promise<Fate> {
  const branch = await removeWorktree(each, repository, discard, context.env);
  const gone = `removed ${homeRelative(oneLine(each.path), context)}${branch === null ? "" : ` and its branch ${branch}`}`;
  say(`${gone}${ignoredText(each)}`);
  return { ...fateOf(each, []), result: "removed", branchRemoved: branch !== null };
}

type Say = (text: string) => void;

const sayer = (as: "answer" | "talk", context: Context): Say =>
  as === "answer" ? (text) => context.out(`${text}\n`) : (text) => context.err(`agentctl: ${text}\n`);

/** What became of a worktree, or would. */
interface Fate {
  path: string;
  branch: string | null;
  result: "removed" | "can-go" | "stays";
  branchRemoved: boolean;
  bytes: number;
  ignored: string[];
  keep: string[];
}

function fateOf(each: WorktreeFacts, keep: string[] = reasonsToKeep(each).map(({ why }) => why)): Fate {
  const { path, branch, bytes, contents } = each;
  const result = keep.length > 0 ? "stays" : "can-go";
  return { path, branch, result, branchRemoved: false, bytes, ignored: contents.known ? contents.ignored : [], keep };
}

/** Nobody's work, but perhaps somebody's passwords. */
const ignoredText = ({ contents }: WorktreeFacts): string =>
  contents.known && contents.ignored.length > 0 ? `, with ignored: ${oneLine(someOf(contents.ignored))}` : "";

async function prune(args: Arguments, context: Context): Promise<number> {
  const ours = (await look(context, everybodyThere)).worktrees.filter(({ isOurs }) => isOurs);
  const ready = ours.filter((each) => reasonsToKeep(each).length === 0);
  const isJson = args.has("--json");
  const say = sayer(args.has("--dry-run") && !isJson ? "answer" : "talk", context);
  for (const each of ours) if (!ready.includes(each)) say(staysText(each, fateOf(each).keep));
  for (const each of ready)
    say(`${oneLine(each.path)} can go: ${workText(each)}, ${shortBytes(each.bytes)}${ignoredText(each)}`);
  if (ready.length === 0 && !isJson) context.out("no worktree can go\n");
  if (ready.length === 0 || args.has("--dry-run") || !isWanted(ready.length, args, context)) {
    if (isJson) context.out(jsonLine(ours.map((each) => fateOf(each))));
    return 0;
  }
  // Looked at again under the lock: somebody may have begun in one of them meanwhile.
  return await oneAtATime(context.env, async () => {
    const { repository, worktrees } = await look(context, everybodyThere);
    const isMeant = (each: WorktreeFacts): boolean =>
      ready.some(({ path }) => path === each.path) && reasonsToKeep(each).length === 0;
    const fates: Fate[] = [];
    let code = 0;
    for (const each of worktrees.filter(({ isOurs }) => isOurs))
      try {
        const tell = sayer(isJson ? "talk" : "answer", context);
        fates.push(isMeant(each) ? await takeAway(each, repository, false, tell, context) : fateOf(each));
      } catch (error) {
        if (!(error instanceof AgentctlError)) throw error;
        say(staysText(each, [error.message]));
        fates.push(fateOf(each, [error.message]));
        code = exitCodes.failed;
      }
    if (isJson) context.out(jsonLine(fates));
    return code;
  });
}

const staysText = ({ path }: WorktreeFacts, why: readonly string[]): string =>
  `${oneLine(path)} stays: ${oneLine(why.join("; "))}`;

function isWanted(count: number, args: Arguments, context: Context): boolean {
  if (args.has("--yes")) return true;
  if (!canAsk()) throw new AgentctlError("refused", "removing them needs a yes", { hint: "-y says it" });
  return confirm(`remove ${count === 1 ? "it" : `these ${count}`}?`, context);
}

const worktreeJson = (each: WorktreeFacts) => ({
  path: each.path,
  branch: each.branch,
  commit: each.commit,
  main: each.isMain,
  gone: each.isGone,
  dirty: each.contents.known ? each.contents.dirty.length : null,
  ahead: each.ahead,
  behind: each.behind,
  merged: each.isMerged,
  pushed: each.isPushed,
  bytes: each.bytes,
  sessions: each.sessions.map(({ agent, id, status }) => ({ agent, id, state: status.state })),
  keep: reasonsToKeep(each).map(({ why }) => why),
});
