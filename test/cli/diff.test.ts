// agentctl diff shows every change of a session and no other, in every kind of repository.
import { describe, expect, test } from "bun:test";
import { appendFileSync, chmodSync, lstatSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { untilNextSecond } from "../conformance/wait.ts";
import { createRepositoryHome, type RepositoryTestHome } from "./test-home-repository.ts";

const write = (here: RepositoryTestHome, name: string, text: string): void =>
  writeFileSync(join(here.repository, name), text);

async function begun(here: RepositoryTestHome, prompt = "say:x"): Promise<string> {
  const { out, err } = await here.launchHere(prompt, "--share");
  if (out === "") throw new Error(err);
  await here.agentctl("wait", out.trim());
  return out.trim();
}

/** The index and an edit of the same size, both within one second, which is over. */
async function editRacily(here: RepositoryTestHome): Promise<void> {
  for (;;) {
    write(here, "file", "one\n");
    await here.git("add", "file");
    write(here, "file", "six\n");
    const seconds = [".git/index", "file"].map((name) => lstatSync(join(here.repository, name)).mtimeMs / 1000);
    if (new Set(seconds.map(Math.floor)).size > 1) continue;
    await untilNextSecond();
    return;
  }
}

describe("an edit of the same size in the same second as the last index write", () => {
  test.each([
    ["a plain index", []],
    ["a split index", ["update-index", "--split-index"]],
    ["an index with an untracked cache", ["update-index", "--force-untracked-cache"]],
    ["a sparse index", ["sparse-checkout", "set", "--cone", "--sparse-index", "sub"]],
  ])("is seen with %s", async (_, words) => {
    await using here = await createRepositoryHome();
    if (words.length > 0) await here.git(...words);
    const id = await begun(here);
    await editRacily(here);
    const index = readFileSync(join(here.repository, ".git", "index"));
    expect((await here.here("diff", id)).out).toContain("-one\n+six\n");
    expect(readFileSync(join(here.repository, ".git", "index"))).toEqual(index);
  });
});

test("a file whose coarse kernel time is before the first message belongs to the session", async () => {
  await using here = await createRepositoryHome();
  write(here, "new", "new\n");
  const { ctimeMs } = lstatSync(join(here.repository, "new"));
  const begins = (at: number): string => {
    const line = { type: "prompt", at: new Date(at).toISOString(), text: "x" };
    const header = { type: "session", at: line.at, cwd: here.repository };
    const id = here.record([line]);
    const path = join(here.home, "sessions", `${id}.jsonl`);
    const text = readFileSync(path, "utf8").split("\n")[0] ?? "";
    writeFileSync(path, `${JSON.stringify({ ...JSON.parse(text), ...header })}\n${JSON.stringify(line)}\n`);
    return id;
  };
  expect((await here.here("diff", begins(Math.ceil(ctimeMs) + 5))).out).toContain("+new\n");
  const later = await here.here("diff", begins(Math.ceil(ctimeMs) + 1_000));
  expect(later.out).not.toContain("+new\n");
  expect(later.err).toMatch(/left out, last changed before it started: .*\bnew\b/);
});

test("changes from before a second message still belong to the session", async () => {
  await using here = await createRepositoryHome();
  const id = await begun(here, "tool:echo two > file; echo new > new");
  await here.agentctl("send", id, "say:y");
  await here.agentctl("wait", id);
  const { out, err } = await here.here("diff", id);
  expect(err).toBe("");
  for (const part of ["-one\n+two\n", "+new\n"]) expect(out).toContain(part);
});

test("changes from before the session id is known belong to the session", async () => {
  await using here = await createRepositoryHome();
  const id = "01999999-9999-7999-8999-999999999999";
  // Codex chooses the id of its session and tells it when it has begun.
  here.env["AGENTCTL_CODEX_BIN"] = here.write(
    "codex",
    [
      "#!/bin/sh",
      "echo early >early; sleep 0.3",
      'day="$HOME/.codex/sessions/2026/01/01"; mkdir -p "$day"',
      `at=$(date -u +%Y-%m-%dT%H:%M:%S.%3NZ)`,
      `printf '{"timestamp":"%s","type":"session_meta","payload":{"id":"${id}","timestamp":"%s","cwd":"%s","cli_version":"0.166.0","originator":"codex_exec","source":"exec"}}\\n' "$at" "$at" "$PWD" >"$day/rollout-2026-01-01T00-00-00-${id}.jsonl"`,
      `echo '{"type":"thread.started","thread_id":"${id}"}'`,
      "exec sleep 600",
    ].join("\n"),
    0o755,
  );
  const { code, out, err } = await here.here("launch", "codex", "x", "--permission", "bypass");
  expect([code, out.trim(), err]).toEqual([0, id, expect.any(String)]);
  expect((await here.here("diff", id)).out).toContain("+early\n");
});

describe("a git filter that is not run", () => {
  const filtered = async (here: RepositoryTestHome): Promise<string> => {
    // As Git LFS: a pointer in the repository, the content on disk.
    await here.git("config", "filter.pointer.clean", "sed 's/^content/pointer/'");
    await here.git("config", "filter.pointer.smudge", "sed 's/^pointer/content/'");
    await here.git("config", "filter.pointer.required", "true");
    write(here, ".gitattributes", "big* filter=pointer\n");
    for (const name of ["big1", "big2"]) write(here, name, "content\n");
    await here.git("add", ".");
    await here.git("commit", "-qm", "big");
    const { out, err } = await here.launchHere("say:x", "--worktree", "--name", "a");
    if (out === "") throw new Error(err);
    await here.agentctl("wait", out.trim());
    return out.trim();
  };

  test("does not make untouched files look changed", async () => {
    await using here = await createRepositoryHome();
    const id = await filtered(here);
    expect(readFileSync(join(here.at("a"), "big1"), "utf8")).toBe("content\n");
    expect(await here.here("diff", id)).toMatchObject({ code: 0, out: "", err: "agentctl: nothing changed\n" });
  });

  test("does not prevent the removal of an untouched worktree", async () => {
    await using here = await createRepositoryHome();
    await filtered(here);
    expect(await here.here("worktree", "remove", "a", "-y")).toMatchObject({ code: 0 });
  });

  test("is mentioned when a changed file is shown as it is on disk", async () => {
    await using here = await createRepositoryHome();
    const id = await filtered(here);
    appendFileSync(join(here.at("a"), "big2"), "more\n");
    const { out, err } = await here.here("diff", id);
    expect(out).toContain("b/big2");
    expect(out).not.toContain("b/big1");
    expect(err).toBe(
      "agentctl: 1 file goes through the filter pointer, which agentctl does not run: shown as on disk\n",
    );
    // Beside the person's own git it is as it was.
    expect(await here.git("-C", here.at("a"), "status", "--porcelain")).toBe("M big2");
  });
});

describe("settings for comparing files are respected", () => {
  test("modes, line endings and ignored files", async () => {
    await using here = await createRepositoryHome();
    const ignored = here.write("ignored", "*.log\n");
    await here.git("config", "core.fileMode", "false");
    await here.git("config", "core.autocrlf", "true");
    await here.git("config", "core.excludesFile", ignored);
    const id = await begun(here);
    chmodSync(join(here.repository, "file"), 0o755);
    write(here, "sub/file", "one\r\n");
    write(here, "x.log", "x\n");
    expect(await here.here("diff", id)).toMatchObject({ out: "", err: "agentctl: nothing changed\n" });
  });

  test("a repository with SHA-256", async () => {
    await using here = await createRepositoryHome();
    rmSync(join(here.repository, ".git"), { recursive: true });
    await here.git("init", "-q", "-b", "main", "--object-format=sha256");
    await here.git("add", ".");
    await here.git("commit", "-qm", "one");
    const id = await begun(here, "tool:echo two > file");
    expect((await here.here("diff", id)).out).toContain("-one\n+two\n");
  });

  test("a shallow clone, a detached HEAD, packed refs and a folder with a newline in its name", async () => {
    await using here = await createRepositoryHome();
    write(here, "file", "later\n");
    await here.git("commit", "-qam", "two");
    const clone = join(here.root, "a\nclone");
    await here.git("clone", "-q", "--depth", "1", `file://${here.repository}`, clone);
    await here.git("-C", clone, "pack-refs", "--all");
    await here.git("-C", clone, "checkout", "-q", "--detach");
    const id = await here.launched("tool:echo six > file; echo x > 'n\tw'", "--cwd", clone);
    await here.agentctl("wait", id);
    const { code, out } = await here.here("diff", id);
    expect(code).toBe(0);
    for (const part of ["-later\n+six\n", "+x\n"]) expect(out).toContain(part);
  });

  test("a clone that borrows the objects of a clone that borrows", async () => {
    await using here = await createRepositoryHome();
    const [first, second] = [join(here.root, "first"), join(here.root, "second")];
    await here.git("clone", "-q", "--shared", here.repository, first);
    await here.git("clone", "-q", "--shared", first, second);
    const id = await here.launched("tool:echo six > file", "--cwd", second);
    await here.agentctl("wait", id);
    expect((await here.here("diff", id)).out).toContain("-one\n+six\n");
  });

  test("a repository without a commit", async () => {
    await using here = await createRepositoryHome();
    rmSync(join(here.repository, ".git"), { recursive: true });
    await here.git("init", "-q", "-b", "main");
    const id = await begun(here, "tool:echo two > file");
    const { out } = await here.here("diff", id);
    expect(out).toContain("+two\n");
  });
});

test("a file whose name is not UTF-8 is named as missing, and hides no other", async () => {
  await using here = await createRepositoryHome();
  const id = await begun(here);
  writeFileSync(Buffer.concat([Buffer.from(`${here.repository}/caf`), Buffer.from([0xe9])]), "x\n");
  write(here, "new", "new\n");
  const { out, err } = await here.here("diff", id);
  expect(out).toContain("+new\n");
  expect(err).toBe("agentctl: not in here: files whose names are not UTF-8: caf\uFFFD\n");
});

test("the index keeps its time, and nothing is added to the repository", async () => {
  await using here = await createRepositoryHome();
  await here.git("update-index", "--split-index");
  const id = await begun(here, "tool:echo new > new");
  const git = join(here.repository, ".git");
  utimesSync(join(git, "index"), 1_000_000_000, 1_000_000_000);
  const before = await here.git("ls-files", "--stage");
  const files = () => Bun.spawnSync(["find", git, "-type", "f"]).stdout.toString().split("\n").sort();
  const filesBefore = files();
  await here.here("diff", id);
  expect(files()).toEqual(filesBefore);
  expect(lstatSync(join(git, "index")).mtimeMs).toBe(1_000_000_000_000);
  expect(await here.git("ls-files", "--stage")).toBe(before);
});
