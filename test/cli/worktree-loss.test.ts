// Removing a worktree loses no work, including work that `git status` does not show.
import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { untilNextSecond, waitFor } from "../conformance/wait.ts";
import { binary } from "./test-home.ts";
import { createWorktreeHome, type WorktreeTestHome } from "./test-home-worktrees.ts";

const world = createWorktreeHome;

/** Neither prune nor remove takes it, and both say why; `final`: nor does --discard. */
async function expectKept(here: WorktreeTestHome, name: string, why: RegExp, discard: "final" | "not-final") {
  const pruned = await here.prune();
  expect(pruned.err).toMatch(why);
  await expectNotRemoved(here, name, why, discard);
}

async function expectNotRemoved(here: WorktreeTestHome, name: string, why: RegExp, discard: "final" | "not-final") {
  const removed = await here.remove(name);
  expect([removed.code, removed.err]).toEqual([5, expect.stringMatching(why)]);
  if (discard === "final") {
    const discarded = await here.remove(name, "--discard");
    expect([discarded.code, discarded.err]).toEqual([5, expect.stringMatching(why)]);
  }
  expect(await here.listed()).toContain(here.at(name));
  expect(existsSync(here.at(name))).toBe(true);
}

describe("a worktree is kept because of", () => {
  test("another worktree below an ignored folder", async () => {
    await using here = await world();
    await here.ignoring(".claude/");
    const path = await here.add("a");
    const nested = join(path, ".claude", "worktrees", "b");
    await here.git("worktree", "add", "-q", "-b", "b", nested);
    here.put(join(nested, "work"), "work");
    await expectKept(here, "a", /another worktree is inside: .*\.claude\/worktrees\/b/, "final");
    expect(readFileSync(join(nested, "work"), "utf8")).toBe("work");
  });

  test("another repository below an ignored folder, checked out or bare, of git or of another tool", async () => {
    await using here = await world();
    await here.ignoring("vendor/");
    const names = ["git", "bare", "linked", "unmounted", ".hg", "_darcs", ".pijul"];
    for (const name of names) await here.add(name);
    const inside = (name: string): string => join(here.at(name), "vendor", "x");
    await here.git("init", "-q", inside("git"));
    const commit = await here.commit(inside("git"), "f", "only here");
    for (const name of ["bare", "linked", "unmounted"]) await here.git("init", "-q", "--bare", inside(name));
    // As Android's `repo` lays them out, and with the other folder on a disk that may not be mounted.
    for (const name of ["objects", "refs"]) {
      renameSync(join(inside("linked"), name), join(here.at("linked"), "vendor", name));
      symlinkSync(join("..", name), join(inside("linked"), name));
    }
    rmSync(join(inside("unmounted"), "objects"), { recursive: true });
    symlinkSync(join(here.root, "disk", "objects"), join(inside("unmounted"), "objects"));
    for (const name of names.slice(4)) mkdirSync(join(inside(name), name), { recursive: true });
    const why = /another repository is inside: vendor\/x/;
    expect((await here.prune()).err.split("\n").filter((line) => why.test(line))).toHaveLength(names.length);
    for (const name of names) await expectNotRemoved(here, name, why, "final");
    expect(await here.git("-C", inside("git"), "rev-parse", "HEAD")).toBe(commit);
  });

  test.each(["--skip-worktree", "--assume-unchanged"])("an edit that %s hides", async (flag) => {
    await using here = await world();
    const path = await here.add("a");
    await here.git("-C", path, "update-index", flag, "file");
    writeFileSync(join(path, "file"), "edited\n");
    await expectKept(here, "a", /1 file changed where git does not look \(skip-worktree, .*\): file/, "not-final");
    expect(readFileSync(join(path, "file"), "utf8")).toBe("edited\n");
    // The flag alone hides nothing.
    writeFileSync(join(path, "file"), "one\n");
    expect(await here.prune()).toMatchObject({ code: 0 });
    expect(existsSync(path)).toBe(false);
  });

  test("a hidden edit of a file whose name is not UTF-8", async () => {
    await using here = await world();
    await here.git("config", "core.trustctime", "false");
    const shell = (folder: string, script: string) => {
      const words = ["sh", "-ec", `name=$(printf 'caf\\351'); ${script}`];
      expect(Bun.spawnSync(words, { cwd: folder }).exitCode).toBe(0);
    };
    shell(here.repository, 'printf one >"$name"');
    await here.git("add", ".");
    await here.git("commit", "-qm", "name");
    for (const name of ["flagged", "same-time", "plain", "clean", "sparse"]) await here.add(name);
    shell(here.at("flagged"), 'git update-index --skip-worktree "$name"; printf two >"$name"');
    // Within one second, so that git cannot know better.
    await untilNextSecond();
    const before = 'touch -d 2001-01-01 "$name"; git update-index --refresh';
    shell(here.at("same-time"), `${before}; printf two >"$name"; touch -d 2001-01-01 "$name"`);
    shell(here.at("plain"), 'printf "an edit" >"$name"');
    shell(here.at("sparse"), 'git update-index --skip-worktree "$name"; rm "$name"');
    expect(await here.git("-C", here.at("same-time"), "status", "--porcelain")).toBe("");
    for (const name of ["flagged", "same-time"])
      await expectKept(here, name, /the name of caf\ufffd is not UTF-8/, "not-final");
    await expectKept(here, "plain", /1 uncommitted file: caf/, "not-final");
    expect(readdirSync(here.at("")).sort()).toEqual(["flagged", "plain", "same-time"]);
  });

  test("an edit of a filtered file whose name looks like another one", async () => {
    await using here = await world();
    for (const act of ["clean", "smudge"]) await here.git("config", `filter.same.${act}`, "cat");
    writeFileSync(join(here.repository, "caf\ufffd"), "one\n");
    const write = `name=$(printf 'caf\\351'); printf "$0" >"$name"; touch -d 2002-02-02 "$name"`;
    Bun.spawnSync(["sh", "-c", write, "one"], { cwd: here.repository });
    await here.commit(here.repository, ".gitattributes", "caf* filter=same\n");
    const path = await here.add("a");
    Bun.spawnSync(["touch", "-d", "2001-01-01", join(path, "caf\ufffd")]);
    await here.git("-C", path, "update-index", "--refresh");
    Bun.spawnSync(["sh", "-c", write, "an edit"], { cwd: path });
    await expectKept(here, "a", /1 uncommitted file: caf/, "not-final");
  });

  test("an executable bit that a flag hides", async () => {
    await using here = await world();
    writeFileSync(join(here.repository, "script"), "one\n", { mode: 0o755 });
    await here.commit(here.repository, "more", "more");
    for (const name of ["skip-worktree", "assume-unchanged"]) {
      const path = await here.add(name);
      await here.git("-C", path, "update-index", `--${name}`, "file", "script");
      chmodSync(join(path, "file"), 0o755);
      chmodSync(join(path, "script"), 0o644);
      await expectKept(here, name, /2 files changed where git does not look .*: file, script/, "not-final");
    }
    // If git ignores file modes, a changed mode is not work.
    await here.git("config", "core.fileMode", "false");
    expect(await here.prune()).toMatchObject({ code: 0 });
    expect(readdirSync(here.at(""))).toEqual([]);
  });

  test("a symbolic link that skip-worktree hides", async () => {
    await using here = await world();
    symlinkSync("here", join(here.repository, "link"));
    await here.git("add", "link");
    await here.git("commit", "-qm", "link");
    const path = await here.add("a");
    await here.git("-C", path, "update-index", "--skip-worktree", "link");
    rmSync(join(path, "link"));
    symlinkSync("there", join(path, "link"));
    await expectKept(here, "a", /1 file changed where git does not look .*: link/, "not-final");
    rmSync(join(path, "link"));
    symlinkSync("here", join(path, "link"));
    expect(await here.prune()).toMatchObject({ code: 0 });
    expect(existsSync(path)).toBe(false);
  });

  test("an edit of the same size with the old time", async () => {
    await using here = await world();
    await here.git("config", "core.trustctime", "false");
    for (const name of ["a", "b"]) {
      const file = join(await here.add(name), "file");
      Bun.spawnSync(["touch", "-d", "2001-01-01", file]);
      await here.git("-C", here.at(name), "update-index", "--refresh");
      // Git cannot see the change within the same second; later it could, but a setting prevents it.
      if (name === "b") await untilNextSecond();
      writeFileSync(file, "two\n");
      Bun.spawnSync(["touch", "-d", "2001-01-01", file]);
      expect(await here.git("-C", here.at(name), "status", "--porcelain")).toBe("");
    }
    await expectKept(
      here,
      "a",
      /1 uncommitted file: file|1 file changed where git does not look .*: file/,
      "not-final",
    );
    await expectKept(here, "b", /1 uncommitted file: file/, "not-final");
  });

  test("the autostash of a rebase in progress", async () => {
    await using here = await world();
    await here.commit(here.repository, "file", "two\n");
    const path = await here.add("a");
    writeFileSync(join(path, "sub", "file"), "stashed\n");
    const rebase = here.git("-C", path, "rebase", "--autostash", "--exec", "false", "HEAD~1");
    await expect(rebase).rejects.toThrow("execution failed: false");
    expect(await here.git("-C", path, "status", "--porcelain")).toBe("");
    await expectKept(here, "a", /a rebase is in progress, and has stashed changes away/, "not-final");
    await here.git("-C", path, "rebase", "--abort");
    expect(readFileSync(join(path, "sub", "file"), "utf8")).toBe("stashed\n");
  });

  test.each<[string, string[], RegExp]>([
    ["a bisect", ["bisect", "start", "HEAD", "HEAD~1"], /a bisect is in progress/],
    ["a cherry-pick", ["cherry-pick", "--no-commit", "HEAD"], /uncommitted|cherry-pick/],
    ["a ref of its own", ["update-ref", "refs/worktree/mine", "HEAD"], /it has its own ref: refs\/worktree\/mine/],
  ])("%s", async (name, words, why) => {
    await using here = await world();
    await here.commit(here.repository, "file", "two\n");
    await here.commit(here.repository, "file", "three\n");
    const path = await here.add("a");
    await here.git("-C", path, ...words);
    if (name === "a cherry-pick") {
      const admin = await here.git("-C", path, "rev-parse", "--absolute-git-dir");
      writeFileSync(join(admin, "CHERRY_PICK_HEAD"), `${await here.git("rev-parse", "HEAD")}\n`);
    }
    await expectKept(here, "a", why, "not-final");
  });

  test("commits that are otherwise only on a detached HEAD of the main worktree", async () => {
    await using here = await world();
    await here.git("checkout", "-q", "--detach");
    const commit = await here.commit(here.repository, "file", "two\n");
    await here.add("a");
    await expectKept(here, "a", /no branch, tag or remote branch has its commit/, "not-final");
    expect(await here.refsWith(commit)).toEqual(["refs/heads/agentctl/a"]);
    await here.git("branch", "keeps-it");
    expect(await here.prune()).toMatchObject({ code: 0 });
    expect(await here.refsWith(commit)).toEqual(["refs/heads/keeps-it"]);
  });

  test("commits that are otherwise only on a symbolic ref to its own branch", async () => {
    await using here = await world();
    const commit = await here.commit(await here.add("a"), "file", "two\n");
    await here.git("symbolic-ref", "refs/heads/alias", "refs/heads/agentctl/a");
    await expectKept(here, "a", /1 commit neither merged nor pushed/, "not-final");
    expect(await here.refsWith(commit)).toContain("refs/heads/agentctl/a");
  });

  test("commits that are in another branch only through a replace ref", async () => {
    await using here = await world();
    const commit = await here.commit(await here.add("a"), "file", "two\n");
    await here.git("replace", "--graft", "main", commit);
    await expectKept(here, "a", /neither merged nor pushed|no branch/, "not-final");
  });

  test("a folder that may be on a disk that is not mounted", async () => {
    await using here = await world();
    const path = await here.add("a");
    writeFileSync(join(path, "work"), "work");
    const folder = here.at("");
    renameSync(folder.replace(/\/$/, ""), join(here.root, "unmounted"));
    const missing = /its folder is missing, and a disk may not be mounted/;
    expect((await here.prune()).err).toMatch(missing);
    mkdirSync(folder);
    expect((await here.prune()).err).toMatch(missing);
    expect(await here.remove("a")).toMatchObject({ code: 5, err: expect.stringMatching(missing) });
    expect((await here.here("worktree", "list")).out).toContain("its folder is missing");
    rmSync(folder, { recursive: true });
    renameSync(join(here.root, "unmounted"), folder.replace(/\/$/, ""));
    expect(await here.git("-C", path, "status", "--porcelain")).toBe("?? work");
  });

  test("a folder that was moved by hand", async () => {
    await using here = await world();
    await here.add("a");
    renameSync(here.at("a"), here.at("moved"));
    expect((await here.prune()).err).toMatch(/its folder was moved to .*moved \(git worktree repair .*moved\)/);
    await here.git("worktree", "repair", here.at("moved"));
    expect(await here.git("-C", here.at("moved"), "status", "--porcelain")).toBe("");
  });

  test("a path that is not UTF-8, which looks as if its folder were gone", async () => {
    await using here = await world();
    mkdirSync(here.at("another"), { recursive: true });
    const script = `git -C "$0" worktree add -q -b agentctl/a "$(printf '%s/\\377' "$1")"`;
    Bun.spawnSync(["sh", "-c", script, here.repository, here.at("").replace(/\/$/, "")]);
    expect((await here.listed()).length).toBe(2);
    const pruned = await here.prune();
    expect([pruned.code, pruned.err]).toEqual([
      0,
      expect.stringContaining("agentctl cannot find its folder, but git can"),
    ]);
    expect((await here.listed()).length).toBe(2);
  });

  test("staged changes of a missing folder", async () => {
    await using here = await world();
    const path = await here.add("a");
    writeFileSync(join(path, "new"), "only staged");
    await here.git("-C", path, "add", "new");
    rmSync(path, { recursive: true });
    mkdirSync(here.at("another"));
    expect((await here.prune()).err).toMatch(/a is kept: 1 uncommitted file: new/);
  });

  test("a warning of git", async () => {
    await using here = await world();
    await here.add("a");
    here.replaceGit("case \" $* \" in *' status '*) echo \"warning: could not open directory 'x/'\" >&2;; esac");
    await expectKept(here, "a", /cannot tell what is in it: warning: could not open directory/, "not-final");
  });

  test("a setting that redirects git to another folder", async () => {
    await using here = await world();
    const path = await here.add("a");
    writeFileSync(join(path, "work"), "work");
    await here.git("config", "extensions.worktreeConfig", "true");
    await here.git("-C", path, "config", "--worktree", "core.worktree", here.repository);
    await expectKept(here, "a", /cannot tell what is in it: git takes .*my repo for its folder/, "not-final");
  });

  test("files in an empty submodule, which git ignores", async () => {
    await using here = await world();
    await here.git("clone", "-q", "--bare", ".", join(here.root, "bare.git"));
    const allow = ["-c", "protocol.file.allow=always"];
    await here.git(...allow, "submodule", "--quiet", "add", join(here.root, "bare.git"), "module");
    await here.git("commit", "-qm", "module");
    const path = await here.add("a");
    writeFileSync(join(path, "module", "draft"), "draft");
    expect(await here.git("-C", path, "status", "--porcelain")).toBe("");
    await expectKept(here, "a", /git does not check 1 file: module\/draft/, "not-final");
  });

  test("another repository or a link at its path", async () => {
    await using here = await world();
    for (const name of ["other", "link"]) await here.add(name);
    rmSync(join(here.at("other"), ".git"));
    await here.git("init", "-q", here.at("other"));
    await here.commit(here.at("other"), "file", "other work\n");
    renameSync(here.at("link"), join(here.root, "elsewhere"));
    symlinkSync(join(here.root, "elsewhere"), here.at("link"));
    await expectKept(here, "other", /the \.git in its folder belongs to another repository/, "final");
    await expectKept(here, "link", /its path is a symbolic link/, "final");
    expect(existsSync(join(here.root, "elsewhere", "file"))).toBe(true);
  });

  test.each(["", ", where git's path is through a link"])(
    "another file system that is mounted below an ignored folder%s",
    async (link) => {
      await using here = await world();
      await here.ignoring("ignored");
      const path = await here.add("a");
      if (link !== "") {
        renameSync(dirname(path), join(here.root, "elsewhere"));
        symlinkSync(join(here.root, "elsewhere"), dirname(path));
      }
      const point = join(path, "ignored", "mounted here");
      mkdirSync(point, { recursive: true });
      here.put(join(here.folder("data"), "precious"), "");
      expect(Bun.spawnSync(["mount", "--bind", here.folder("data"), point]).exitCode).toBe(0);
      try {
        await expectKept(here, "a", /another file system is mounted inside: ignored\/mounted here/, "final");
      } finally {
        Bun.spawnSync(["umount", point]);
      }
      expect(existsSync(join(here.root, "data", "precious"))).toBe(true);
    },
  );

  test("a running git command in it", async () => {
    await using here = await world();
    const path = await here.add("a");
    const admin = await here.git("-C", path, "rev-parse", "--absolute-git-dir");
    writeFileSync(join(admin, "index.lock"), "");
    await expectKept(here, "a", /a git command is running in it, or was killed: .*index\.lock/, "not-final");
  });

  test("a process with one of its files open", async () => {
    await using here = await world();
    const path = await here.add("a");
    const ready = join(here.root, "ready");
    const holder = here.begin(["sh", "-c", `exec 3<'${join(path, "file")}'; echo >'${ready}'; exec sleep 600`]);
    await waitFor("the open file", () => existsSync(ready));
    const refused = await here.remove("a");
    holder.kill("SIGKILL");
    await holder.answer;
    expect([refused.code, refused.err]).toEqual([5, expect.stringMatching(/has a file of it open: .*a\/file/)]);
  });
});

