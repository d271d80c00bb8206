// What a session changed in its place since it began, committed or not. Derived from git when asked.
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { AgentctlError } from "../core/problem.ts";
import type { Session } from "../core/session.ts";
import { isGone } from "../observe/failure.ts";
import type { Environment } from "../observe/homes.ts";
import { placeOf } from "../observe/place.ts";
import { openScratch } from "../sys/scratch.ts";
import { git } from "./git.ts";
import type { LaunchNote } from "./notes.ts";

export interface Beginning {
  place: string;
  commit: string;
  /** Nobody noted it at the start: the last commit before its first message. */
  isGuessed: boolean;
}

/** An error that says why nobody can tell, where that is so. */
export async function beginningOf(session: Session, note: LaunchNote | null, env: Environment): Promise<Beginning> {
  const place = placeOf(note?.worktree ?? session.cwd);
  if (place === null) throw new AgentctlError("cannot-tell", "nobody knows where it worked");
  const known = note?.commit == null ? null : await git(place, ["cat-file", "-e", `${note.commit}^{commit}`], env);
  if (note?.commit != null && known?.ok === true) return { place, commit: note.commit, isGuessed: false };
  const { ok, err } = await git(place, ["rev-parse", "--git-dir"], env);
  if (!ok)
    throw new AgentctlError("refused", `${place} is in no git repository: what changed there is not known\n${err}`);
  if (session.startedAt === null) throw new AgentctlError("cannot-tell", "nobody knows when it began");
  const before = `--before=${new Date(session.startedAt).toISOString()}`;
  const { out } = await git(place, ["rev-list", "-1", before, "HEAD"], env);
  // Older than everything that is there: all of it came since.
  const commit = out.trim() || (await git(place, ["hash-object", "-t", "tree", "/dev/null"], env)).out.trim();
  return { place, commit, isGuessed: true };
}

export interface Changes {
  commits: number;
  files: number;
  added: number;
  removed: number;
}

export async function changesSince({ place, commit }: Beginning, env: Environment): Promise<Changes> {
  const count = await git(place, ["rev-list", "--count", `${commit}..HEAD`], env);
  const stat = await diff(place, ["--numstat", "-z", "--no-renames", commit], env);
  const files = stat.split("\0").filter((line) => line !== "");
  const sum = (column: 0 | 1): number => files.reduce((all, line) => all + (Number(line.split("\t")[column]) || 0), 0);
  return { commits: count.ok ? Number(count.out.trim()) : 0, files: files.length, added: sum(0), removed: sum(1) };
}

export const patchSince = (
  { place, commit }: Beginning,
  env: Environment,
  words: readonly string[] = [],
): Promise<string> => diff(place, [...words, commit], env);

/** With files that git does not know yet: in an index of our own, so that the session's stays as it is. */
async function diff(place: string, words: readonly string[], env: Environment): Promise<string> {
  const scratch = openScratch();
  try {
    const { out: index } = await git(place, ["rev-parse", "--path-format=absolute", "--git-path", "index"], env);
    const own = { GIT_INDEX_FILE: join(scratch.folder, "index") };
    copyIfThere(index.replace(/\n$/, ""), own.GIT_INDEX_FILE);
    await git(place, ["add", "--intent-to-add", "--all", "--", "."], env, own);
    const asked = ["--no-pager", "diff", "--no-color", "--no-ext-diff", "--no-textconv", ...words, "--"];
    const { ok, out, err } = await git(place, asked, env, own);
    if (!ok) throw new AgentctlError("failed", `git diff: ${err}`);
    return out;
  } finally {
    scratch.remove();
  }
}

function copyIfThere(from: string, to: string): void {
  try {
    copyFileSync(from, to);
  } catch (error) {
    if (!isGone(error)) throw error;
  }
}
