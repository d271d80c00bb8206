// Which commits still have a ref after a worktree and its branch are removed, and how a branch is deleted without losing commits.

import { join } from "node:path";
import { tryOr } from "../../lib/errors.ts";
import { readText } from "../../observe/files.ts";
import { adminFolders, listWorktrees } from "../worktrees/admin-folder.ts";
import { CannotTell, git, gitFact } from "./git.ts";
import { commonFolder, type Repository } from "./repository.ts";

export interface Holders {
  /** A local branch or a tag has the commit. */
  isMerged: boolean;
  /** A remote-tracking branch has the commit. */
  isPushed: boolean;
}

/** `without`: branches that do not count because they are removed, too. A HEAD never counts: it moves. */
export async function holdersOf(
  commit: string,
  without: readonly string[],
  { main, env }: Repository,
): Promise<Holders> {
  // A symbolic ref keeps no commits of its own.
  const format = "%(if)%(symref)%(then)%(else)%(refname)%(end)";
  const kinds = ["refs/heads", "refs/tags", "refs/remotes"];
  const out = await gitFact(main, ["for-each-ref", "--contains", commit, `--format=${format}`, ...kinds], env);
  const gone = new Set(without.map((branch) => `refs/heads/${branch}`));
  const refs = out.split("\n").filter((ref) => ref !== "" && !gone.has(ref));
  const isRemote = (ref: string): boolean => ref.startsWith("refs/remotes/");
  return { isMerged: refs.some((ref) => !isRemote(ref)), isPushed: refs.some(isRemote) };
}

const maxTips = 5_000;

/** The newest commits below `tips` that no ref and no commit in `known` contains; `without` as above. */
export async function unnamedCommits(
  tips: readonly string[],
  { without, known }: { without: readonly string[]; known: readonly string[] },
  { main, env }: Repository,
): Promise<string[]> {
  const symbolic = await gitFact(main, ["for-each-ref", "--format=%(if)%(symref)%(then)%(refname)%(end)"], env);
  const perWorktree = ["refs/bisect/*", "refs/worktree/*", "refs/rewritten/*"];
  const excluded = [...without.map((branch) => `refs/heads/${branch}`), ...symbolic.split("\n"), ...perWorktree];
  const exclusions = excluded.filter((ref) => ref !== "").map((ref) => `--exclude=${ref}`);
  const lasting = [...known, ...exclusions, "--glob=refs/*"];
  const commits = new Set<string>();
  const parents = new Set<string>();
  for (let first = 0; first < tips.length; first += maxTips) {
    const some = tips.slice(first, first + maxTips);
    const out = await gitFact(main, ["rev-list", "--parents", "--ignore-missing", ...some, "--not", ...lasting], env);
    for (const line of out.split("\n")) {
      const [commit = "", ...above] = line.split(" ");
      if (commit !== "") commits.add(commit);
      for (const parent of above) parents.add(parent);
    }
  }
  return [...commits].filter((commit) => !parents.has(commit));
}

/** Keeps commits that only a reflog has: creates a commit with them as parents, and a ref to it. */
export async function keepUnder(name: string, commits: readonly string[], { main, env }: Repository): Promise<string> {
  const agentctl = Object.fromEntries(
    ["AUTHOR", "COMMITTER"].flatMap((who) => [
      [`GIT_${who}_NAME`, "agentctl"],
      [`GIT_${who}_EMAIL`, "agentctl@localhost"],
    ]),
  );
  const tree = `${commits[0]}^{tree}`;
  const message = `Commits that only the reflog of the removed worktree ${name} had`;
  const parents = commits.flatMap((commit) => ["-p", commit]);
  const kept = (await gitFact(main, ["commit-tree", ...parents, "-m", message, tree], env, agentctl)).trim();
  const ref = `refs/agentctl/removed/${name.replace(/[^A-Za-z0-9_-]+/g, "-")}-${kept.slice(0, 12)}`;
  await gitFact(main, ["update-ref", ref, kept, "0".repeat(kept.length)], env);
  return ref;
}

/**
 * Deletes a branch only if it is still at the given commit and no worktree uses it. true: it was deleted. If its commits must
 * keep a ref, the branch is restored when the ref that had them was deleted at the same moment.
 */
export async function deleteBranch(
  branch: string,
  commit: string,
  commits: "must-stay-named" | "may-lose-their-name",
  repository: Repository,
): Promise<boolean> {
  const { main, env } = repository;
  if (await isInUse(branch, repository)) return false;
  const ref = `refs/heads/${branch}`;
  if (!(await git(main, ["update-ref", "--no-deref", "-d", ref, commit], env)).ok) return false;
  if (commits === "must-stay-named" && (await isUnnamed(commit, repository))) {
    await gitFact(main, ["update-ref", ref, commit, "0".repeat(commit.length)], env);
    return false;
  }
  // Git fails if the branch has no section in the configuration, which is usual.
  await git(main, ["config", "--local", "--remove-section", `branch.${branch}`], env);
  return true;
}

/** True also if git cannot tell. */
async function isUnnamed(commit: string, repository: Repository): Promise<boolean> {
  try {
    return (await unnamedCommits([commit], { without: [], known: [] }, repository)).length > 0;
  } catch (error) {
    if (error instanceof CannotTell) return true;
    throw error;
  }
}

/** Checked out, or part of a rebase or a bisect, in any worktree. */
async function isInUse(branch: string, repository: Repository): Promise<boolean> {
  const entries = await listWorktrees(repository);
  if (entries.some((entry) => entry.branch === branch)) return true;
  const common = commonFolder(repository);
  const files = ["rebase-merge/head-name", "rebase-apply/head-name", "rebase-merge/update-refs", "BISECT_START"];
  const names = [branch, `refs/heads/${branch}`];
  const linesIn = (path: string): string[] => tryOr("", () => readText(path)).split("\n");
  return [common, ...adminFolders(common).values()]
    .flatMap((folder) => files.flatMap((file) => linesIn(join(folder, file))))
    .some((line) => names.includes(line.trim()));
}