describe("a worktree is removed, and", () => {
  test("of two with the same commits one is kept", async () => {
    await using here = await world();
    const commit = await here.commit(await here.add("a"), "file", "two\n");
    await here.git("worktree", "add", "-q", "-b", "agentctl/b", here.at("b"), commit);
    const dry = await here.here("worktree", "prune", "--dry-run");
    expect(dry.out).toMatch(/a can be removed.*\n?|b is kept: 1 commit neither merged nor pushed/);
    expect(dry.out.match(/ can be removed/g)).toHaveLength(1);
    expect(await here.prune()).toMatchObject({ code: 0 });
    expect(await here.refsWith(commit)).toHaveLength(1);
    expect((await here.listed()).length).toBe(2);
    // Both at once by their names: the second is judged without the first.
    await here.git("worktree", "add", "-q", "-b", "agentctl/c", here.at("c"), commit);
    const left = (await here.listed()).slice(1);
    const both = await here.here("worktree", "remove", ...left);
    expect([both.code, both.err]).toEqual([5, expect.stringContaining("1 commit neither merged nor pushed")]);
    expect(await here.refsWith(commit)).toHaveLength(1);
  });

  test("commits that only its reflog had are kept under a ref", async () => {
    await using here = await world();
    const path = await here.add("a");
    const amended = await here.commit(path, "file", "two\n");
    await here.git("-C", path, "commit", "-q", "--amend", "-m", "better");
    const better = await here.git("-C", path, "rev-parse", "HEAD");
    await here.git("merge", "-q", "--ff-only", "agentctl/a");
    const { code, out } = await here.prune();
    expect([code, out]).toEqual([0, expect.stringContaining("kept: git log refs/agentctl/removed/a-")]);
    expect(await here.refsWith(amended)).toEqual([expect.stringMatching(/^refs\/agentctl\/removed\/a-/)]);
    expect(await here.refsWith(better)).toContain("refs/heads/main");
    expect(await here.git("branch", "--list", "agentctl/*")).toBe("");
  });

  test("--discard names the commits that no ref has any more", async () => {
    await using here = await world();
    const path = await here.add("a");
    const first = await here.commit(path, "file", "two\n");
    await here.git("-C", path, "commit", "-q", "--amend", "-m", "better");
    const better = await here.git("-C", path, "rev-parse", "HEAD");
    const { code, out } = await here.remove("a", "--discard");
    expect(code).toBe(0);
    for (const commit of [first, better]) expect(out).toContain(`git branch NAME ${commit}`);
    await here.git("branch", "back", better);
    const again = JSON.parse((await here.remove("a", "--discard", "--json")).out) as unknown;
    expect(again).toMatchObject({ error: { code: "worktree-not-found", exit: 3 } });
  });

  test("a branch that is being rebased elsewhere is kept", async () => {
    await using here = await world();
    await here.commit(here.repository, "file", "two\n");
    await here.add("a");
    await here.git("-C", here.at("a"), "checkout", "-q", "-b", "agentctl/other");
    await here.git("checkout", "-q", "agentctl/a");
    await expect(here.git("rebase", "--exec", "false", "HEAD~1")).rejects.toThrow();
    await here.git("-C", here.at("a"), "checkout", "-q", "--ignore-other-worktrees", "agentctl/a");
    expect(await here.prune()).toMatchObject({ code: 0 });
    expect(existsSync(here.at("a"))).toBe(false);
    expect(await here.git("branch", "--list", "agentctl/a")).toContain("agentctl/a");
  });

  test("odd names, read-only folders and hard links do not prevent it", async () => {
    await using here = await world();
    await here.ignoring("cache/");
    const path = await here.add("o d\nd");
    here.put(join(path, "cache", "mod", "f"), "x");
    Bun.spawnSync(["ln", join(path, "cache", "mod", "f"), join(path, "cache", "mod", "g")]);
    Bun.spawnSync(["chmod", "-R", "a-w", join(path, "cache")]);
    Bun.spawnSync(["sh", "-c", "printf x > \"$(printf 'cache/\\377')\""], { cwd: path });
    expect(await here.prune()).toMatchObject({ code: 0 });
    expect(readdirSync(here.at(""))).toEqual([]);
  });
});

