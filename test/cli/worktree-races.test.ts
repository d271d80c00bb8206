// Work that appears while a worktree is removed is not lost.
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { atEveryCall, createWorktreeHome, type WorktreeTestHome } from "./test-home-worktrees.ts";

const world = createWorktreeHome;
const sweepMs = 120_000;

/** Whether the late work is in the worktree, wherever it is now, or in a ref. */
async function isSomewhere(here: WorktreeTestHome, text: string): Promise<boolean> {
  const folders = existsSync(here.at("")) ? readdirSync(here.at("")) : [];
  const isInFolder = folders
    .map((name) => join(here.at(name), "late"))
    .some((path) => existsSync(path) && readFileSync(path, "utf8").trim() === text);
  const heads = (await here.git("worktree", "list", "--porcelain")).match(/(?<=^HEAD ).*/gm) ?? [];
  const messages = (await here.git("log", "--format=%s", "--glob=refs/*", ...heads)).split("\n");
  return isInFolder || messages.includes(text);
}

/** Enters the worktree where it is now; the script continues without it if it is gone. */
const inside = (here: WorktreeTestHome): string =>
  `cd '${here.at("a")}' 2>/dev/null || cd '${here.at("a")}.agentctl-removing' 2>/dev/null`;
const author = "-c user.name=A -c user.email=a@b";

describe("work that appears at any moment of a removal is kept", () => {
  const cases: [name: string, act: (here: WorktreeTestHome) => string][] = [
    [
      "a new file that a person is about to commit",
      (here) =>
        `${inside(here)} && echo late >late && echo >'${here.root}/wrote' && $git add late 2>/dev/null && $git ${author} commit -qm late 2>/dev/null`,
    ],
    [
      "a commit on its branch that goes around git's locks",
      (here) =>
        `cd '${here.repository}' && commit=$($git ${author} commit-tree -p main -m late main^{tree}) && $git update-ref refs/heads/agentctl/a $commit main 2>/dev/null && echo >'${here.root}/wrote'`,
    ],
  ];
  test.each(cases)(
    "%s",
    async (_name, act) => {
      let written = 0;
      const calls = await atEveryCall(act, async (here, call) => {
        if (!existsSync(join(here.root, "wrote"))) return;
        written += 1;
        expect([call, await isSomewhere(here, "late")]).toEqual([call, true]);
      });
      expect(calls).toBeGreaterThan(10);
      expect(written).toBeGreaterThan(0);
    },
    sweepMs,
  );
});

test.each<[string, string]>([
  ["before the folder is moved", "worktree move|worktree remove"],
  ["during the first look", "status"],
])("a commit on a detached HEAD that is made %s is kept, or was refused", async (_name, call) => {
  await using here = await world();
  await here.add("a");
  const patterns = call
    .split("|")
    .map((words) => `*' ${words} '*`)
    .join("|");
  const act = `cd '${here.at("a")}' && $git checkout -q --detach 2>/dev/null && $git ${author} commit -q --allow-empty -m late && $git rev-parse HEAD >'${here.root}/made'`;
  here.replaceGit(`case " $* " in ${patterns}) [ -e '${here.root}/made' ] || (: >'${here.root}/made'; ${act});; esac`);
  const { code } = await here.remove("a");
  const made = here.text("made");
  expect([code, made === ""]).toEqual(call === "status" ? [5, false] : [0, true]);
  if (made !== "") expect(await isSomewhere(here, "late")).toBe(true);
});

describe("a launch that fails", () => {
  const launch = (here: WorktreeTestHome, ...args: string[]) =>
    here.launchHere("x", "--worktree", "--name", "a", ...args);
  const commits = `echo two >file; git ${author} commit -qam two`;

  test.each<[string, string[], number]>([
    ["in its setup", ["--setup", `${commits}; exit 3`], 1],
    ["after its setup", ["--setup", commits, "--", "--no-such-option"], 7],
  ])("%s keeps commits that were made in its worktree, and says where", async (_name, args, code) => {
    await using here = await world();
    const answer = await launch(here, ...args);
    expect([answer.code, answer.err]).toEqual([
      code,
      expect.stringMatching(/a was kept, on branch .*: it has new commits/),
    ]);
    const tip = await here.git("-C", here.at("a"), "rev-parse", "HEAD");
    expect(await here.refsWith(tip)).toEqual(["refs/heads/agentctl/a"]);
  });

  test.each<[string, string, RegExp]>([
    ["an edit of a tracked file", "echo two >file; exit 3", /a was kept, on branch .*: 1 uncommitted file: file/],
    ["a repository", "git init -q new && exit 3", /a was kept, on branch .*: another repository is inside: new/],
    [
      "a commit that only a reflog has",
      `${commits}; git reset -q --hard HEAD~1; exit 3`,
      /removed the new worktree .*a/,
    ],
  ])("keeps %s of its setup", async (name, setup, said) => {
    await using here = await world();
    const { code, err } = await launch(here, "--setup", setup);
    expect([code, err]).toEqual([1, expect.stringMatching(said)]);
    if (name.startsWith("a commit")) expect(await here.git("for-each-ref", "refs/agentctl")).toContain("removed/a-");
  });

  test("never deletes a branch that existed before or has new commits", async () => {
    await using here = await world();
    await here.git("branch", "topic");
    const failed = await here.launchHere("x", "--worktree=topic", "--setup", "exit 3");
    expect([failed.code, existsSync(here.at("topic"))]).toEqual([1, false]);
    expect(await here.git("branch", "--list", "topic")).toContain("topic");
    const commit = await here.git("commit-tree", "-p", "main", "-m", "theirs", "main^{tree}");
    here.replaceGit(
      `case " $* " in *" worktree add "*) $git -C "$2" branch agentctl/a ${commit}; echo broken >&2; exit 128;; esac`,
    );
    expect((await launch(here)).code).toBe(1);
    expect(await here.refsWith(commit)).toEqual(["refs/heads/agentctl/a"]);
  });
});
