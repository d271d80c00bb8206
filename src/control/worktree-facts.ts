// What is true of a repository's worktrees now: who works there, what is in them that is nowhere else, and what they take.
import { lstatSync } from "node:fs";
import { join } from "node:path";
import { isLive, type ProcessRow } from "../core/process.ts";
import type { Session } from "../core/session.ts";
import { errorCode } from "../observe/failure.ts";
import type { Environment } from "../observe/homes.ts";
import { openBelow } from "../observe/open-files.ts";
import { placeOf } from "../observe/place.ts";
import { readProcesses } from "../observe/processes.ts";
import { git } from "./git.ts";
import { CannotTell } from "./git-fact.ts";
import { interruptedRemoval } from "./hold-worktree.ts";
import { type Holders, holdersOf } from "./lasting-refs.ts";
import { commonFolder, type Repository } from "./repository.ts";
import {
  type AdminFacts,
  adminFacts,
  adminFolders,
  adminNamedBy,
  listWorktrees,
  realLocation,
  type WorktreeEntry,
} from "./worktree-admin.ts";
import { checkFolder, type Files, filesIn, isTracked } from "./worktree-contents.ts";
import { type FolderLook, lookAtFolder } from "./worktree-folder.ts";
import { type Presence, presenceOf } from "./worktree-presence.ts";
import { folderFor } from "./worktrees.ts";

export interface WorktreeFacts {
  path: string;
  /** null: a detached HEAD. */
  branch: string | null;
  commit: string | null;
  isMain: boolean;
  /** In the folder where agentctl makes them. */
  isOurs: boolean;
  presence: Presence;
  isLocked: boolean;
  /** The folder that git keeps for it inside of the repository; null: the main worktree, or git's data contradict each other. */
  admin: string | null;
  contents: Contents;
  /** What lies inside and is not its own: nothing removes it, not even a wish to discard. */
  inside: string[];
  /** A removal of ours was killed in the middle. */
  isHalfRemoved: boolean;
  /** Against the branch of the main worktree; null: there is none to compare with. */
  ahead: number | null;
  behind: number | null;
  /** A branch or a tag that stays has its commits. */
  isMerged: boolean;
  /** A remote branch has its commits. */
  isPushed: boolean;
  bytes: number;
  sessions: Session[];
  /** Processes of this user that work in it or below, or have a file of it open. */
  standing: Standing[];
}

/** What is in a worktree beside its commits. */
export type Contents = ({ known: true } & Files & AdminFacts) | { known: false; why: string };

export interface Standing {
  pid: number;
  name: string;
  /** This command, or whoever called it. */
  role: "self" | "caller" | "other";
  /** A file of it that the process has open; null: it works in there. */
  file: string | null;
}

/** Who may be in them. */
export interface Inhabitants {
  sessions: readonly Session[];
  /** Of this user; none: nobody has looked. */
  processes: readonly ProcessRow[];
  /** This command and everything above it. */
  callerPids: ReadonlySet<number>;
}

/** Every process of this user, for a look without sessions. */
export function processesNow(callerPids: ReadonlySet<number>): Inhabitants {
  const none = { names: new Set<string>(), pids: new Set<number>(), environment: new Set<string>(), lockedFiles: [] };
  const table = readProcesses({ ...none, also: "ours" });
  if (!table.ok) throw new CannotTell(`the process table cannot be read: ${table.problem.message}`);
  return { sessions: [], processes: table.value.rows, callerPids };
}

/**
 * `lookAround` is called once it is known which worktrees there are: whoever makes one stands in it from its beginning. `only`:
 * the one that is asked about.
 */
