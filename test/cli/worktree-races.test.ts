// Work that appears while a worktree is being removed, and removals that are killed in the middle: nothing is lost.
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type WorktreeWorld, worktreeWorld } from "./worktree-world.ts";
import { binary } from "./world.ts";

const world = worktreeWorld;
const sweepMs = 120_000;

/** Every place where what was written may be: the worktree, wherever it is now, and every ref. */
async function isSomewhere(here: WorktreeWorld, text: string): Promise<boolean> {
  const folders = existsSync(here.at("")) ? readdirSync(here.at("")) : [];
  const isInFolder = folders
    .map((name) => join(here.at(name), "late"))
    .some((path) => existsSync(path) && readFileSync(path, "utf8").trim() === text);
  const heads = (await here.git("worktree", "list", "--porcelain")).match(/(?<=^HEAD ).*/gm) ?? [];
  const messages = (await here.git("log", "--format=%s", "--glob=refs/*", ...heads)).split("\n");
  return isInFolder || messages.includes(text);
}

/** Repeats it for each call of git from the move of the folder on, until there are no more. */
async function atEveryCall(
  act: (here: WorktreeWorld) => string,
  check: (here: WorktreeWorld, call: number) => Promise<void>,
): Promise<number> {
  for (let call = 1; ; call += 1) {
    await using here = await world();
    await here.ignoring("ignored");
    await here.add("a");
    here.put(join(here.at("a"), "ignored"), "secret");
    // Beside it is another one: the folder around them is never empty.
    mkdirSync(here.at("another"));
    here.atCall(call, act(here));
    await here.remove("a");
    if (!here.wasReached()) return call;
    await check(here, call);
  }
}

/** Where the worktree is now; the script goes on without it where it is gone. */
const inside = (here: WorktreeWorld): string =>
  `cd '${here.at("a")}' 2>/dev/null || cd '${here.at("a")}.agentctl-removing' 2>/dev/null`;
const author = "-c user.name=A -c user.email=a@b";

