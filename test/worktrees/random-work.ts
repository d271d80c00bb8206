// Random work in a worktree, as a person or an agent may have left it.
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Dice } from "../truth/random.ts";
import { gitDirOf } from "./inventory.ts";
import { type Site, type Templates, type TestRepository, unreadableFolder } from "./test-repository.ts";

export interface Scene {
  world: TestRepository;
  site: Site;
  dice: Dice;
  templates: Templates;
}

/** False: it makes no sense here. */
type Put = (scene: Scene) => boolean;
export type Choices = Record<string, [weight: number, put: Put]>;

export function drawFrom(choices: Choices, dice: Dice): [name: string, put: Put] {
  const all = Object.entries(choices);
  let rest = dice.next() * all.reduce((sum, [, [weight]]) => sum + weight, 0);
  const [name, [, put]] =
    all.find(([, [weight]]) => {
      rest -= weight;
      return rest < 0;
    }) ?? dice.pick(all);
  return [name, put];
}

/** One more file in a place, said to git in a way that hides the edit. */
const hiddenEdit =
  (flag: string, label: string): Put =>
  ({ world, site: { path } }) => {
    if (!existsSync(join(path, "b.txt"))) return false;
    world.git(path, "update-index", flag, "b.txt");
    world.write(join(path, "b.txt"), label);
    return true;
  };

function commitAndPush({ world, site, dice }: Scene): boolean {
  if (world.kind === "alone" || isBusy(site)) return false;
  world.commit(site.path, "pushed commit");
  world.git(site.path, "push", "-q", "-f", "origin", `HEAD:refs/heads/pushed-${dice.below(1000)}`);
  return true;
}

