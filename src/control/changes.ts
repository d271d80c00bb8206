// What a session changed in its place since it began, committed or not. Derived from git when asked.
import { lstatSync } from "node:fs";
import { join } from "node:path";
import { AgentctlError } from "../core/problem.ts";
import type { Session } from "../core/session.ts";
import { someOf } from "../lib/width.ts";
import type { Environment } from "../observe/homes.ts";
import { placeOf } from "../observe/place.ts";
import { git } from "./git.ts";
import { textOf } from "./git-process.ts";
import { inView, type View } from "./git-view.ts";
import type { LaunchNote } from "./notes.ts";
import { dirtySubmodules, filteredAmong, namesIn, untouchedAmong } from "./view-files.ts";

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
  const isKnown = note?.commit != null && (await isCommit(note.commit, place, env));
  if (note?.commit != null && isKnown)
    return { place, commit: note.commit, at: begunAt(session, note), isGuessed: false };
  const { ok, err } = await git(place, ["rev-parse", "--git-dir"], env);
  if (!ok) throw new AgentctlError("refused", `git cannot say what changed in ${place}:\n${err}`);
  if (session.startedAt === null) throw new AgentctlError("cannot-tell", "nobody knows when it began");
  const before = `--before=${new Date(session.startedAt).toISOString()}`;
  const { out } = await git(place, ["rev-list", "-1", before, "HEAD"], env);
  // Older than everything that is there: all of it came since.
  const commit = out.trim() || (await git(place, ["hash-object", "-t", "tree", "/dev/null"], env)).out.trim();
  return { place, commit, at: session.startedAt, isGuessed: true };
}

/** A message that was sent later has a note of its own, with the commit of the beginning. A fork begins with its own note. */
const begunAt = ({ startedAt, parent }: Session, note: LaunchNote): number =>
  Math.min(Date.parse(note.at), parent === null && startedAt !== null ? startedAt : Number.POSITIVE_INFINITY);

const isCommit = async (commit: string, place: string, env: Environment): Promise<boolean> =>
  (await git(place, ["cat-file", "-e", `${commit}^{commit}`], env)).ok;

export interface Changes {
  commits: number;
  files: number;
  added: number;
  removed: number;
}

export async function changesSince(
  beginning: Beginning,
  env: Environment,
): Promise<{ changes: Changes; unshown: string[] }> {
  const { place, commit } = beginning;
  const count = await git(place, ["rev-list", "--count", `${commit}..HEAD`], env);
  const { patch, unshown } = await patchSince(beginning, env, ["--numstat", "-z", "--no-renames"]);
  const files = namesIn(patch);
  const sum = (column: 0 | 1): number => files.reduce((all, line) => all + (Number(line.split("\t")[column]) || 0), 0);
  const commits = count.ok ? Number(count.out.trim()) : 0;
  return { changes: { commits, files: files.length, added: sum(0), removed: sum(1) }, unshown };
}

export interface Patch {
  patch: string;
  /** Files that differ from the commit, and were last touched before the session began. They are not in the patch. */
  before: string[];
  /** What the patch cannot show without running a program that the repository names, in words. */
  unshown: string[];
}

export async function patchSince(
  beginning: Beginning,
  env: Environment,
  words: readonly string[] = [],
): Promise<Patch> {
  const answer = await inView(beginning.place, env, (view) => patchIn(view, beginning, env, words));
  if (!answer.ok) throw new AgentctlError("failed", answer.why);
  return answer.value;
}

async function patchIn(
  view: View,
  { place, commit, at }: Beginning,
  env: Environment,
  words: readonly string[],
): Promise<Patch> {
  const ask = async (args: readonly string[], more?: Parameters<View["git"]>[1]): Promise<string> => {
    const answer = await view.git(args, more);
    if (!answer.ok && view.isPartial)
      throw new AgentctlError("failed", `git ${args[0]}: ${answer.err}\n${place} is a partial clone`, {
        hint: `agentctl fetches nothing; git -C ${place} diff ${commit} fetches what is missing`,
      });
    textOf(args, answer);
    return answer.out;
  };
  const isBefore = (path: string): boolean => isOlder(join(place, path), at);
  const others = namesIn(await ask(["ls-files", "--others", "--exclude-standard", "-z"]));
  const added = others.filter((path) => !path.includes(unreadable));
  // Files that git does not know yet are noted in the view's own index: the session's stays as it is.
  const fromInput = ["--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul"];
  const input = added.filter((path) => !isBefore(path)).join("\0");
  if (input !== "") await ask(["add", ...fromInput], { input, env: { GIT_LITERAL_PATHSPECS: "1" } });
  const diff = ["diff", "--no-color", "--no-ext-diff", "--no-textconv"];
  const names = ["--name-only", "--no-renames", "-z"];
  const known = namesIn(await ask([...diff, ...names, commit, "--"]));
  const filters = await filteredAmong(known, view);
  const filtered = [...filters.values()].flat();
  const inCommits = new Set(
    filtered.length === 0 ? [] : namesIn(await ask([...diff, "--cached", ...names, commit, "--"])),
  );
  const untouched = await untouchedAmong(
    filtered.filter((path) => !inCommits.has(path)),
    view,
  );
  const before = known.filter(isBefore);
  const left = new Set([...before, ...untouched]);
  const patch = await ask([...diff, ...words, commit, "--", ...allBut(left)]);
  const unshown = [
    ...[...filters].map(([filter, paths]) => filterWords(filter, paths.filter((path) => !left.has(path)).length)),
    listWords("uncommitted changes in submodules", await dirtySubmodules(view, env)),
    listWords(
      "files whose names are not UTF-8",
      others.filter((path) => path.includes(unreadable)),
    ),
  ];
  return {
    patch,
    before: [...before.filter((path) => !untouched.has(path)), ...added.filter(isBefore)],
    unshown: unshown.filter((text) => text !== null),
  };
}

const mostNamed = 5;
const mostWords = 1024 * 1024;

/** Git takes what it is to leave out from its arguments alone, and the kernel limits those. */
function allBut(paths: ReadonlySet<string>): string[] {
  const words = [...paths].map((path) => `:(exclude,literal)${path}`);
  if (words.reduce((sum, word) => sum + word.length, 0) > mostWords)
    throw new AgentctlError("failed", `${paths.size} changed files are older than the session: too many to leave out`, {
      hint: "git diff shows them all",
    });
  return words;
}

/** Stands for a byte that is no character: git would not find the file by such a name. */
const unreadable = "\uFFFD";

const filterWords = (filter: string, files: number): string | null =>
  files === 0
    ? null
    : `${files === 1 ? "1 file goes" : `${files} files go`} through the filter ${filter}, which agentctl does not run: shown as on disk`;

const listWords = (what: string, names: readonly string[]): string | null =>
  names.length === 0 ? null : `not in here: ${what}: ${someOf(names, mostNamed)}`;

/** The kernel stamps a file with its coarse clock, which is up to a tick behind the clock that we read. */
const tickMs = 10;

/** By the kernel's own time, which nobody sets back. What is not there has none. */
function isOlder(path: string, at: number): boolean {
  const facts = lstatSync(path, { throwIfNoEntry: false });
  return facts !== undefined && facts.ctimeMs < at - tickMs;
}
