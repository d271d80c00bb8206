// Reading a repository runs no program that the repository configures, and does not use the network.
import { describe, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { git } from "../../src/control/git/git.ts";
import { binary } from "../cli/test-home.ts";
import { type HostileRepository, hostileRepository } from "./hostile-repository.ts";
import { otherUid, testAsOther } from "./other-user.ts";

const clear = ({ marksFolder }: HostileRepository): void => {
  for (const name of readdirSync(marksFolder)) rmSync(join(marksFolder, name));
};

/** Every command that looks at a repository. */
const looking = ([id = ""]: readonly string[]): string[][] => [
  [],
  ["list"],
  ["list", "-a", "--json"],
  ["statusline"],
  ["status", id],
  ["status", id, "--json"],
  ["why", id],
  ["doctor"],
  ["lock", "list"],
  ["diff", id],
  ["diff", id, "--stat"],
  ["compare", "g"],
  ["compare", "g", "--html", "page.html"],
  ["worktree", "list"],
  ["worktree", "list", "--json"],
  ["worktree", "prune", "--dry-run"],
];

test("plain git runs the planted programs, so the tests can fail", async () => {
  await using here = await hostileRepository();
  await here.setTraps();
  clear(here);
  const root = here.at("a");
  for (const words of [
    ["status"],
    ["diff"],
    ["diff", "--no-ext-diff"],
    ["log", "-1"],
    ["add", "new", ".gitattributes"],
  ])
    await here.git("-C", root, ...words).catch(() => "");
  const marks = here.marks();
  for (const name of ["clean", "process", "fsmonitor", "diff-command", "textconv", "submodule-clean"])
    expect(marks).toContain(name);
  for (const name of ["clean-equals", "clean-included", "hook-post-index-change", "submodule-fsmonitor"])
    expect(marks).toContain(name);
});

test("reading commands run none of them", async () => {
  await using here = await hostileRepository();
  await here.setTraps();
  clear(here);
  for (const words of looking(here.ids)) {
    const { err } = await here.here(...words);
    expect({ words, marks: here.marks(), err: err.includes("internal") }).toEqual({ words, marks: [], err: false });
  }
});

test("the diff is still right, and names the files that it cannot show", async () => {
  await using here = await hostileRepository();
  await here.setTraps();
  clear(here);
  const list = JSON.parse((await here.here("list", "--json")).out) as { conflicts: { files: string[] }[] };
  expect(list.conflicts.map(({ files }) => files)).toEqual([[".gitattributes", "file", "module", "new"]]);
  const { out, err } = await here.here("diff", here.ids[0] ?? "");
  expect(out).toContain("-one\n+two");
  expect(out).toContain("+new");
  expect(err).toContain("1 file goes through the filter evil, which agentctl does not run: shown as on disk\n");
  expect(err).toContain("not in here: uncommitted changes in submodules: module\n");
});

test("worktree remove runs none of them", async () => {
  await using here = await hostileRepository();
  await here.setTraps();
  for (const id of here.ids) await here.agentctl("stop", id);
  clear(here);
  expect(await here.here("worktree", "remove", "a")).toMatchObject({ code: 5 });
  // Its submodule is a separate repository, which not even --discard removes.
  expect(await here.here("worktree", "remove", "a", "--discard", "-y")).toMatchObject({ code: 5 });
  for (const name of ["a", "b"]) rmSync(join(here.at(name), "module"), { recursive: true });
  expect(await here.here("worktree", "remove", "a", "--discard", "-y")).toMatchObject({ code: 0 });
  await here.here("worktree", "prune", "-y");
  expect(here.marks()).toEqual([]);
});

test("a clean worktree with a filter is removed without running the filter", async () => {
  await using here = await hostileRepository();
  for (const id of here.ids) await here.agentctl("stop", id);
  writeFileSync(join(here.repository, ".git", "info", "attributes"), "* filter=evil\n");
  await here.git("config", "filter.evil.clean", here.trap("clean"));
  await here.git("config", "filter.evil.required", "true");
  clear(here);
  for (const name of ["a", "b"]) {
    const { code, err } = await here.here("worktree", "remove", name, "-y");
    expect({ code, err, marks: here.marks() }).toEqual({ code: 0, err: expect.any(String), marks: [] });
  }
});

describe("a configuration that becomes hostile after it was read", () => {
  test("does not run its filter", async () => {
    await using here = await hostileRepository();
    for (const name of ["a", "b"]) here.touch(here.at(name));
    writeFileSync(join(here.repository, ".git", "info", "attributes"), "* filter=late\n");
    const trap = here.trap("late");
    const real = Bun.which("git", { PATH: here.env["PATH"] ?? "" });
    here.folder("bin");
    // As soon as agentctl has read the settings, they change.
    const config = join(here.repository, ".git", "config");
    const rewrite = `${real} config -f '${config}' filter.late.clean '${trap}'`;
    here.write(
      "bin/git",
      `#!/bin/sh\n${real} "$@"; status=$?\ncase " $* " in *" config "*) ${rewrite};; esac\nexit $status\n`,
      0o755,
    );
    const env = { PATH: `${join(here.root, "bin")}:${here.env["PATH"]}` };
    for (const words of [["list"], ["diff", here.ids[0] ?? ""], ["worktree", "list"]]) {
      await here.git("config", "--unset", "filter.late.clean").catch(() => "");
      await here.begin([binary, ...words], { cwd: here.repository, env }).answer;
      expect(await here.git("config", "filter.late.clean")).toBe(trap);
      expect({ words, marks: here.marks() }).toEqual({ words, marks: [] });
    }
  });
});

describe.each(["ext", "uploadpack", "ssh"] as const)("a partial clone (%s)", (way) => {
  test("is not fetched from, and the answer says so", async () => {
    await using here = await hostileRepository();
    for (const name of ["a", "b"]) here.touch(here.at(name));
    await here.git("-C", here.at("a"), "add", "file");
    await here.makePartial(way);
    // The content of `file` at the first commit is not here.
    const blob = await here.git("rev-parse", "main:file");
    rmSync(join(here.repository, ".git", "objects", blob.slice(0, 2), blob.slice(2)));
    clear(here);
    await here.git("-C", here.at("a"), "diff", "HEAD").catch(() => "");
    expect(here.marks()).toEqual([`fetch-${way}`]);
    clear(here);
    for (const words of looking(here.ids)) {
      await here.here(...words);
      expect({ words, marks: here.marks() }).toEqual({ words, marks: [] });
    }
    const { code, err } = await here.here("diff", here.ids[0] ?? "");
    expect(code).toBe(1);
    expect(err).toContain("is a partial clone\n");
    expect(err).toContain("agentctl fetches nothing");
  });
});

testAsOther("a repository of another user is read only if git's safe.directory allows it", async () => {
  await using here = await hostileRepository();
  spawnSync("chown", ["-R", `${otherUid}:${otherUid}`, here.repository]);
  const status = () => git(here.repository, ["status", "--porcelain", "-z", "--no-renames"], here.env);
  expect(await status()).toMatchObject({ ok: false, err: expect.stringContaining("dubious ownership") });
  here.write(".gitconfig", "[safe]\n\tdirectory = *\n");
  expect(await status()).toEqual({ ok: true, out: "", err: "" });
});