export const contents: Choices = {
  "commits that are nowhere else": [
    2,
    ({ world, site }) => {
      if (isBusy(site)) return false;
      world.commit(site.path, "commit");
      return true;
    },
  ],
  "commits, pushed": [3, (scene) => commitAndPush(scene)],
  "commits, pushed, and one more": [
    1,
    (scene) => {
      if (!commitAndPush(scene)) return false;
      scene.world.commit(scene.site.path, "commit after a push");
      return true;
    },
  ],
  "commits, merged": [
    3,
    ({ world, site, dice }) => {
      if (world.kind === "bare" || isBusy(site)) return false;
      world.commit(site.path, "merged commit");
      const id = world.git(site.path, "rev-parse", "HEAD");
      const fastForward = dice.pick(["--ff", "--no-ff"]);
      return world.tryGit(world.repository, ["merge", "-q", fastForward, "-m", "merged commit", id]).code === 0;
    },
  ],
  "edited file": [
    1,
    ({ world, site }) => {
      world.write(join(site.path, "a.txt"), "edited file");
      return true;
    },
  ],
  "staged file, edited again": [
    1,
    ({ world, site }) => {
      world.write(join(site.path, "staged"), "staged file");
      world.git(site.path, "add", "--sparse", "staged");
      world.write(join(site.path, "staged"), "staged file, edited again");
      return true;
    },
  ],
  "staged file, removed again": [
    1,
    ({ world, site }) => {
      world.write(join(site.path, "staged-only"), "staged file, removed again");
      world.git(site.path, "add", "--sparse", "staged-only");
      rmSync(join(site.path, "staged-only"));
      return true;
    },
  ],
  "untracked file": [
    1,
    ({ world, site }) => {
      world.write(join(site.path, "some", "new file"), "untracked file");
      return true;
    },
  ],
  "ignored files": [
    3,
    ({ world, site: { path } }) => {
      world.write(join(path, "debug.log"), "ignored file");
      world.write(join(path, "ignored", "deep", "file"), "ignored file");
      return true;
    },
  ],
  "ignored link to the main worktree": [
    1,
    ({ world, site: { path } }) => {
      const link = join(path, "ignored", "link");
      if (existsSync(link)) return false;
      mkdirSync(dirname(link), { recursive: true });
      symlinkSync(world.repository, link);
      return true;
    },
  ],
  "nested worktree below an ignored folder": [
    4,
    ({ world, site: { path }, dice }) => {
      const nested = join(path, ".claude/worktrees", `nested-${dice.below(1000)}`);
      if (existsSync(nested)) return false;
      world.git(path, "worktree", "add", "-q", "--detach", nested);
      if (dice.chance(0.5)) world.commit(nested, "nested worktree below an ignored folder");
      else world.write(join(nested, "new"), "nested worktree below an ignored folder");
      return true;
    },
  ],
  "nested worktree of another repository": [
    1,
    ({ world, site: { path }, templates, dice }) => {
      const number = dice.below(1000);
      const other = join(world.area, `other-${number}`);
      if (existsSync(other)) return false;
      templates.nested(other);
      world.git(other, "worktree", "add", "-q", "--detach", join(path, "ignored", `other-${number}`));
      world.write(join(path, "ignored", `other-${number}`, "new"), "nested worktree of another repository");
      return true;
    },
  ],
  "ignored nested repository": [
    4,
    ({ world, site: { path }, templates, dice }) => {
      const nested = join(path, dice.pick(["ignored/nested", ".claude/deep/nested"]));
      if (existsSync(nested)) return false;
      templates.nested(nested);
      if (dice.chance(0.5)) world.commit(nested, "ignored nested repository");
      else world.write(join(nested, "new"), "ignored nested repository");
      return true;
    },
  ],
  "ignored bare repository": [
    1,
    ({ world, site: { path }, templates }) => {
      const nested = join(path, "ignored", "store");
      if (existsSync(`${nested}.git`)) return false;
      templates.nested(nested);
      world.commit(nested, "ignored bare repository");
      renameSync(join(nested, ".git"), `${nested}.git`);
      rmSync(nested, { recursive: true });
      world.git(`${nested}.git`, "config", "core.bare", "true");
      return true;
    },
  ],
  "untracked nested repository": [
    1,
    ({ world, site: { path }, templates }) => {
      const nested = join(path, "nested");
      if (existsSync(nested)) return false;
      templates.nested(nested);
      world.commit(nested, "untracked nested repository");
      return true;
    },
  ],
  "edit under skip-worktree": [3, hiddenEdit("--skip-worktree", "edit under skip-worktree")],
  "edit under assume-unchanged": [3, hiddenEdit("--assume-unchanged", "edit under assume-unchanged")],
  "edit outside of a sparse checkout": [
    1,
    ({ world, site: { path }, dice }) => {
      if (world.tryGit(path, ["sparse-checkout", "set", "--no-cone", "/deep/", "/.gitignore"]).code !== 0) return false;
      if (dice.chance(0.5)) world.git(path, "config", "sparse.expectFilesOutsideOfPatterns", "true");
      world.write(join(path, "a.txt"), "edit outside of a sparse checkout");
      return true;
    },
  ],
  "same-size edit right after a checkout": [
    1,
    ({ world, site: { path } }) => {
      if (!existsSync(join(path, "deep/c.txt"))) return false;
      world.write(join(path, "racy"), "before a same-size edit");
      world.git(path, "add", "--sparse", "racy");
      if (world.tryGit(path, ["commit", "-q", "-m", "before a same-size edit", "--", "racy"]).code !== 0) return false;
      world.write(join(path, "racy"), "beyond same-size edits ");
      return true;
    },
  ],
  "rebase with an autostash": [
    4,
    ({ world, site, dice }) => {
      if (isBusy(site) || !existsSync(join(site.path, "a.txt"))) return false;
      const { path } = site;
      world.write(join(path, "a.txt"), "autostash of a rebase");
      // A rebase that stops at `break` has a clean worktree; one that stops at a conflict does not.
      const todo = dice.chance(0.7) ? "break" : "exec false";
      const env = { GIT_SEQUENCE_EDITOR: `sed -i '1i ${todo}'`, GIT_EDITOR: "true" };
      world.tryGit(path, ["rebase", "-q", "-i", "--autostash", "HEAD~1"], { env });
      return true;
    },
  ],
  "merge or cherry-pick that stopped in a conflict": [
    1,
    ({ world, site, dice }) => {
      if (isBusy(site)) return false;
      const { path } = site;
      const other = dice.pick(["merge", "cherry-pick"]);
      const id = world.git(path, "rev-parse", "HEAD");
      world.write(join(path, "a.txt"), "one side of a conflict");
      if (world.tryGit(path, ["commit", "-q", "-m", "one side of a conflict", "--", "a.txt"]).code !== 0) return false;
      const side = world.git(path, "rev-parse", "HEAD");
      world.git(path, "update-ref", `refs/heads/side-${world.story.length}`, side);
      world.git(path, "reset", "-q", "--hard", id);
      world.write(join(path, "a.txt"), "other side of a conflict");
      world.git(path, "commit", "-q", "-m", "other side of a conflict", "--", "a.txt");
      world.tryGit(path, [other, side]);
      return true;
    },
  ],
  bisect: [
    1,
    ({ world, site }) => {
      if (isBusy(site) || world.tryGit(site.path, ["rev-parse", "-q", "--verify", "HEAD~2"]).code !== 0) return false;
      return world.tryGit(site.path, ["bisect", "start", "HEAD", "HEAD~2"]).code === 0;
    },
  ],
  "detached HEAD with commits": [
    2,
    ({ world, site, dice }) => {
      if (isBusy(site)) return false;
      world.git(site.path, "checkout", "-q", "--detach");
      world.commit(site.path, "commit of a detached worktree");
      if (dice.chance(0.5) && site.branch !== null) {
        // Back at a commit that is merged: only the refs of this worktree hold the other one.
        world.git(site.path, "update-ref", "refs/worktree/keep", "HEAD");
        world.git(site.path, "checkout", "-q", "HEAD~1");
      }
      return true;
    },
  ],
  "ref of one worktree": [
    1,
    ({ world, site: { path } }) => {
      const message = world.text("ref of one worktree").trim();
      const id = world.git(path, "commit-tree", "-p", "HEAD", "-m", message, "HEAD^{tree}");
      world.git(path, "update-ref", "refs/worktree/own", id);
      return true;
    },
  ],
  stash: [
    1,
    ({ world, site }) => {
      if (isBusy(site)) return false;
      world.write(join(site.path, "a.txt"), "stash");
      return world.tryGit(site.path, ["stash", "push", "-q"]).code === 0;
    },
  ],
  "submodule with commits": [
    2,
    ({ world, site: { path }, dice }) => {
      if (world.kind !== "modules" || world.tryGit(path, ["submodule", "--quiet", "update", "--init"]).code !== 0)
        return false;
      const module = join(path, "module");
      world.commit(module, "commit in a submodule");
      if (dice.chance(0.5)) {
        world.git(module, "branch", `own-${world.story.length}`);
        world.git(module, "checkout", "-q", "--detach", "HEAD~1");
      }
      return true;
    },
  ],
  "second worktree of the same commits": [
    1,
    ({ world, site, dice }) => {
      const path = join(world.folder, `twin-${dice.below(1000)}`);
      if (existsSync(path) || isBusy(site)) return false;
      world.commit(site.path, "commit of two worktrees");
      const branch = `agentctl/${basename(path)}`;
      // The folder may be closed, or on a disk that is not mounted.
      if (world.tryGit(site.path, ["worktree", "add", "-q", "-b", branch, path, "HEAD"]).code !== 0) return false;
      world.sites.push({ path, name: basename(path), branch, state: "plain" });
      return true;
    },
  ],
  "unreadable folder": [
    3,
    ({ world, site: { path } }) => {
      const folder = join(path, "unreadable");
      if (existsSync(folder)) return false;
      world.write(join(folder, "file"), "file in an unreadable folder");
      const work = unreadableFolder(folder);
      // Between acts the others are closed already.
      work.drop();
      world.hiddenWork.push(work);
      return true;
    },
  ],
};

/** A rebase, a merge, a bisect or the like is in progress: git would refuse, or do something else. */
function isBusy(site: Site): boolean {
  const own = gitDirOf(site.path);
  return ["rebase-merge", "rebase-apply", "MERGE_HEAD", "CHERRY_PICK_HEAD", "BISECT_LOG"].some((name) =>
    existsSync(join(own, name)),
  );
}
