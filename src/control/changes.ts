// What a session changed in its place since it began, committed or not. Derived from git when asked.
import { lstatSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AgentctlError } from "../core/problem.ts";
import type { Session } from "../core/session.ts";
import { isGone } from "../observe/failure.ts";
import { readWhole, withFile } from "../observe/files.ts";
import type { Environment } from "../observe/homes.ts";
import { placeOf } from "../observe/place.ts";
import { openScratch } from "../sys/scratch.ts";
import { git, gitText } from "./git.ts";
import type { LaunchNote } from "./notes.ts";

export interface Beginning {
  place: string;
  commit: string;
  /** When it was at that commit. */
  at: number;
  /** Nobody noted it at the start: the last commit before its first message. */
  isGuessed: boolean;
}

/** An error that says why nobody can tell, where that is so. */
export async function beginningOf(session: Session, note: LaunchNote | null, env: Environment): Promise<Beginning> {
  const place = placeOf(note?.worktree ?? session.cwd);
  if (place === null) throw new AgentctlError("cannot-tell", "nobody knows where it worked");
  const known = note?.commit == null ? null : await git(place, ["cat-file", "-e", `${note.commit}^{commit}`], env);
  if (note?.commit != null && known?.ok === true)
    return { place, commit: note.commit, at: Date.parse(note.at), isGuessed: false };
  const { ok, err } = await git(place, ["rev-parse", "--git-dir"], env);
  if (!ok)
    throw new AgentctlError("refused", `${place} is in no git repository: what changed there is not known\n${err}`);
  if (session.startedAt === null) throw new AgentctlError("cannot-tell", "nobody knows when it began");
  const before = `--before=${new Date(session.startedAt).toISOString()}`;
  const { out } = await git(place, ["rev-list", "-1", before, "HEAD"], env);
  // Older than everything that is there: all of it came since.
  const commit = out.trim() || (await git(place, ["hash-object", "-t", "tree", "/dev/null"], env)).out.trim();
  return { place, commit, at: session.startedAt, isGuessed: true };
}

export interface Changes {
  commits: number;
  files: number;
  added: number;
  removed: number;
}

export async function changesSince(beginning: Beginning, env: Environment): Promise<Changes> {
  const { place, commit } = beginning;
  const count = await git(place, ["rev-list", "--count", `${commit}..HEAD`], env);
  const { patch } = await patchSince(beginning, env, ["--numstat", "-z", "--no-renames"]);
  const files = patch.split("\0").filter((line) => line !== "");
  const sum = (column: 0 | 1): number => files.reduce((all, line) => all + (Number(line.split("\t")[column]) || 0), 0);
  return { commits: count.ok ? Number(count.out.trim()) : 0, files: files.length, added: sum(0), removed: sum(1) };
}

/** `before`: files that differ from the commit, and were last touched before the session began. They are not in the patch. */
export async function patchSince(
  { place, commit, at }: Beginning,
  env: Environment,
  words: readonly string[] = [],
): Promise<{ patch: string; before: string[] }> {
  const scratch = openScratch();
  const pathTo = (...what: string[]): Promise<string> =>
    gitText(place, ["rev-parse", "--path-format=absolute", ...what], env);
  try {
    const top = await pathTo("--show-toplevel");
    // Files that git does not know yet stand in an index of our own: the session's stays as it is.
    const index = { GIT_INDEX_FILE: join(scratch.folder, "index") };
    copyIfThere(await pathTo("--git-path", "index"), index.GIT_INDEX_FILE);
    const ask = async (...args: string[]): Promise<string> => {
      const { ok, out, err } = await git(top, args, env, index);
      if (!ok) throw new AgentctlError("failed", `git ${args[0]}: ${err}`);
      return out;
    };
    const isBefore = (path: string): boolean => isOlder(join(top, path), at);
    const added = namesIn(await ask("ls-files", "--others", "--exclude-standard", "-z"));
    const list = join(scratch.folder, "added");
    writeFileSync(list, added.filter((path) => !isBefore(path)).join("\0"));
    const fromList = ["--intent-to-add", `--pathspec-from-file=${list}`, "--pathspec-file-nul"];
    await git(top, ["add", ...fromList], env, { ...index, GIT_LITERAL_PATHSPECS: "1" });
    const diff = ["diff", "--no-color", "--no-ext-diff", "--no-textconv"];
    const known = namesIn(await ask(...diff, "--name-only", "--no-renames", "-z", commit, "--"));
    const left = known.filter(isBefore);
    const but = left.map((path) => `:(exclude,literal)${path}`);
    const patch = await ask(...diff, ...words, commit, "--", ...but);
    return { patch, before: [...left, ...added.filter(isBefore)] };
  } finally {
    scratch.remove();
  }
}

const namesIn = (list: string): string[] => list.split("\0").filter((name) => name !== "");

/** By the kernel's own time, which nobody sets back. What is not there has none. */
function isOlder(path: string, at: number): boolean {
  const facts = lstatSync(path, { throwIfNoEntry: false });
  return facts !== undefined && facts.ctimeMs < at;
}

const mostIndex = 1024 ** 3;

function copyIfThere(from: string, to: string): void {
  try {
    withFile(from, (file) => writeFileSync(to, readWhole(file, mostIndex), { mode: 0o600 }));
  } catch (error) {
    if (!isGone(error)) throw error;
  }
}
