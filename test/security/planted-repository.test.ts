// Another user creates `.git` in a folder above ours, as every user can in /tmp. Our directories below must not count as one
// repository, because then only one session could work in all of them.
import { expect } from "bun:test";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { LaunchTestHome } from "../cli/test-home-launch.ts";
import { createRepositoryHome } from "../cli/test-home-repository.ts";
import { asOther, OtherFolder, testAsOther } from "./other-user.ts";

testAsOther("a .git of another user above our directories does not make them one repository", async () => {
  using shared = new OtherFolder();
  await using world = new LaunchTestHome();
  const [program = "", ...words] = asOther("mkdir", join(shared.path, ".git"));
  expect(spawnSync(program, words).status).toBe(0);
  const [busy, free] = ["busy", "free"].map((name) => join(shared.path, name));
  for (const folder of [busy, free]) mkdirSync(folder ?? "");
  await world.launched("work:600", "--cwd", busy ?? "");
  const { code, err } = await world.agentctl("launch", "demo", "x", "--permission", "edit", "--cwd", free ?? "");
  expect({ code, isRefused: err.includes("cannot launch in") }).toEqual({ code: 0, isRefused: false });
});

testAsOther("a repository of another user in which we work is one repository", async () => {
  using theirs = new OtherFolder();
  await using world = new LaunchTestHome();
  const made = ["mkdir", "-m", "777", ...[".git", "busy", "next"].map((name) => join(theirs.path, name))];
  const [program = "", ...words] = asOther(...made);
  expect(spawnSync(program, words).status).toBe(0);
  await world.launched("work:600", "--cwd", join(theirs.path, "busy"));
  const there = join(theirs.path, "next");
  const { code } = await world.agentctl("launch", "demo", "x", "--permission", "edit", "--cwd", there);
  expect(code).toBe(5);
});

testAsOther("a worktree folder that another user created beside our repository is not used", async () => {
  using shared = new OtherFolder();
  await using world = await createRepositoryHome();
  const repository = join(shared.path, "repo");
  cpSync(world.repository, repository, { recursive: true });
  const [program = "", ...words] = asOther("mkdir", "-m", "777", `${repository}.worktrees`);
  expect(spawnSync(program, words).status).toBe(0);
  const launched = ["launch", "demo", "x", "--permission", "edit", "--worktree", "--cwd", repository];
  const { code, err } = await world.agentctl(...launched);
  expect({ code, isSaid: err.includes("belongs to another user") }).toEqual({ code: 5, isSaid: true });
  expect(readdirSync(`${repository}.worktrees`)).toEqual([]);
});