test("while the disk of the worktrees is not mounted, a launch creates no folder there, and git forgets nothing", async () => {
  await using here = await createWorktreeHome();
  await here.add("a");
  const disk = join(here.root, "disk");
  renameSync(here.at(""), disk);
  for (const isEmptyFolderThere of [false, true]) {
    if (isEmptyFolderThere) mkdirSync(here.at(""));
    expect(await here.launchHere("x", "--worktree", "--name", "b")).toMatchObject({
      code: 5,
      err: expect.stringContaining("cannot be reached: a disk may not be mounted"),
    });
    await here.here("worktree", "prune", "-y");
  }
  rmdirSync(here.at(""));
  renameSync(disk, here.at(""));
  expect(await here.git("worktree", "list")).toContain(here.at("a"));
});

describe("a launch in a submodule", () => {
  const allow = ["-c", "protocol.file.allow=always"];
  const launchIn = (here: WorktreeTestHome, cwd: string) =>
    here.begin([binary, "launch", "demo", "x", "--permission", "bypass", "--worktree", "--name", "n"], { cwd }).answer;

  test("makes no worktree inside the outer repository", async () => {
    await using here = await createWorktreeHome();
    const bare = join(here.root, "bare.git");
    await here.git("clone", "-q", "--bare", ".", bare);
    await here.git(...allow, "submodule", "--quiet", "add", bare, "module");
    await here.git("commit", "-qm", "module");
    await here.git("push", "-q", bare, "main:super");
    const ofMain = await here.add("a");
    const ofBare = join(here.root, "of bare");
    await here.git("-C", bare, "worktree", "add", "-q", ofBare, "super");
    for (const path of [ofMain, ofBare])
      await here.git("-C", path, ...allow, "submodule", "--quiet", "update", "--init");
    const roots = [here.repository, ofMain, ofBare];
    for (const root of roots) {
      const { code, err } = await launchIn(here, join(root, "module"));
      expect([code, err]).toEqual([
        5,
        expect.stringMatching(/would be inside another repository.*\n.*"worktrees": "~/s),
      ]);
      expect(await here.git("-C", join(root, "module"), "worktree", "list", "--porcelain")).not.toContain("agentctl/n");
    }
    const config = join(here.root, ".config", "agentctl", "config.json");
    here.put(config, JSON.stringify({ worktrees: join(here.root, "mine") }));
    expect(await launchIn(here, join(here.repository, "module"))).toMatchObject({ code: 0 });
    expect(existsSync(join(here.root, "mine", "module", "n", "file"))).toBe(true);
  });
});
