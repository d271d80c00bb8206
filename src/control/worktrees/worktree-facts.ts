// The facts about the worktrees of a repository: the sessions and processes in them, the work that exists nowhere else, and
// their size.
import { lstatSync } from "node:fs";
import { join } from "node:path";
import type { Obstacle, Uncertainty } from "../../core/keep-reason.ts";
import { isLive, type ProcessRow } from "../../core/process.ts";
import type { Session } from "../../core/session.ts";
import { tryOr } from "../../lib/errors.ts";
import type { Environment } from "../../observe/homes.ts";
import { openBelow } from "../../observe/open-files.ts";
import { placeOf } from "../../observe/place.ts";
import { noDetails } from "../../observe/process-query.ts";
import { readProcesses } from "../../observe/processes.ts";
import { CannotTell, git } from "../git/git.ts";
import { isThere } from "../git/git-view.ts";
import { type Holders, holdersOf } from "../git/lasting-refs.ts";
import { commonFolder, type Repository } from "../git/repository.ts";
import { folderFor } from "./add-worktree.ts";
import {
  type AdminFacts,
  adminFacts,
  adminFolders,
  adminNamedBy,
  listWorktrees,
  realLocation,
} from "./admin-folder.ts";
import { type FolderLook, lookAtFolder } from "./folder-contents.ts";
import { interruptedRemoval } from "./hold-worktree.ts";
import { checkFolder, type Files, filesIn, isTracked } from "./worktree-files.ts";
import { type Presence, presenceOf } from "./worktree-presence.ts";

export interface WorktreeFacts {
  path: string;
  /** null: a detached HEAD. */
  branch: string | null;
  commit: string | null;
  isMain: boolean;
  /** It is in the folder where agentctl creates worktrees. */
  isOurs: boolean;
  presence: Presence;
  isLocked: boolean;
  /** Its admin folder in the repository; null: the main worktree, or git's data contradict each other. */
  admin: string | null;
  contents: Contents;
  /** Things inside that are not its own, like other repositories. They prevent even a discard. */
  inside: Obstacle[];
  /** A removal by agentctl was killed. */
  isHalfRemoved: boolean;
  /** Compared with the branch of the main worktree; null: there is none. */
  ahead: number | null;
  behind: number | null;
  /** A branch or a tag that is kept has its commits. */
  isMerged: boolean;
  isPushed: boolean;
  bytes: number;
  sessions: Session[];
  /** Processes of this user with a working directory or an open file in it. */
  standing: Standing[];
}

export type Contents = ({ known: true } & Files & AdminFacts) | { known: false; why: Uncertainty };

export interface Standing {
  pid: number;
  name: string;
  /** This command, or one of its ancestors. */
  role: "self" | "caller" | "other";
  /** The file that the process has open; null: its working directory is there. */
  file: string | null;
}

export interface Inhabitants {
  sessions: readonly Session[];
  processes: readonly ProcessRow[];
  /** This command and its ancestors. */
  callerPids: ReadonlySet<number>;
}

export function processesNow(callerPids: ReadonlySet<number>): Inhabitants {
  const table = readProcesses({ ...noDetails, also: "ours" });
  if (!table.ok) throw new CannotTell({ problem: "processes-unreadable", detail: table.problem.detail.code });
  return { sessions: [], processes: table.value.rows, callerPids };
}

/**
 * `findInhabitants` is called after the worktrees are listed: the process that creates a worktree is in it from the beginning.
 * `only`: the path of the only worktree of interest.
 */
export async function worktreeFacts(
  repository: Repository,
  findInhabitants: () => Promise<Inhabitants>,
  only: string | null = null,
): Promise<WorktreeFacts[]> {
  const { main, isBare, env } = repository;
  const entries = await listWorktrees(repository);
  const trunk = isBare ? (await git(main, ["rev-parse", "--verify", "--quiet", "HEAD"], env)).out.trim() : null;
  const against = trunk ?? entries[0]?.commit ?? null;
  const mainPath = isBare ? null : (entries[0]?.path ?? null);
  const inhabitants = await findInhabitants();
  const admins = adminFolders(commonFolder(repository));
  const factsOf = async (entry: (typeof entries)[number]): Promise<WorktreeFacts> => {
    const { path, commit, branch, isLocked } = entry;
    const isMain = path === mainPath;
    const admin = admins.get(realLocation(path)) ?? null;
    const presence = presenceOf(entry, admin);
    const look = presence.kind === "there" ? lookAtFolder(path) : null;
    const [contents, counts, holders] = await Promise.all([
      contentsOf(path, look, admin, env),
      countsAgainst(against, commit, repository),
      holdersOr(commit, branch === null ? [] : [branch], repository),
    ]);
    const others = entries.filter((other) => other !== entry).map((other) => other.path);
    return {
      ...{ path, branch, commit, isMain, presence, isLocked, admin, contents, ...counts, ...holders },
      ...(isMain ? { isMerged: counts.ahead === 0 } : {}),
      isOurs: path.startsWith(`${folderFor(main, env)}/`),
      inside: isMain || look === null ? [] : foreignThingsIn({ path, contents, admin }, look, others),
      isHalfRemoved: admin !== null && interruptedRemoval(admin) !== null,
      bytes: look?.bytes ?? 0,
      sessions: inhabitants.sessions.filter(({ cwd }) => placeOf(cwd) === path),
      standing: look === null ? [] : standingIn(realLocation(path), inhabitants),
    };
  };
  return await Promise.all(
    entries.filter(({ path, isBare: bare }) => !bare && (only === null || path === only)).map(factsOf),
  );
}

