// agentctl worktree: the worktrees of this repository, who lives in them, and how to be rid of them without losing work.
import { basename, resolve } from "node:path";
import { callerOf, refuseInside } from "../control/guard.ts";
import { undoInterruptedRemovals } from "../control/interrupted-removals.ts";
import { oneAtATime } from "../control/places.ts";
import { type Reason, reasonsToKeep } from "../control/reasons-to-keep.ts";
import {
  carefully,
  discarding,
  type RemovalWish,
  type Removed,
  removeWorktree,
  Stays,
} from "../control/remove-worktree.ts";
import { type Repository, repositoryAt } from "../control/repository.ts";
import {
  type Inhabitants,
  oneAfterTheOther,
  someOf,
  type WorktreeFacts,
  worktreeFacts,
} from "../control/worktree-facts.ts";
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
    "remove refuses where work would be lost (uncommitted files, also those that skip-worktree hides, a rebase in progress, commits",
    "that no branch, tag or remote branch would have), where git cannot tell, where a process of yours is in it (a setup, a shell),",
    "and where a session is live. --discard means it, but never removes a worktree under a live session, a locked one, or one with",
    "another worktree or repository inside; it prints the commits that no ref has any more. prune takes those that agentctl made",
    "and whose work is all merged or pushed. Commits that only the reflog had stay under refs/agentctl/removed.",
    "Branches that agentctl named (agentctl/…) go with their worktrees; so do ignored files, which are named.",
    "JSON of remove and prune: a list of path, branch, result (removed, can-go, stays), branchRemoved, bytes, ignored, keep (why it",
    "stays), keptAs (the ref with commits of its reflog) and unreferenced (commits that no ref has any more).",
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
    { text: each.presence.kind === "there" ? shortBytes(each.bytes) : "" },
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

