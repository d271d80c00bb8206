// Root can read every folder, so another user runs agentctl on a worktree with a folder that git cannot read.
import { expect } from "bun:test";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { binary } from "../cli/test-home.ts";
import { createWorktreeHome } from "../cli/test-home-worktrees.ts";
import { asOther, otherUid, testAsOther } from "./other-user.ts";

testAsOther("a worktree with a folder that git cannot read is kept, even with --discard", async () => {
  await using here = await createWorktreeHome();
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
    "no worktree can be removed\n",
    expect.stringMatching(/a is kept: cannot tell what is in it: warning: could not open directory 'closed\/'/),
  ]);
  for (const discard of [[], ["--discard"]]) {
    const refused = await agentctl("remove", "a", ...discard);
    expect(refused.err).toContain("closed");
    expect([1, 5]).toContain(refused.code);
  }
  expect(existsSync(join(closed, "work"))).toBe(true);
});
