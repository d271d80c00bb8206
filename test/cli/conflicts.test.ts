// Two live sessions in each other's way are told, by list and by doctor.
import { expect, test } from "bun:test";
import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type RepositoryWorld, repositoryWorld } from "./repository.ts";

const conflictsIn = async (here: RepositoryWorld): Promise<unknown[]> =>
  (JSON.parse((await here.here("list", "--json")).out) as { conflicts: unknown[] }).conflicts;

const begun = async (here: RepositoryWorld, ...args: string[]): Promise<string> => {
  const { out, err } = await here.launchHere("work:600", ...args);
  if (out === "") throw new Error(err);
  return out.trim();
};

test("the same file changed in two worktrees: both are named, as long as both live", async () => {
  await using here = await repositoryWorld();
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

test("two at work in one worktree share its index; in two repositories they do not meet", async () => {
  await using here = await repositoryWorld();
  const a = await begun(here);
  await here.launched("work:600");
  expect(await conflictsIn(here)).toEqual([]);
  const b = await begun(here, "--share");
  expect(await conflictsIn(here)).toEqual([{ kind: "index", sessions: expect.arrayContaining([a, b]), files: [] }]);
  expect((await here.here("list")).err).toContain("are at work in one worktree");
});

test("a file that both have edited by their own records, also after it was committed", async () => {
  await using here = await repositoryWorld();
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

test("many at work in one worktree are one conflict, in words and as JSON", async () => {
  await using here = await repositoryWorld();
  const agents = Array.from({ length: 12 }, () => here.start(["prompt:x", "work:600"], { cwd: here.repository }));
  for (const { id } of agents) await here.until(id, "working");
  expect(await conflictsIn(here)).toEqual([
    { kind: "index", sessions: expect.arrayContaining(agents.map(({ id }) => id)), files: [] },
  ]);
  const { err } = await here.here("list");
  expect(err).toMatch(/^agentctl: demo \w+, demo \w+, demo \w+ and 9 more are at work in one worktree: .*\n$/);
  // A launch that would be the thirteenth names some of them.
  const refused = await here.launchHere("say:x");
  expect(refused.code).toBe(5);
  expect(refused.err.split("\n").filter((line) => line.startsWith("  demo "))).toHaveLength(5);
  expect(refused.err).toContain("  … and 7 more\n");
});
