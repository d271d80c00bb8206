// Git reads a repository through a view without the repository's own settings.
import { expect, test } from "bun:test";
import { chmodSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { git, gitAsPerson } from "../../src/control/git/git.ts";
import { createRepositoryHome } from "../cli/test-home-repository.ts";

test("options before the git command work in the view, and cannot leave it", async () => {
  await using here = await createRepositoryHome();
  const mark = join(here.root, "mark");
  await here.git("config", "filter.evil.clean", `touch '${mark}'; cat`);
  writeFileSync(join(here.repository, ".git/info/attributes"), "file filter=evil\n");
  writeFileSync(join(here.repository, "file"), "two\n");
  chmodSync(join(here.repository, "sub/file"), 0o755);
  const status = ["status", "--porcelain", "-z", "--no-renames"];
  expect(await git(here.repository, ["-c", "core.quotePath=false", ...status], here.env)).toEqual({
    ...{ ok: true, out: " M file\0 M sub/file\0", err: "" },
  });
  expect(await git(here.repository, ["-c", "core.fileMode=false", ...status], here.env)).toEqual({
    ...{ ok: true, out: " M file\0", err: "" },
  });
  expect((await git(here.repository, ["hash-object", "file"], here.env)).ok).toBe(true);
  expect((await git(here.repository, ["cat-file", "--filters", "HEAD:file"], here.env)).out).toBe("one\n");
  expect(existsSync(mark)).toBe(false);
  expect((await gitAsPerson(here.repository, ["status"], here.env)).ok).toBe(true);
  expect(existsSync(mark)).toBe(true);
});

test("a git command that is not on the list is not run, and no command can leave the view", async () => {
  await using here = await createRepositoryHome();
  expect(git(here.repository, ["gc"], here.env)).rejects.toThrow("git gc: not on the lists");
  const elsewhere = { GIT_DIR: "/nowhere" };
  expect(await git(here.repository, ["status", "--porcelain"], here.env, elsewhere)).toEqual({
    ok: true,
    out: "",
    err: "",
  });
});

test("acting commands run git hooks, reading commands do not", async () => {
  await using here = await createRepositoryHome();
  const mark = join(here.root, "mark");
  const hook = join(here.repository, ".git/hooks/reference-transaction");
  writeFileSync(hook, `#!/bin/sh\ntouch '${mark}'\n`);
  chmodSync(hook, 0o755);
  expect((await git(here.repository, ["branch", "one"], here.env)).ok).toBe(true);
  expect(existsSync(mark)).toBe(false);
  expect((await gitAsPerson(here.repository, ["branch", "two"], here.env)).ok).toBe(true);
  expect(existsSync(mark)).toBe(true);
});

test("a worktree is removed only if it is clean", async () => {
  await using here = await createRepositoryHome();
  const path = join(here.root, "other");
  await here.git("worktree", "add", "-q", path);
  const remove = () => git(here.repository, ["worktree", "remove", "--", path], here.env);
  writeFileSync(join(path, "new"), "");
  expect(await remove()).toMatchObject({ ok: false, err: expect.stringContaining("modified or untracked files") });
  await here.git("-C", path, "clean", "-fq");
  await here.git("worktree", "lock", path);
  expect(await remove()).toMatchObject({ ok: false, err: expect.stringContaining("locked") });
  await here.git("worktree", "unlock", path);
  expect(await remove()).toMatchObject({ ok: true });
  expect(existsSync(path)).toBe(false);
});

test("a missing and a broken repository are reported as errors", async () => {
  await using here = await createRepositoryHome();
  const inside = here.folder("my repo", "inside");
  const asked = (): Promise<{ ok: boolean; err: string }> => git(inside, ["status"], here.env);
  expect(await asked()).toMatchObject({ ok: false, err: `fatal: not a git repository: ${inside}` });
  writeFileSync(join(inside, ".git"), "gitdir: /nowhere\n");
  expect(await asked()).toMatchObject({ ok: false });
});
