// A repository from elsewhere may contain files that look like an interrupted worktree removal. Undoing it must not move a folder to
// a path that the repository chose.
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createRepositoryHome, type RepositoryTestHome } from "../cli/test-home-repository.ts";

/** A folder inside of the repository that claims to be a worktree, whose removal was interrupted. */
function forge(here: RepositoryTestHome, folder: string, { from, aside }: { from: string; aside: string }): void {
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
  "a forged removal moves nothing out of its folder: %s",
  async (kind) => {
    await using here = await createRepositoryHome();
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
