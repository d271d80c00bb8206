// A repository that came from elsewhere can hold anything below its .git, also what looks like a removal of agentctl's that was
// interrupted. Undoing that must not move a folder to a place that the repository chooses.
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type RepositoryWorld, repositoryWorld } from "../cli/repository.ts";

/** A folder inside of the repository that claims to be a worktree, whose removal was interrupted. */
function forge(here: RepositoryWorld, folder: string, { from, aside }: { from: string; aside: string }): void {
  const admin = join(here.repository, ".git/worktrees/w");
  mkdirSync(admin, { recursive: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, ".git"), `gitdir: ${admin}\n`);
  writeFileSync(join(folder, "config"), "[core]\n\tfsmonitor = false\n");
  writeFileSync(join(admin, "HEAD"), "ref: refs/heads/main\n");
  writeFileSync(join(admin, "commondir"), "../..\n");
  writeFileSync(join(admin, "gitdir"), `${join(folder, ".git")}\n`);
  const mark = `agentctl is removing this worktree\n${JSON.stringify({ from, aside, by: null })}\n`;
  writeFileSync(join(admin, "index.lock"), mark);
}

test.each(["absolute", "relative", "through a link", "with .. in it"])(
  "a forged mark of a removal moves nothing out of its folder: %s",
  async (kind) => {
    await using here = await repositoryWorld();
    const target = here.folder("settings");
    const inside = join(here.repository, "payload");
    symlinkSync(target, join(here.repository, "link"));
    const [folder, from, aside] = {
      absolute: [inside, join(target, "git"), inside],
      relative: [inside, "../settings/git", "payload"],
      "through a link": [join(here.repository, "link/git.agentctl-removing"), join(here.repository, "link/git")],
      "with .. in it": [join(here.repository, "x/../payload.agentctl-removing"), join(here.repository, "x/../payload")],
    }[kind] as [string, string, string?];
    forge(here, folder, { from, aside: aside ?? folder });
    const before = readdirSync(target);
    for (const words of [
      ["worktree", "prune", "-y"],
      ["worktree", "remove", "nosuch"],
    ])
      await here.here(...words);
    expect(readdirSync(target)).toEqual(before);
    expect(existsSync(join(target, "git"))).toBe(false);
  },
);
