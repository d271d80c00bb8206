// What is true of a repository's worktrees now: who lives there, what is in them that is nowhere else, and what they take.
import { existsSync } from "node:fs";
import { isLive, type ProcessRow } from "../core/process.ts";
import type { Session } from "../core/session.ts";
import type { Environment } from "../observe/homes.ts";
import { placeOf } from "../observe/place.ts";
import { bytesBelow } from "../observe/sizes.ts";
import { git, gitText } from "./git.ts";
import { type Contents, contentsOf, folderFor, type Repository } from "./worktrees.ts";

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
  contents: Contents;
  /** Against the branch of the main worktree; null: there is none to compare with. */
  ahead: number | null;
  behind: number | null;
  isMerged: boolean;
  /** A remote branch has its commits. */
  isPushed: boolean;
  bytes: number;
  sessions: Session[];
  /** Processes of this user that work in it or below. */
  standing: Standing[];
}

export interface Standing {
  pid: number;
  name: string;
  /** This command, or whoever called it. */
  role: "self" | "caller" | "other";
}

/** Who may be in them. */
export interface Inhabitants {
  sessions: readonly Session[];
  /** Of this user; none: nobody has looked. */
  processes: readonly ProcessRow[];
  /** This command and everything above it. */
  callerPids: ReadonlySet<number>;
}

/** `lookAround` is called once it is known which worktrees there are: whoever makes one stands in it from its beginning. */
export async function worktreeFacts(
  { main, root, isBare }: Repository,
  lookAround: () => Promise<Inhabitants>,
  env: Environment,
): Promise<WorktreeFacts[]> {
  const out = await gitText(root, ["worktree", "list", "--porcelain", "-z"], env);
  const entries = out
    .split("\0\0")
    .map(parseEntry)
    .filter((entry) => entry !== null);
  const trunk = isBare ? (await git(main, ["rev-parse", "--verify", "--quiet", "HEAD"], env)).out.trim() : null;
  const against = trunk ?? entries[0]?.commit ?? null;
  const ours = folderFor(main, env);
  const around = await lookAround();
  return await Promise.all(
    entries
      .filter(({ isBare }) => !isBare)
      .map(async (entry, index): Promise<WorktreeFacts> => {
        const { path, commit, isGone } = entry;
        const [contents, counts, isPushed] = await Promise.all([
          isGone ? nothing : contentsOf(path, env),
          countsAgainst(against, commit, root, env),
          isOnRemote(commit, root, env),
        ]);
        return {
          path,
          branch: entry.branch,
          commit,
          isMain: !isBare && index === 0,
          isOurs: path.startsWith(`${ours}/`),
          isGone,
          isLocked: entry.isLocked,
          contents,
          ...counts,
          isMerged: counts.ahead === 0,
          isPushed,
          bytes: isGone ? 0 : bytesBelow(path),
          sessions: around.sessions.filter(({ cwd }) => placeOf(cwd) === path),
          standing: isGone ? [] : standingIn(path, around),
        };
      }),
  );
}

const nothing: Contents = { known: true, dirty: [], ignored: [], hasModules: false };

const standingIn = (path: string, { processes, callerPids }: Inhabitants): Standing[] =>
  processes
    .filter((row) => isLive(row) && row.detail?.ours === true && isBelow(row.detail.cwd, path))
    .map(({ identity: { pid }, name }) => ({
      pid,
      name,
      role: pid === process.pid ? "self" : callerPids.has(pid) ? "caller" : "other",
    }));

const isBelow = (cwd: string | null, folder: string): boolean =>
  cwd === folder || cwd?.startsWith(`${folder}/`) === true;

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
  // One without its `.git` may be removed for git as well, but what is in it is still there.
  const isGone = has("prunable") && !existsSync(path);
  return { path, commit: value("HEAD"), branch, isBare: has("bare"), isLocked: has("locked"), isGone };
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
  branch,
  isMain,
  isLocked,
  isGone,
  contents,
  isMerged,
  isPushed,
  ahead,
  sessions,
  standing,
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
    // A session has said already that it is there.
    ...(live.length > 0 ? [] : standingReasons(standing)),
    contents.known ? null : { why: `what is in it cannot be told: ${contents.why}`, final: false },
    contents.known && contents.dirty.length > 0
      ? { why: `${contents.dirty.length} uncommitted: ${someOf(contents.dirty)}`, final: false }
      : null,
    contents.known && contents.hasModules
      ? { why: "its submodules are filled: what is only in them would be lost", final: false }
      : null,
    // A branch keeps its commits when the folder is gone.
    (!isGone || branch === null) && !isMerged && !isPushed
      ? { why: `${commits} neither merged nor pushed`, final: false }
      : null,
  ].filter((reason) => reason !== null);
}

function standingReasons(standing: readonly Standing[]): Reason[] {
  // Where whoever called stands in it, so does this command.
  const told = standing.filter(({ role }) => role !== "self" || standing.every((each) => each.role !== "caller"));
  const more = told.length - mostTold;
  return [
    ...told.slice(0, mostTold).map(({ name, pid, role }) => {
      const who = `${name} (pid ${pid})`;
      if (role === "self") return "this command stands in it";
      return role === "caller" ? `${who}, which called this command, stands in it` : `${who} stands in it`;
    }),
    ...(more > 0 ? [`${more} more ${more === 1 ? "process stands" : "processes stand"} in it`] : []),
  ].map((why) => ({ why, final: false }));
}

const mostTold = 3;

/** The first ones, and how many more there are. */
export const someOf = (paths: readonly string[]): string =>
  [...paths.slice(0, mostTold), ...(paths.length > mostTold ? [`and ${paths.length - mostTold} more`] : [])].join(", ");

export interface Reason {
  why: string;
  /** Not even by a wish to discard. */
  final: boolean;
}
