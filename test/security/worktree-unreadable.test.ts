// Root reads every folder, so another user plays the one whose worktree has a folder that git cannot read.
import { expect } from "bun:test";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { worktreeWorld } from "../cli/worktree-world.ts";
import { binary } from "../cli/world.ts";
import { asOther, otherUid, testAsOther } from "./other-user.ts";

testAsOther("a worktree with a folder that git cannot read stays, also with --discard", async () => {
  await using here = await worktreeWorld();
  const path = await here.add("a");
  const closed = join(path, "closed");
  mkdirSync(closed);
  writeFileSync(join(closed, "work"), "work");
  chmodSync(closed, 0);
  spawnSync("chown", ["-R", `${otherUid}:${otherUid}`, here.root]);
  const agentctl = (...words: string[]) =>
    here.begin(asOther(binary, "worktree", ...words), { cwd: here.repository }).answer;
  const pruned = await agentctl("prune", "-y");
  expect([pruned.code, pruned.out, pruned.err]).toEqual([
    0,
    "no worktree can go\n",
    expect.stringMatching(/a stays: what is in it cannot be told: warning: could not open directory 'closed\/'/),
  ]);
  for (const discard of [[], ["--discard"]]) {
    const refused = await agentctl("remove", "a", ...discard);
    expect(refused.err).toContain("closed");
    expect([1, 5]).toContain(refused.code);
  }
  expect(existsSync(join(closed, "work"))).toBe(true);
});
