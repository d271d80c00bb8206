// list and doctor report live sessions that conflict with each other.
import { expect, test } from "bun:test";
import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createRepositoryHome, type RepositoryTestHome } from "./test-home-repository.ts";

const conflictsIn = async (here: RepositoryTestHome): Promise<unknown[]> =>
  (JSON.parse((await here.here("list", "--json")).out) as { conflicts: unknown[] }).conflicts;

const begun = async (here: RepositoryTestHome, ...args: string[]): Promise<string> => {
  const { out, err } = await here.launchHere("work:600", ...args);
  if (out === "") throw new Error(err);
  return out.trim();
};

test("the same file changed in two worktrees is reported while both sessions are live", async () => {
  await using here = await createRepositoryHome();
  const a = await begun(here, "--worktree", "--name", "a");
  const b = await begun(here, "--worktree", "--name", "b");
  expect(await conflictsIn(here)).toEqual([]);
  for (const name of ["a", "b"]) writeFileSync(join(here.at(name), "file"), `${name}\n`);
  writeFileSync(join(here.at("a"), "own"), "");
  expect(await conflictsIn(here)).toEqual([
    { kind: "file", sessions: expect.arrayContaining([a, b]), files: ["file"] },
  ]);
  const { err } = await here.here("list");
  expect(err).toContain("have both changed file");
  for (const id of [a, b]) expect(err).toContain(id.slice(0, 8));
  expect((await here.here("doctor")).out).toContain("have both changed file");
  await here.agentctl("stop", a);
  expect(await conflictsIn(here)).toEqual([]);
});

test("two working sessions in one worktree conflict; in two repositories they do not", async () => {
  await using here = await createRepositoryHome();
  const a = await begun(here);
  await here.launched("work:600");
  expect(await conflictsIn(here)).toEqual([]);
  const b = await begun(here, "--share");
  expect(await conflictsIn(here)).toEqual([{ kind: "index", sessions: expect.arrayContaining([a, b]), files: [] }]);
  expect((await here.here("list")).err).toContain("work in the same worktree");
});

test("a file that both sessions edited, according to their records, is reported even after a commit", async () => {
  await using here = await createRepositoryHome();
  const a = await begun(here, "--worktree", "--name", "a");
  const b = await begun(here, "--share");
  const at = new Date().toISOString();
  const edits = (id: string, name: string, input: string): void =>
    appendFileSync(
      join(here.home, "sessions", `${id}.jsonl`),
      `${JSON.stringify({ type: "tool", at, name, input })}\n`,
    );
  edits(a, "Edit", join(here.at("a"), "sub/file"));
  edits(b, "Read", join(here.repository, "sub/file"));
  expect(await conflictsIn(here)).toEqual([]);
  edits(b, "Write", "sub/file");
  edits(b, "Write", "/elsewhere/file");
  expect(await conflictsIn(here)).toEqual([
    { kind: "file", sessions: expect.arrayContaining([a, b]), files: ["sub/file"] },
  ]);
});

test("many sessions in one worktree are one conflict, in the text and in JSON", async () => {
  await using here = await createRepositoryHome();
  const agents = Array.from({ length: 12 }, () => here.start(["prompt:x", "work:600"], { cwd: here.repository }));
  for (const { id } of agents) await here.until(id, "working");
  expect(await conflictsIn(here)).toEqual([
    { kind: "index", sessions: expect.arrayContaining(agents.map(({ id }) => id)), files: [] },
  ]);
  const { err } = await here.here("list");
  expect(err).toMatch(/^agentctl: demo \w+, demo \w+, demo \w+ and 9 more work in the same worktree: .*\n$/);
  // A launch that would be the thirteenth names some of them.
  const refused = await here.launchHere("say:x");
  expect(refused.code).toBe(5);
  expect(refused.err).toStartWith(`agentctl: cannot launch in ~/`);
  expect(refused.err.match(/demo \S+ is working there/g)).toHaveLength(5);
  expect(refused.err).toContain("  … and 7 more\n");
});
