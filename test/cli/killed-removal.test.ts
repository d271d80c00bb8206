// A removal that is killed loses nothing, and the next command undoes or finishes it.
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { binary } from "./test-home.ts";
import { atEveryCall, createWorktreeHome, type WorktreeTestHome } from "./test-home-worktrees.ts";

test("a removal that is killed at any moment loses nothing, and the next command finishes it", async () => {
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
}, 120_000);

/** The state after a removal that was killed while it deleted files. */
async function halfRemoved(here: WorktreeTestHome): Promise<string> {
  const path = await here.add("a");
  mkdirSync(here.at("another"));
  const admin = await here.git("-C", path, "rev-parse", "--absolute-git-dir");
  const aside = `${path}.agentctl-removing`;
  const mark = JSON.stringify({ from: path, aside, by: { pid: 1, start: "1", boot: "gone" } });
  for (const name of ["index.lock", "HEAD.lock"])
    writeFileSync(join(admin, name), `agentctl is removing this worktree\n${mark}\n`);
  return aside;
}

test("a worktree whose deletion was interrupted is restored, and its missing files are named", async () => {
  await using here = await createWorktreeHome();
  const aside = await halfRemoved(here);
  await here.git("worktree", "move", here.at("a"), aside);
  rmSync(join(aside, "file"));
  expect((await here.here("worktree", "list")).out).toContain("its removal was interrupted");
  const refused = await here.here("worktree", "remove", "a");
  expect([refused.code, refused.err]).toEqual([5, expect.stringContaining("1 uncommitted file: file")]);
  expect(refused.err).toContain("was interrupted; the worktree is restored");
  await here.git("-C", here.at("a"), "checkout", "--", "file");
  expect(await here.remove("a")).toMatchObject({ code: 0 });
});

test("a worktree whose move by git was interrupted is restored", async () => {
  await using here = await createWorktreeHome();
  const aside = await halfRemoved(here);
  renameSync(here.at("a"), aside);
  const pruned = await here.begin([binary, "worktree", "prune", "--dry-run"], { cwd: here.repository }).answer;
  expect(pruned.out).toMatch(/a is kept: its folder was moved to .*a\.agentctl-removing/);
  expect((await here.here("worktree", "remove", "nobody")).err).toContain("the worktree is restored");
  expect(await here.git("-C", here.at("a"), "status", "--porcelain")).toBe("");
});

test("a removal that is still running is not undone", async () => {
  await using here = await createWorktreeHome();
  await here.add("a");
  mkdirSync(here.at("another"));
  // The second command finds the first one aside, at work.
  const second = `cd '${here.repository}'; XDG_RUNTIME_DIR= '${binary}' worktree list >'${here.root}/seen' 2>&1`;
  here.replaceGit(`case " $* " in *' worktree remove '*) ${second};; esac`);
  expect(await here.prune()).toMatchObject({ code: 0 });
  expect(here.text("seen")).not.toContain("interrupted");
  expect(existsSync(here.at("a"))).toBe(false);
});