function workText(facts: WorktreeFacts): string {
  const { isMain, presence, contents, ahead, behind, isMerged, isPushed, isHalfRemoved } = facts;
  if (presence.kind === "gone") return "its folder is gone";
  const parts = [
    presence.kind === "out-of-reach" ? "its folder is missing" : null,
    isHalfRemoved ? "its removal was interrupted" : null,
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
  const wish = args.has("--discard") ? discarding : carefully;
  return await oneAtATime(context.env, async () => {
    await undoInterrupted(context);
    const { repository, worktrees } = await look(context, everybodyThere);
    const chosen = [...new Set(names.map((name) => worktreeNamed(name, worktrees, context)))];
    for (const each of chosen) {
      const reasons = reasonsToKeep(each).filter((reason) => !wish.accepts(reason, each));
      if (reasons.length > 0) throw refusal(each, reasons);
    }
    const say = sayer(args.has("--json") ? "talk" : "answer", context);
    const fates: Fate[] = [];
    try {
      for (const each of chosen) fates.push(await takeAway(each, repository, wish, say, context));
    } finally {
      // Also where a later one could not go: the earlier ones are gone.
      if (args.has("--json") && fates.length > 0) context.out(jsonLine(fates));
    }
    return 0;
  });
}

/** Under the lock: a removal of this user's that has it still goes on. */
async function undoInterrupted(context: Context): Promise<void> {
  const repository = await repositoryAt(context.cwd, context.env);
  for (const path of await undoInterruptedRemovals(repository, context.env))
    context.err(`agentctl: an earlier removal of ${oneLine(path)} was interrupted; it is back in its place\n`);
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

function refusal({ path }: WorktreeFacts, reasons: readonly Reason[]): AgentctlError {
  const text = [`${oneLine(path)} stays:`, ...reasons.map(({ why }) => `  ${oneLine(why)}`)].join("\n");
  return new AgentctlError("refused", text, { hint: remedyFor(reasons) });
}

function remedyFor(reasons: readonly Reason[]): string {
  const remedies: Partial<Record<Reason["code"], string>> = {
    main: "agentctl never removes the main worktree",
    session: "agentctl stop ends a session",
    inside: "move what is inside to another place, or unmount it, first",
    locked: "git worktree unlock PATH, then again",
    "out-of-reach": "mount the disk, then again; if the folder was deleted: git worktree prune",
    modules: "git worktree remove --force PATH removes it with its submodules",
    standing: "leave it or end that process first; --discard removes it anyway",
  };
  const first = reasons.map(({ code }) => remedies[code]).find((remedy) => remedy !== undefined);
  return first ?? "--discard removes it anyway";
}

async function takeAway(
  each: WorktreeFacts,
  repository: Repository,
  wish: RemovalWish,
  say: Say,
  context: Context,
): Promise<Fate> {
  const removed = await removeWorktree(each, repository, wish, context.env);
  const { branch, keptAs, unreferenced } = removed;
  const gone = `removed ${homeRelative(oneLine(each.path), context)}${branch === null ? "" : ` and its branch ${branch}`}`;
  say(`${gone}${ignoredText(each)}`);
  if (keptAs !== null) say(`commits that only its reflog had are kept: git log ${keptAs}`);
  for (const commit of unreferenced) say(`no ref has ${commit} any more: git branch NAME ${commit} brings it back`);
  return { ...fateOf(each, [], removed), result: "removed", branchRemoved: branch !== null };
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
  /** The ref with commits that only its reflog had. */
  keptAs: string | null;
  /** Commits that no ref has any more. */
  unreferenced: string[];
}

function fateOf(
  each: WorktreeFacts,
  keep: string[] = reasonsToKeep(each).map(({ why }) => why),
  { keptAs, unreferenced }: Pick<Removed, "keptAs" | "unreferenced"> = { keptAs: null, unreferenced: [] },
): Fate {
  const { path, branch, bytes, contents } = each;
  const result = keep.length > 0 ? "stays" : "can-go";
  const ignored = contents.known ? contents.ignored : [];
  return { path, branch, result, branchRemoved: false, bytes, ignored, keep, keptAs, unreferenced };
}

/** Nobody's work, but perhaps somebody's passwords. */
const ignoredText = ({ contents }: WorktreeFacts): string =>
  contents.known && contents.ignored.length > 0 ? `, with ignored: ${oneLine(someOf(contents.ignored))}` : "";

async function prune(args: Arguments, context: Context): Promise<number> {
  if (!args.has("--dry-run")) await oneAtATime(context.env, () => undoInterrupted(context));
  const { ours, ready } = await lookAtOurs(context);
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
  const wanted = new Set(ready.map(({ path }) => path));
  return await oneAtATime(context.env, async () => {
    const { fates, code } = await removeOurs(
      wanted,
      { stays: say, gone: sayer(isJson ? "talk" : "answer", context) },
      context,
    );
    if (isJson) context.out(jsonLine(fates));
    return code;
  });
}

/** What has happened since the question may keep one after all. */
async function removeOurs(
  wanted: ReadonlySet<string>,
  say: { gone: Say; stays: Say },
  context: Context,
): Promise<{ fates: Fate[]; code: number }> {
  const { repository, ours, ready } = await lookAtOurs(context);
  const fates: Fate[] = [];
  let code = 0;
  for (const each of ours)
    try {
      const isMeant = wanted.has(each.path) && ready.includes(each);
      fates.push(isMeant ? await takeAway(each, repository, carefully, say.gone, context) : fateOf(each));
    } catch (error) {
      if (!(error instanceof AgentctlError)) throw error;
      const why = error instanceof Stays ? [...error.reasons] : [error.message];
      say.stays(staysText(each, why));
      fates.push(fateOf(each, why));
      code = exitCodes.failed;
    }
  return { fates, code };
}

interface Ours {
  repository: Repository;
  /** As they are judged if those before them are gone. */
  ours: WorktreeFacts[];
  ready: WorktreeFacts[];
}

async function lookAtOurs(context: Context): Promise<Ours> {
  const { repository, worktrees } = await look(context, everybodyThere);
  const isReady = (each: WorktreeFacts): boolean => reasonsToKeep(each).length === 0;
  const all = worktrees.filter(({ isOurs }) => isOurs);
  const judged = await oneAfterTheOther(all.filter(isReady), repository, context.env);
  const ours = all.map((each) => judged.find(({ path }) => path === each.path) ?? each);
  return { repository, ours, ready: ours.filter(isReady) };
}

const staysText = ({ path }: WorktreeFacts, why: readonly string[]): string =>
  `${oneLine(path)} stays: ${oneLine(why.join("; "))}`;

function isWanted(count: number, args: Arguments, context: Context): boolean {
  if (args.has("--yes")) return true;
  if (!canAsk()) throw new AgentctlError("refused", "nothing was removed: confirmation required", { hint: "pass -y" });
  return confirm(`remove ${count === 1 ? "it" : `these ${count}`}?`, context);
}

const worktreeJson = (each: WorktreeFacts) => ({
  path: each.path,
  branch: each.branch,
  commit: each.commit,
  main: each.isMain,
  gone: each.presence.kind === "gone",
  outOfReach: each.presence.kind === "out-of-reach",
  dirty: each.contents.known ? each.contents.dirty.length : null,
  ahead: each.ahead,
  behind: each.behind,
  merged: each.isMerged,
  pushed: each.isPushed,
  bytes: each.bytes,
  sessions: each.sessions.map(({ agent, id, status }) => ({ agent, id, state: status.state })),
  keep: reasonsToKeep(each).map(({ why }) => why),
});
