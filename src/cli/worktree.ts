// agentctl worktree: prints the worktrees of this repository, and removes them.
import type { WorktreeFacts } from "../control/worktrees/worktree-facts.ts";
import { jsonLine, oneLine, someOf } from "../lib/width.ts";
import { statusWord } from "../service/session-json.ts";
import {
  fateJson,
  listWorktrees,
  planPrune,
  pruneWorktrees,
  removeWorktrees,
  type WorktreeFate,
  worktreeJson,
} from "../service/worktrees.ts";
import { type Arguments, usage } from "./arguments.ts";
import type { Command, Context } from "./command.ts";
import { confirming } from "./confirming.ts";
import { homeRelative, shortBytes, table, terminalOf } from "./render.ts";
import { callOf } from "./service-call.ts";

export const worktree: Command = {
  usage: "agentctl worktree list | remove NAME|PATH… [--discard] | prune [--dry-run] [-y]",
  summary: "List git worktrees and their sessions; remove those whose work is all merged or pushed.",
  notes: [
    "remove refuses if work would be lost: uncommitted files (even if skip-worktree hides them), an operation in progress,",
    "commits that no other branch, no tag and no remote branch contains. It also refuses if git cannot tell, or if a session, a setup",
    "or another process is in the worktree. --discard removes the work, too, and prints the commits that no ref contains any more; it never removes",
    "a worktree with a live session, a locked one, or one with another worktree or repository inside.",
    "prune removes all worktrees that agentctl made and whose work is merged or pushed.",
    "Ignored files are deleted and listed. A branch agentctl/… is deleted with its worktree if another branch or a tag contains its",
    "commits, and by --discard. Commits that are only in the reflog get a ref under refs/agentctl/removed.",
    "JSON of remove and prune: a list of path, branch, result (removed, can-go, stays), branchRemoved, bytes, ignored, keep",
    "(reasons to keep it), keptAs (ref with the commits of its reflog), unreferenced (commits that no ref contains any more).",
  ].join("\n"),
  flags: [
    { flag: "--discard", help: "remove: even with uncommitted files and unmerged commits" },
    { flag: "--dry-run", help: "prune: show what would be removed" },
    { flag: "--yes", short: "-y", help: "prune: do not ask for confirmation" },
    { flag: "--json", help: "JSON output" },
  ],
  examples: [
    ["agentctl worktree list", "worktrees, their sessions and unmerged work"],
    ["agentctl worktree remove claude-1f2e3d4c", "one worktree"],
    ["agentctl worktree prune", "all worktrees that are merged or pushed"],
  ],
  async run(args, context) {
    const [verb = "list", ...names] = args.words;
    if (verb === "list" && names.length === 0) return await list(args, context);
    if (verb === "remove" && names.length > 0) return await remove(names, args, context);
    if (verb === "prune" && names.length === 0) return await prune(args, context);
    throw usage(`worktree takes list, remove NAME or prune: ${args.words.join(" ")}`, "worktree");
  },
};

