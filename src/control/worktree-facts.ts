// What is true of a repository's worktrees now: who lives there, what is in them that is nowhere else, and what they take.
import type { Session } from "../core/session.ts";
import type { Environment } from "../observe/homes.ts";
import { placeOf } from "../observe/place.ts";
import { bytesBelow } from "../observe/sizes.ts";
import { git } from "./git.ts";
import { dirtyFiles, folderFor, type Repository } from "./worktrees.ts";

export interface WorktreeFacts {
  path: string;
  /** null: a detached HEAD. */
  branch: string | null;
  commit: string | null;
  isMain: boolean;
  /** In the folder where agentctl makes them. */
  isOurs: boolean;
  /** Its folder is gone; only git still knows it. */
  isGone: boolean;
  isLocked: boolean;
  dirty: string[];
  /** Against the branch of the main worktree; null: there is none to compare with. */
  ahead: number | null;
  behind: number | null;
  isMerged: boolean;
  /** A remote branch has its commits. */
  isPushed: boolean;
  bytes: number;
  sessions: Session[];
}

export async function worktreeFacts(
  { main, root, isBare }: Repository,
  sessions: readonly Session[],
  env: Environment,
): Promise<WorktreeFacts[]> {
  const { out } = await git(root, ["worktree", "list", "--porcelain", "-z"], env);
  const entries = out
    .split("\0\0")
    .map(parseEntry)
    .filter((entry) => entry !== null);
  const trunk = isBare ? (await git(main, ["rev-parse", "--verify", "--quiet", "HEAD"], env)).out.trim() : null;
  const against = trunk ?? entries[0]?.commit ?? null;
  const ours = folderFor(main, env);
  return await Promise.all(
    entries
      .filter(({ isBare }) => !isBare)
      .map(async (entry, index): Promise<WorktreeFacts> => {
        const { path, commit } = entry;
        const isMain = !isBare && index === 0;
        const here = {
          path,
          branch: entry.branch,
          commit,
          isMain,
          isOurs: path.startsWith(`${ours}/`),
          isLocked: entry.isLocked,
        };
        const lives = sessions.filter(({ cwd }) => placeOf(cwd) === path);
        if (entry.isGone)
          return {
            ...here,
            isGone: true,
            dirty: [],
            ahead: null,
            behind: null,
            isMerged: false,
            isPushed: false,
            bytes: 0,
            sessions: lives,
          };
        const [dirty, counts, isPushed] = await Promise.all([
          dirtyFiles(path, env),
          countsAgainst(against, commit, root, env),
          isOnRemote(commit, root, env),
        ]);
        return {
          ...here,
          isGone: false,
          dirty,
          ...counts,
          isMerged: counts.ahead === 0,
          isPushed,
          bytes: bytesBelow(path),
          sessions: lives,
        };
      }),
  );
}

interface Entry {
  path: string;
  commit: string | null;
  branch: string | null;
  isBare: boolean;
  isLocked: boolean;
  isGone: boolean;
}

function parseEntry(text: string): Entry | null {
  const lines = text.split("\0").filter((line) => line !== "");
  const value = (key: string): string | null =>
    lines.find((line) => line.startsWith(`${key} `))?.slice(key.length + 1) ?? null;
  const has = (key: string): boolean => lines.some((line) => line === key || line.startsWith(`${key} `));
  const path = value("worktree");
  if (path === null) return null;
  const branch = value("branch")?.replace(/^refs\/heads\//, "") ?? null;
  return { path, commit: value("HEAD"), branch, isBare: has("bare"), isLocked: has("locked"), isGone: has("prunable") };
}

async function countsAgainst(against: string | null, commit: string | null, root: string, env: Environment) {
  if (against === null || commit === null) return { ahead: null, behind: null };
  const { ok, out } = await git(root, ["rev-list", "--left-right", "--count", `${against}...${commit}`], env);
  const [behind, ahead] = out.trim().split(/\s+/).map(Number);
  return ok && ahead !== undefined && behind !== undefined ? { ahead, behind } : { ahead: null, behind: null };
}

async function isOnRemote(commit: string | null, root: string, env: Environment): Promise<boolean> {
  if (commit === null) return false;
  const { ok, out } = await git(root, ["for-each-ref", "--count=1", "--contains", commit, "refs/remotes"], env);
  return ok && out.trim() !== "";
}

/** What would be lost, or whom it would hit, if it were removed; nothing: it may go. */
export function reasonsToKeep({
  isMain,
  isLocked,
  isGone,
  dirty,
  isMerged,
  isPushed,
  ahead,
  sessions,
}: WorktreeFacts): Reason[] {
  const live = sessions.filter(({ status }) => status.state !== "stopped");
  const commits = ahead === null ? "its commits" : `${ahead} ${ahead === 1 ? "commit" : "commits"}`;
  return [
    isMain ? { why: "it is the main worktree", final: true } : null,
    isLocked ? { why: "git has it locked (git worktree unlock)", final: true } : null,
    ...live.map(({ agent, id, status }) => ({
      why: `${agent} ${id ?? "without a session yet"} is ${status.state} in it`,
      final: true,
    })),
    dirty.length > 0
      ? {
          why: `${dirty.length} uncommitted: ${dirty.slice(0, 3).join(", ")}${dirty.length > 3 ? ", …" : ""}`,
          final: false,
        }
      : null,
    !isGone && !isMerged && !isPushed ? { why: `${commits} neither merged nor pushed`, final: false } : null,
  ].filter((reason) => reason !== null);
}

export interface Reason {
  why: string;
  /** Not even by a wish to discard. */
  final: boolean;
}
