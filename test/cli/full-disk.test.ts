// With a full disk a command fails with a clear error and leaves no process and no half-made file; list still works.
import { expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { binary } from "./test-home.ts";
import { createRepositoryHome, type RepositoryTestHome } from "./test-home-repository.ts";

/** Shell commands while this folder is on a separate full disk; `a` is agentctl. */
async function whereFull(here: RepositoryTestHome, folder: string, script: string, before = ":"): Promise<string[]> {
  const lines = [
    `a() { ${binary} "$@" >>'${here.root}/said' 2>&1; echo "exit $?" >>'${here.root}/said'; }`,
    `mount -t tmpfs -o size=256k none '${folder}' || exit 1`,
    before,
    `dd if=/dev/zero of='${folder}/filler' bs=4k 2>'${here.root}/dd'`,
    script,
  ];
  const { code, err } = await here.begin(["unshare", "--mount", "sh", "-c", lines.join("\n")], {
    cwd: here.repository,
  }).answer;
  if (code !== 0) throw new Error(`exit ${code}: ${err}`);
  return readFileSync(join(here.root, "said"), "utf8").split("\n").slice(0, -1);
}

test("when agentctl's home is full, launch fails and leaves nothing running, and list works", async () => {
  await using here = await createRepositoryHome();
  const own = here.folder(".agentctl");
  const launch = (words: string) => `a launch demo work:600 --permission edit ${words}`;
  const said = await whereFull(
    here,
    own,
    [
      ...[launch(""), launch("--worktree --name x"), launch("--on-exit true")],
      "a lock add",
      "a list -a",
      `find '${own}' -type f >'${here.root}/found'`,
    ].join("\n"),
    `${binary} run demo say:before --permission edit 2>/dev/null >&2`,
  );
  expect(said.filter((line) => line.startsWith("exit "))).toEqual(["exit 1", "exit 1", "exit 1", "exit 1", "exit 0"]);
  expect(said.filter((line) => line.includes("no space left for")).length).toBe(3);
  expect(said).toContain("agentctl: ENOSPC: no space left on device, write");
  expect(said.filter((line) => line.includes("this should not happen"))).toEqual([]);
  expect(said.some((line) => /demo +completed .*say:before/.test(line))).toBe(true);
  expect(here.launchedAgents()).toEqual([]);
  expect(here.holders()).toEqual([]);
  expect(existsSync(here.at("x"))).toBe(false);
  expect(await here.git("branch", "--list", "agentctl/*")).toBe("");
  // Beside the filler only what the one before has left.
  const kinds = readFileSync(join(here.root, "found"), "utf8")
    .trim()
    .split("\n")
    .map((path) => path.replace(/.*\./, ""));
  expect(kinds.sort()).toEqual(["agentctl/filler", "err", "exit", "json", "lock", "out"]);
});

test("when the disk of the worktrees is full, launch prints git's error and leaves neither worktree nor branch", async () => {
  await using here = await createRepositoryHome();
  const folder = here.folder("my repo.worktrees");
  const said = await whereFull(
    here,
    folder,
    `a launch demo work:600 --permission edit --worktree --name x; ls '${folder}'`,
  );
  expect(said.join("\n")).toContain("git made no worktree at");
  expect(said.join("\n")).toContain("No space left on device");
  expect(said.at(-1)).toBe("exit 1");
  expect(here.launchedAgents()).toEqual([]);
  expect(await here.git("branch", "--list", "agentctl/*")).toBe("");
  expect((await here.git("worktree", "list")).split("\n")).toHaveLength(1);
});

test("when the disk of the HTML page is full, the old page stays", async () => {
  await using here = await createRepositoryHome();
  const folder = here.folder("pages");
  const { out } = await here.launchHere("say:x", "--group", "g");
  await here.agentctl("wait", out.trim());
  writeFileSync(join(here.root, "old"), "the old page\n");
  const said = await whereFull(
    here,
    folder,
    `a compare g --html '${folder}/page.html'; cat '${folder}/page.html' >>'${here.root}/said'; ls '${folder}' >>'${here.root}/said'`,
    `cp '${here.root}/old' '${folder}/page.html'`,
  );
  expect(said.slice(-5)).toEqual([
    expect.stringMatching(/^agentctl: cannot write .*page\.html: ENOSPC/),
    "exit 1",
    "the old page",
    "filler",
    "page.html",
  ]);
});

test.each([["launch"], ["send"]])(
  "when the disk of stdout is full, %s names the session, which keeps running",
  async (command) => {
    await using here = await createRepositoryHome();
    const whom = command === "launch" ? "demo" : (await here.launchHere("say:x")).out.trim();
    if (command === "send") await here.agentctl("wait", whom);
    for (const flags of ["", "--json"]) {
      const script = `exec ${binary} ${command} ${whom} work:600 ${flags} >/dev/full`;
      const { code, err } = await here.begin(["sh", "-c", script], { cwd: here.repository }).answer;
      expect(code).toBe(1);
      const said = /^agentctl: the answer could not be written: ENOSPC.*; (\S+) was started\n {2}(.*)\n$/m;
      const [, id = "", hint] = said.exec(err) ?? [];
      expect(hint).toBe(`agentctl stop ${id} stops it`);
      expect(await here.row(id)).toMatchObject({ state: "running" });
      expect((await here.agentctl("stop", id)).code).toBe(0);
    }
  },
);