async function list(args: Arguments, context: Context): Promise<number> {
  const worktrees = await listWorktrees(callOf(context));
  const rows = worktrees.map((each) => [
    { text: homeRelative(each.path, context) },
    { text: each.branch ?? `(${each.commit?.slice(0, 8) ?? "no commit"})` },
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
  context.out(args.has("--json") ? jsonLine(worktrees.map(worktreeJson)) : table(columns, rows, terminalOf(context)));
  return 0;
}

function workText(facts: WorktreeFacts): string {
  const { isMain, presence, contents, ahead, behind, isMerged, isPushed, isHalfRemoved } = facts;
  if (presence.kind === "gone") return "its folder is gone";
  const dirty = contents.known ? contents.dirty.length : 0;
  const parts = [
    presence.kind === "out-of-reach" ? "its folder is missing" : null,
    isHalfRemoved ? "its removal was interrupted" : null,
    contents.known ? null : "files unknown",
    dirty > 0 ? `${dirty} uncommitted file${dirty === 1 ? "" : "s"}` : null,
    ahead !== null && ahead > 0 ? `${ahead} ahead` : null,
    behind !== null && behind > 0 ? `${behind} behind` : null,
    isMain ? null : isMerged ? "merged" : isPushed ? "pushed" : null,
  ];
  return parts.filter((part) => part !== null).join(", ") || "clean";
}

const sessionsText = ({ sessions }: WorktreeFacts): string => {
  const live = sessions.filter(({ status }) => status.state !== "stopped");
  const stopped = sessions.length - live.length;
  const words = live.map((session) => `${session.agent} ${session.id?.slice(0, 8) ?? "?"} ${statusWord(session)}`);
  return [...words, ...(stopped > 0 ? [`${stopped} stopped`] : [])].join(", ");
};

async function remove(names: readonly string[], args: Arguments, context: Context): Promise<number> {
  const isJson = args.has("--json");
  const fates: WorktreeFate[] = [];
  try {
    await removeWorktrees({ names, discard: args.has("--discard") }, callOf(context), (fate) => {
      fates.push(fate);
      tell(removedLines(fate, context), isJson, context);
    });
  } finally {
    // Prints the JSON even if a later removal failed, because the earlier worktrees are removed.
    if (isJson && fates.length > 0) context.out(jsonLine(fates.map(fateJson)));
  }
  return 0;
}

async function prune(args: Arguments, context: Context): Promise<number> {
  const [isJson, dryRun] = [args.has("--json"), args.has("--dry-run")];
  const call = callOf(context);
  const plan = await planPrune({ dryRun }, call);
  const ready = plan.filter(({ keep }) => keep.length === 0);
  const kept = plan.filter(({ keep }) => keep.length > 0);
  tell([...kept.map(keptLine), ...ready.map(readyLine)], isJson || !dryRun, context);
  if (ready.length === 0 && !isJson) context.out("no worktree can be removed\n");
  const paths = ready.map(({ facts }) => facts.path);
  const onDone = (fate: WorktreeFate): void =>
    fate.removed === null ? tell([keptLine(fate)], true, context) : tell(removedLines(fate, context), isJson, context);
  const nothingDone = { fates: plan, exitCode: 0 };
  const { fates, exitCode } =
    ready.length === 0 || dryRun
      ? nothingDone
      : await confirming(
          (confirmed) => pruneWorktrees({ paths, confirmed }, call, onDone),
          args.has("--yes"),
          context,
          () => nothingDone,
        );
  if (isJson) context.out(jsonLine(fates.map(fateJson)));
  return exitCode;
}

/** Lines that are not the answer go to stderr. */
function tell(lines: readonly string[], isTalk: boolean, context: Context): void {
  for (const line of lines)
    if (isTalk) context.err(`agentctl: ${line}\n`);
    else context.out(`${line}\n`);
}

function removedLines({ facts, removed }: WorktreeFate, context: Context): string[] {
  const { branch = null, keptAs = null, unreferenced = [] } = removed ?? {};
  const path = homeRelative(oneLine(facts.path), context);
  return [
    `removed ${path}${branch === null ? "" : ` and its branch ${branch}`}${ignoredText(facts)}`,
    ...(keptAs === null ? [] : [`commits that only its reflog had are kept: git log ${keptAs}`]),
    ...unreferenced.map((commit) => `no ref contains ${commit} any more; to get it back: git branch NAME ${commit}`),
  ];
}

/** Ignored files are not work, but they may contain passwords. */
const ignoredText = ({ contents }: WorktreeFacts): string =>
  contents.known && contents.ignored.length > 0 ? `, with ignored files: ${oneLine(someOf(contents.ignored, 3))}` : "";

const readyLine = ({ facts }: WorktreeFate): string =>
  `${oneLine(facts.path)} can be removed: ${workText(facts)}, ${shortBytes(facts.bytes)}${ignoredText(facts)}`;

const keptLine = ({ facts, keep }: WorktreeFate): string =>
  `${oneLine(facts.path)} is kept: ${oneLine(keep.join("; "))}`;