describe("work that appears at any moment of a removal is still there", () => {
  const cases: [name: string, act: (here: WorktreeWorld) => string][] = [
    [
      "a new file that somebody wants to commit",
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
])("a commit on a detached HEAD that is made %s is still there, or was refused", async (_name, call) => {
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

test(
  "a removal that is killed at any moment loses nothing, and the next command ends it",
  async () => {
    const states = new Set<string>();
    await atEveryCall(
      () => "kill -9 $PPID",
      async (here, call) => {
        // The orphaned git may still be at its work.
        const settled = async (): Promise<string[]> => {
          const folders = readdirSync(here.at("")).filter((name) => name !== "another");
          const listed = (await here.listed()).slice(1).filter((path) => existsSync(path));
          return folders.map((name) => here.at(name)).filter((path) => !listed.includes(path));
        };
        const end = performance.now() + 5_000;
        while ((await settled()).length > 0 && performance.now() < end) await Bun.sleep(10);
        expect([call, await settled()]).toEqual([call, []]);
        const left = readdirSync(here.at("")).filter((name) => name !== "another");
        states.add(left.join());
        for (const name of left) expect(readFileSync(join(here.at(name), "ignored"), "utf8")).toBe("secret");
        rmSync(join(here.root, "bin"), { recursive: true });
        expect(await here.prune()).toMatchObject({ code: 0 });
        expect([call, (await here.listed()).slice(1), readdirSync(here.at(""))]).toEqual([call, [], ["another"]]);
      },
    );
    // It was also hit while it was aside.
    expect([...states].sort()).toEqual(["", "a.agentctl-removing"]);
  },
  sweepMs,
);

/** As a removal leaves it that was killed while it deleted files. */
async function halfRemoved(here: WorktreeWorld): Promise<string> {
  const path = await here.add("a");
  mkdirSync(here.at("another"));
  const admin = await here.git("-C", path, "rev-parse", "--absolute-git-dir");
  const aside = `${path}.agentctl-removing`;
  const mark = JSON.stringify({ from: path, aside, by: { pid: 1, start: "1", boot: "gone" } });
  for (const name of ["index.lock", "HEAD.lock"])
    writeFileSync(join(admin, name), `agentctl is removing this worktree\n${mark}\n`);
  return aside;
}

test("one whose files were being deleted is back in its place, and says what is missing", async () => {
  await using here = await world();
  const aside = await halfRemoved(here);
  await here.git("worktree", "move", here.at("a"), aside);
  rmSync(join(aside, "file"));
  expect((await here.here("worktree", "list")).out).toContain("its removal was interrupted");
  const refused = await here.here("worktree", "remove", "a");
  expect([refused.code, refused.err]).toEqual([5, expect.stringContaining("1 uncommitted: file")]);
  expect(refused.err).toContain("was interrupted; it is back in its place");
  await here.git("-C", here.at("a"), "checkout", "--", "file");
  expect(await here.remove("a")).toMatchObject({ code: 0 });
});

test("one that git itself was moving is back in its place", async () => {
  await using here = await world();
  const aside = await halfRemoved(here);
  renameSync(here.at("a"), aside);
  const pruned = await here.begin([binary, "worktree", "prune", "--dry-run"], { cwd: here.repository }).answer;
  expect(pruned.out).toMatch(/a stays: its folder was moved to .*a\.agentctl-removing/);
  expect((await here.here("worktree", "remove", "nobody")).err).toContain("it is back in its place");
  expect(await here.git("-C", here.at("a"), "status", "--porcelain")).toBe("");
});

test("a removal that still goes on is nobody's to undo", async () => {
  await using here = await world();
  await here.add("a");
  mkdirSync(here.at("another"));
  // The second command finds the first one aside, at work.
  const second = `cd '${here.repository}'; XDG_RUNTIME_DIR= '${binary}' worktree list >'${here.root}/seen' 2>&1`;
  here.replaceGit(`case " $* " in *' worktree remove '*) ${second};; esac`);
  expect(await here.prune()).toMatchObject({ code: 0 });
  expect(here.text("seen")).not.toContain("interrupted");
  expect(existsSync(here.at("a"))).toBe(false);
});

describe("a launch that fails", () => {
  const launch = (here: WorktreeWorld, ...args: string[]) => here.launchHere("x", "--worktree", "--name", "a", ...args);
  const commits = `echo two >file; git ${author} commit -qam two`;

  test.each<[string, string[], number]>([
    ["in its setup", ["--setup", `${commits}; exit 3`], 1],
    ["after its setup", ["--setup", commits, "--", "--no-such-option"], 7],
  ])("%s leaves commits that were made in its worktree, and says where", async (_name, args, code) => {
    await using here = await world();
    const answer = await launch(here, ...args);
    expect([answer.code, answer.err]).toEqual([
      code,
      expect.stringMatching(/a stays, on branch .*: it has commits of its own/),
    ]);
    const tip = await here.git("-C", here.at("a"), "rev-parse", "HEAD");
    expect(await here.refsWith(tip)).toEqual(["refs/heads/agentctl/a"]);
  });

  test.each<[string, string, RegExp]>([
    ["an edit of a tracked file", "echo two >file; exit 3", /a stays, on branch .*: 1 uncommitted: file/],
    ["a repository", "git init -q new && exit 3", /a stays, on branch .*: another repository is inside: new/],
    ["a commit that only a reflog has", `${commits}; git reset -q --hard HEAD~1; exit 3`, /a was removed again/],
  ])("keeps %s of its setup", async (name, setup, said) => {
    await using here = await world();
    const { code, err } = await launch(here, "--setup", setup);
    expect([code, err]).toEqual([1, expect.stringMatching(said)]);
    if (name.startsWith("a commit")) expect(await here.git("for-each-ref", "refs/agentctl")).toContain("removed/a-");
  });

  test("never deletes a branch that was there before, nor one that moved on", async () => {
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