async function contentsOf(
  path: string,
  look: FolderLook | null,
  admin: string | null,
  env: Environment,
): Promise<Contents> {
  try {
    if (look !== null && admin !== null) await checkFolder(path, env);
    const files = look === null ? noFiles : await filesIn(path, look, env);
    // The main worktree has no admin folder and is never removed.
    const kept = admin === null ? nothingKept : await adminFacts(admin, env);
    return { known: true, ...files, ...kept, dirty: look === null ? kept.staged : files.dirty };
  } catch (error) {
    if (error instanceof CannotTell) return { known: false, why: error.why };
    throw error;
  }
}

const noFiles: Files = { dirty: [], untracked: [], ignored: [], hidden: [], unseen: [] };
const nothingKept: AdminFacts = { unfinished: [], hasModules: false, staged: [] };

async function holdersOr(commit: string | null, without: readonly string[], repository: Repository): Promise<Holders> {
  try {
    if (commit !== null) return await holdersOf(commit, without, repository);
  } catch (error) {
    if (!(error instanceof CannotTell)) throw error;
  }
  return { isMerged: false, isPushed: false };
}

function foreignThingsIn(
  { path, contents, admin }: Pick<WorktreeFacts, "path" | "contents" | "admin">,
  look: FolderLook,
  others: readonly string[],
): Obstacle[] {
  const modules = admin === null ? null : join(admin, "modules");
  const isOwn = ({ path: below, kind }: FolderLook["repositories"][number]): boolean => {
    if (kind === "bare") return contents.known && isTracked(below, look, contents);
    return modules !== null && adminNamedBy(join(path, below))?.startsWith(`${modules}/`) === true;
  };
  const real = realLocation(path);
  const worktrees = others.filter((other) => realLocation(other).startsWith(`${real}/`));
  const isListed = (below: string): boolean => worktrees.includes(join(path, below));
  const repositories = look.repositories.filter((each) => !isOwn(each) && !isListed(each.path));
  const found: Obstacle[] = [
    { obstacle: "worktree", paths: worktrees },
    { obstacle: "repository", paths: repositories.map((each) => each.path || ".") },
    { obstacle: "mount", paths: look.mounts },
  ];
  const mismatch = mismatchOf(path, admin);
  const own: Obstacle[] = mismatch === null ? [] : [{ obstacle: mismatch, paths: [path] }];
  return [...own, ...found.filter(({ paths }) => paths.length > 0)];
}

/** Why the folder at its path is not the worktree that git means; null: it is. */
function mismatchOf(path: string, admin: string | null): Obstacle["obstacle"] | null {
  if (admin === null) return "inconsistent";
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return "symbolic-link";
  if (adminNamedBy(path) === admin) return null;
  return tryOr(true, () => isThere(join(path, ".git"))) ? "other-git" : "no-git";
}

const standingIn = (path: string, { processes, callerPids }: Inhabitants): Standing[] =>
  processes.flatMap((row) => {
    if (!isLive(row) || row.detail?.ours !== true) return [];
    const { pid } = row.identity;
    const isInside = `${row.detail.cwd}/`.startsWith(`${path}/`);
    const file = isInside || pid === process.pid ? null : openBelow(path, pid);
    if (!isInside && file === null) return [];
    const role = pid === process.pid ? "self" : callerPids.has(pid) ? "caller" : "other";
    return [{ pid, name: row.name, role, file }];
  });

async function countsAgainst(against: string | null, commit: string | null, { main, env }: Repository) {
  if (against === null || commit === null) return { ahead: null, behind: null };
  const { ok, out } = await git(main, ["rev-list", "--left-right", "--count", `${against}...${commit}`], env);
  const [behind, ahead] = out.trim().split(/\s+/).map(Number);
  return ok && ahead !== undefined && behind !== undefined ? { ahead, behind } : { ahead: null, behind: null };
}

/** agentctl chose its name for the worktree. */
export const isOurBranch = (branch: string | null): boolean => branch?.startsWith("agentctl/") === true;

/** The branch to remove with it: agentctl chose its name, and other refs have its commits. */
export const branchGoesWith = ({ branch, isMerged }: WorktreeFacts): boolean => isOurBranch(branch) && isMerged;

/** If several are removed at once, the removed branches of the earlier ones do not count as refs for the later ones. */
export async function judgeInOrder(
  worktrees: readonly WorktreeFacts[],
  repository: Repository,
): Promise<WorktreeFacts[]> {
  const gone: string[] = [];
  const judged: WorktreeFacts[] = [];
  for (const each of worktrees) {
    const { branch, commit } = each;
    const without = branch === null ? gone : [...gone, branch];
    const now = gone.length === 0 ? each : { ...each, ...(await holdersOr(commit, without, repository)) };
    judged.push(now);
    if (branch !== null && branchGoesWith(now)) gone.push(branch);
  }
  return judged;
}
