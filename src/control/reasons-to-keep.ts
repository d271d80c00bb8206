// Why a worktree stays: what would be lost with it, and who is in it.
import { type Contents, type Standing, someOf, type WorktreeFacts } from "./worktree-facts.ts";

export type ReasonCode =
  | "main"
  | "locked"
  | "session"
  | "inside"
  | "standing"
  | "out-of-reach"
  | "unknown"
  | "uncommitted"
  | "hidden"
  | "unseen"
  | "unfinished"
  | "modules"
  | "commits";

export interface Reason {
  code: ReasonCode;
  why: string;
}

/** These count even where everything may be discarded. */
const finalCodes: ReadonlySet<ReasonCode> = new Set<ReasonCode>([
  ...(["main", "locked", "session", "inside", "modules", "out-of-reach"] as const),
]);

export const isFinal = ({ code }: Reason): boolean => finalCodes.has(code);

/** None: it may go. */
export function reasonsToKeep(facts: WorktreeFacts): Reason[] {
  const { branch, isMain, isLocked, presence, contents, inside, isMerged, isPushed, sessions, standing } = facts;
  const live = sessions.filter(({ status }) => status.state !== "stopped");
  const reasons = (code: ReasonCode, ...words: string[]): Reason[] => words.map((why) => ({ code, why }));
  // A folder that is gone leaves the commits to its branch, which then stays.
  const needsHolder = presence.kind === "there" || branch === null;
  const named = live.map(
    ({ agent, id, status }) => `${agent} ${id ?? "without a session yet"} is ${status.state} in it`,
  );
  const more = named.length - mostTold;
  const moreNamed = more > 0 ? [`${more} more ${more === 1 ? "session is" : "sessions are"} live in it`] : [];
  const inIt = reasons("session", ...named.slice(0, mostTold), ...moreNamed);
  if (isMain) return [...reasons("main", "it is the main worktree"), ...inIt];
  return [
    ...(isLocked ? reasons("locked", "git has it locked (git worktree unlock)") : []),
    ...inIt,
    ...reasons("inside", ...inside),
    // A session has said already that it is there.
    ...(live.length > 0 ? [] : reasons("standing", ...standingReasons(standing))),
    ...(presence.kind === "out-of-reach" ? reasons("out-of-reach", presence.why) : []),
    ...(contents.known ? lostWith(contents) : reasons("unknown", `what is in it cannot be told: ${contents.why}`)),
    ...(needsHolder && !isMerged && !isPushed ? reasons("commits", commitsText(facts)) : []),
  ];
}

/** It may have no commit that the main worktree has not, and still be the only one that names them: a detached HEAD names nothing. */
const commitsText = ({ ahead, commit }: WorktreeFacts): string =>
  ahead === null || ahead === 0
    ? `no branch, tag or remote branch has its commit ${commit?.slice(0, 12) ?? ""}`
    : `${ahead} ${ahead === 1 ? "commit" : "commits"} neither merged nor pushed`;

function lostWith({ dirty, hidden, unseen, unfinished, hasModules }: Contents & { known: true }): Reason[] {
  const files = (paths: readonly string[]): string => (paths.length === 1 ? "1 file" : `${paths.length} files`);
  const found: [ReasonCode, boolean, string][] = [
    ["uncommitted", dirty.length > 0, `${dirty.length} uncommitted: ${someOf(dirty)}`],
    [
      "hidden",
      hidden.length > 0,
      `${files(hidden)} changed where git does not look (skip-worktree, assume-unchanged, set-back time): ${someOf(hidden)}`,
    ],
    ["modules", hasModules, "its submodules are checked out: each is a repository of its own"],
    // Files of filled submodules are another repository's business.
    ["unseen", unseen.length > 0 && !hasModules, `git does not look at ${files(unseen)}: ${someOf(unseen)}`],
  ];
  return [
    ...found.flatMap(([code, isSo, why]) => (isSo ? [{ code, why }] : [])),
    ...unfinished.map((why): Reason => ({ code: "unfinished", why })),
  ];
}

const mostTold = 3;

function standingReasons(standing: readonly Standing[]): string[] {
  // Where whoever called stands in it, so does this command.
  const told = standing.filter(({ role }) => role !== "self" || standing.every((each) => each.role !== "caller"));
  const more = told.length - mostTold;
  return [
    ...told.slice(0, mostTold).map(({ name, pid, role, file }) => {
      const who = `${name} (pid ${pid})`;
      if (role === "self") return "this command stands in it";
      if (role === "caller") return `${who}, which called this command, stands in it`;
      return file === null ? `${who} stands in it` : `${who} has a file of it open: ${file}`;
    }),
    ...(more > 0 ? [`${more} more ${more === 1 ? "process stands" : "processes stand"} in it`] : []),
  ];
}