export async function worktreeFacts(
  repository: Repository,
  lookAround: () => Promise<Inhabitants>,
  env: Environment,
  only: string | null = null,
): Promise<WorktreeFacts[]> {
  const { main, isBare } = repository;
  const entries = await listWorktrees(repository, env);
  const trunk = isBare ? (await git(main, ["rev-parse", "--verify", "--quiet", "HEAD"], env)).out.trim() : null;
  const against = trunk ?? entries[0]?.commit ?? null;
  const mainPath = isBare ? null : (entries[0]?.path ?? null);
  const around = await lookAround();
  const admins = adminFolders(commonFolder(repository));
  const wanted = entries.filter((entry) => !entry.isBare && (only === null || entry.path === only));
  return await Promise.all(
    wanted.map((entry) =>
      factsOf(entry, {
        ...{ repository, against, around, env, isMain: entry.path === mainPath },
        admin: admins.get(realLocation(entry.path)) ?? null,
        others: entries.filter(({ path }) => path !== entry.path).map(({ path }) => path),
      }),
    ),
  );
}

interface Circumstances {
  repository: Repository;
  against: string | null;
  around: Inhabitants;
  env: Environment;
  isMain: boolean;
  admin: string | null;
  /** The other worktrees of the repository. */
  others: readonly string[];
}

async function factsOf(entry: WorktreeEntry, circumstances: Circumstances): Promise<WorktreeFacts> {
  const { repository, against, around, env, isMain, admin, others } = circumstances;
  const { path, commit, branch } = entry;
  const presence = presenceOf(entry, admin);
  const isThere = presence.kind === "there";
  const look = isThere ? lookAtFolder(path) : null;
  const [contents, counts, holders] = await Promise.all([
    contentsOf(entry, look, admin, env),
    countsAgainst(against, commit, repository, env),
    holdersOr(commit, branch === null ? [] : [branch], repository, env),
  ]);
  return {
    path,
    branch,
    commit,
    isMain,
    isOurs: path.startsWith(`${folderFor(repository.main, env)}/`),
    presence,
    isLocked: entry.isLocked,
    admin,
    contents,
    inside: isMain || look === null ? [] : strangersIn(path, look, contents, admin, others),
    isHalfRemoved: admin !== null && interruptedRemoval(admin) !== null,
    ...counts,
    ...(isMain ? { ...holders, isMerged: counts.ahead === 0 } : holders),
    bytes: look?.bytes ?? 0,
    sessions: around.sessions.filter(({ cwd }) => placeOf(cwd) === path),
    standing: isThere ? standingIn(realLocation(path), around) : [],
  };
}

async function contentsOf(
  { path }: WorktreeEntry,
  look: FolderLook | null,
  admin: string | null,
  env: Environment,
): Promise<Contents> {
  try {
    if (look !== null && admin !== null) await checkFolder(path, env);
    const files = look === null ? noFiles : await filesIn(path, look, env);
    // The main worktree has no admin folder, and is never removed.
    const kept = admin === null ? nothingKept : await adminFacts(admin, env);
    return { known: true, ...files, ...kept, dirty: look === null ? kept.staged : files.dirty };
  } catch (error) {
    if (error instanceof CannotTell) return { known: false, why: error.message };
    throw error;
  }
}

const noFiles: Files = { dirty: [], untracked: [], ignored: [], hidden: [], unseen: [] };
const nothingKept: AdminFacts = { unfinished: [], hasModules: false, staged: [] };

async function holdersOr(
  commit: string | null,
  without: readonly string[],
  repository: Repository,
  env: Environment,
): Promise<Holders> {
  try {
    if (commit !== null) return await holdersOf(commit, without, repository, env);
  } catch (error) {
    if (!(error instanceof CannotTell)) throw error;
  }
  return { isMerged: false, isPushed: false };
}

