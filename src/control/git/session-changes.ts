// The changes in a session's directory since the session began, committed or not. Derived from git at every call.
import { lstatSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "../../core/failure.ts";
import type { Notice } from "../../core/notice.ts";
import type { Session } from "../../core/session.ts";
import type { Environment } from "../../observe/homes.ts";
import { placeOf } from "../../observe/place.ts";
import type { LaunchNote } from "../notes.ts";
import { git, lostByte, namesIn, textOf } from "./git.ts";
import { inView, type View } from "./git-view.ts";
import { dirtySubmodules, filteredAmong, untouchedAmong } from "./view-files.ts";

export interface StartingCommit {
  place: string;
  commit: string;
  /** The time at which the directory was at that commit. */
  at: number;
  /** No launch note has the commit: it is the last one before the session's first message. */
  isGuessed: boolean;
}

export async function beginningOf(
  session: Session,
  note: LaunchNote | null,
  env: Environment,
): Promise<StartingCommit> {
  const place = placeOf(note?.worktree ?? session.cwd);
  if (place === null) throw new Failure("place-unknown", {});
  if (note?.commit != null && (await git(place, ["cat-file", "-e", `${note.commit}^{commit}`], env)).ok)
    return { place, commit: note.commit, at: begunAt(session, note), isGuessed: false };
  const { ok, err } = await git(place, ["rev-parse", "--git-dir"], env);
  if (!ok) throw new Failure("changes-unknown", { place, detail: err });
  if (session.startedAt === null) throw new Failure("start-time-unknown", {});
  const before = `--before=${new Date(session.startedAt).toISOString()}`;
  const { out } = await git(place, ["rev-list", "-1", before, "HEAD"], env);
  // If the session is older than all commits, compare with the empty tree: everything is new.
  const commit = out.trim() || (await git(place, ["hash-object", "-t", "tree", "/dev/null"], env)).out.trim();
  return { place, commit, at: session.startedAt, isGuessed: true };
}

/** Each `send` writes a note with the commit of the first launch. A fork begins with its own note. */
const begunAt = ({ startedAt, parent }: Session, note: LaunchNote): number =>
  Math.min(Date.parse(note.at), parent === null && startedAt !== null ? startedAt : Number.POSITIVE_INFINITY);

export interface SessionChanges {
  commits: number;
  files: number;
  added: number;
  removed: number;
}

export async function changesSince(beginning: StartingCommit, env: Environment) {
  const { place, commit } = beginning;
  const count = await git(place, ["rev-list", "--count", `${commit}..HEAD`], env);
  const { patch, unshown } = await patchSince(beginning, env, ["--numstat", "-z", "--no-renames"]);
  const files = namesIn(patch);
  const sum = (column: 0 | 1): number => files.reduce((all, line) => all + (Number(line.split("\t")[column]) || 0), 0);
  const commits = count.ok ? Number(count.out.trim()) : 0;
  const changes: SessionChanges = { commits, files: files.length, added: sum(0), removed: sum(1) };
  return { changes, unshown };
}

export interface Patch {
  patch: string;
  /** Files that differ from the commit but were last written before the session began. They are not in the patch. */
  before: string[];
  /** Changes that the patch lacks. */
  unshown: Notice[];
}

export async function patchSince(
  beginning: StartingCommit,
  env: Environment,
  words: readonly string[] = [],
): Promise<Patch> {
  const answer = await inView(beginning.place, env, (view) => patchIn(view, beginning, env, words));
  if (!answer.ok) throw new Failure("git-failed", { command: "diff", detail: answer.why });
  return answer.value;
}

async function patchIn(
  view: View,
  { place, commit, at }: StartingCommit,
  env: Environment,
  words: readonly string[],
): Promise<Patch> {
  const ask = async (args: readonly string[], more?: Parameters<View["git"]>[1]): Promise<string> => {
    const answer = await view.git(args, more);
    if (!answer.ok && view.isPartial)
      throw new Failure("partial-clone", { command: args[0] ?? "", detail: answer.err, place, commit });
    textOf(args, answer);
    return answer.out;
  };
  const isBefore = (path: string): boolean => isOlder(join(place, path), at);
  const others = namesIn(await ask(["ls-files", "--others", "--exclude-standard", "-z"]));
  const added = others.filter((path) => !path.includes(lostByte));
  // New files are added to the index of the view: the index of the worktree stays as it is.
  const fromInput = ["--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul"];
  const input = added.filter((path) => !isBefore(path)).join("\0");
  if (input !== "") await ask(["add", ...fromInput], { input, env: { GIT_LITERAL_PATHSPECS: "1" } });
  const diff = ["diff", "--no-color", "--no-ext-diff", "--no-textconv"];
  const names = ["--name-only", "--no-renames", "-z"];
  const known = namesIn(await ask([...diff, ...names, commit, "--"]));
  const filters = await filteredAmong(known, view);
  const filtered = [...filters.values()].flat();
  const cached = filtered.length === 0 ? "" : await ask([...diff, "--cached", ...names, commit, "--"]);
  const inCommits = new Set(namesIn(cached));
  const uncommitted = filtered.filter((path) => !inCommits.has(path));
  const untouched = await untouchedAmong(uncommitted, view);
  const before = known.filter(isBefore);
  const left = new Set([...before, ...untouched]);
  const patch = await ask([...diff, ...words, commit, "--", ...allBut(left)]);
  const submodules = await dirtySubmodules(view, env);
  const nameless = others.filter((path) => path.includes(lostByte));
  const unshown = [...filters].flatMap(([filter, paths]): Notice[] => {
    const count = paths.filter((path) => !left.has(path)).length;
    return count === 0 ? [] : [{ code: "filter-not-run", facts: { filter, count } }];
  });
  if (submodules.length > 0) unshown.push({ code: "submodules-not-shown", facts: { paths: submodules } });
  if (nameless.length > 0) unshown.push({ code: "names-not-shown", facts: { paths: nameless } });
  return {
    patch,
    before: [...before.filter((path) => !untouched.has(path)), ...added.filter(isBefore)],
    unshown,
  };
}

const maxWords = 1024 * 1024;

/** Git takes excluded paths only as arguments, whose total size the kernel limits. */
function allBut(paths: ReadonlySet<string>): string[] {
  const words = [...paths].map((path) => `:(exclude,literal)${path}`);
  if (words.reduce((sum, word) => sum + word.length, 0) > maxWords)
    throw new Failure("too-many-older-files", { count: paths.size });
  return words;
}

/** The kernel sets file times from its coarse clock, which may be one tick behind the clock that we read. */
const tickMs = 10;

/** Compares the ctime, which programs cannot set. A missing file is not older. */
function isOlder(path: string, at: number): boolean {
  const facts = lstatSync(path, { throwIfNoEntry: false });
  return facts !== undefined && facts.ctimeMs < at - tickMs;
}