/** Other worktrees, other repositories and other file systems. */
function strangersIn(
  path: string,
  look: FolderLook,
  contents: Contents,
  admin: string | null,
  others: readonly string[],
): string[] {
  const modules = admin === null ? null : join(admin, "modules");
  const isOwn = ({ path: below, kind }: FolderLook["repositories"][number]): boolean => {
    if (kind === "bare") return contents.known && isTracked(below, look, contents);
    return modules !== null && adminNamedBy(join(path, below))?.startsWith(`${modules}/`) === true;
  };
  const real = realLocation(path);
  const worktrees = others.filter((other) => realLocation(other).startsWith(`${real}/`));
  const isListed = (below: string): boolean => worktrees.includes(join(path, below));
  const repositories = look.repositories.filter((each) => !isOwn(each) && !isListed(each.path));
  return [
    ...(admin === null
      ? [`git's data about it are inconsistent (git worktree repair ${path})`]
      : notItself(path, admin)),
    ...naming("another worktree is inside", worktrees),
    ...naming(
      "another repository is inside",
      repositories.map((each) => each.path || "its own folder"),
    ),
    ...naming("another file system is mounted inside", look.mounts),
  ];
}

const naming = (what: string, paths: readonly string[]): string[] =>
  paths.length === 0 ? [] : [`${what}: ${someOf(paths)}`];

/** What is at its path must be what git means. */
function notItself(path: string, admin: string): string[] {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return ["its path is a symbolic link"];
  if (adminNamedBy(path) === admin) return [];
  return isThere(join(path, ".git"))
    ? ["the .git in its folder belongs to another repository"]
    : ["its folder has no .git any more (git worktree repair)"];
}

function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return true;
  }
}

const standingIn = (path: string, { processes, callerPids }: Inhabitants): Standing[] =>
  processes.flatMap((row) => {
    if (!isLive(row) || row.detail?.ours !== true) return [];
    const { pid } = row.identity;
    const isInside = isBelow(row.detail.cwd, path);
    const file = isInside || pid === process.pid ? null : openBelow(path, pid);
    if (!isInside && file === null) return [];
    const role = pid === process.pid ? "self" : callerPids.has(pid) ? "caller" : "other";
    return [{ pid, name: row.name, role, file }];
  });

const isBelow = (cwd: string | null, folder: string): boolean =>
  cwd === folder || cwd?.startsWith(`${folder}/`) === true;

async function countsAgainst(
  against: string | null,
  commit: string | null,
  { main }: Repository,
  env: Environment,
): Promise<Pick<WorktreeFacts, "ahead" | "behind">> {
  if (against === null || commit === null) return { ahead: null, behind: null };
  const { ok, out } = await git(main, ["rev-list", "--left-right", "--count", `${against}...${commit}`], env);
  const [behind, ahead] = out.trim().split(/\s+/).map(Number);
  return ok && ahead !== undefined && behind !== undefined ? { ahead, behind } : { ahead: null, behind: null };
}

/** agentctl named it, for the worktree. */
export const isOurBranch = (branch: string | null): boolean => branch?.startsWith("agentctl/") === true;

/** Its branch goes with it: agentctl named it, and its commits are elsewhere. */
export const branchGoesWith = ({ branch, isMerged }: WorktreeFacts): boolean => isOurBranch(branch) && isMerged;

/** Where several would go at once, the branches of the earlier ones keep no commits for the later ones. */
export async function oneAfterTheOther(
  worktrees: readonly WorktreeFacts[],
  repository: Repository,
  env: Environment,
): Promise<WorktreeFacts[]> {
  const gone: string[] = [];
  const judged: WorktreeFacts[] = [];
  for (const each of worktrees) {
    const { branch, commit } = each;
    const without = branch === null ? gone : [...gone, branch];
    const now = gone.length === 0 ? each : { ...each, ...(await holdersOr(commit, without, repository, env)) };
    judged.push(now);
    if (branch !== null && branchGoesWith(now)) gone.push(branch);
  }
  return judged;
}

const mostTold = 3;

/** The first ones, and how many more there are. */
export const someOf = (paths: readonly string[]): string =>
  [...paths.slice(0, mostTold), ...(paths.length > mostTold ? [`and ${paths.length - mostTold} more`] : [])].join(", ");
