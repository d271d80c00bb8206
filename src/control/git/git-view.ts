// A view of a repository: a git directory of agentctl that has the commits, the refs and a copy of the index of a repository, but
// none of its settings. Programs in the repository's configuration (filters, textconv, external diffs, merge drivers, a file
// system monitor, hooks) and remotes are unknown there, so git cannot run them, even if the configuration changes meanwhile.
import { lstatSync, mkdirSync, readdirSync, statSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { deadlineIn } from "../../lib/deadline.ts";
import { failureText, isGone, isSystemError } from "../../lib/errors.ts";
import { readWhole, withFile } from "../../observe/files.ts";
import type { Environment } from "../../observe/homes.ts";
import { openScratch } from "../../sys/scratch.ts";
import { askGitQuietly, commandIn, type GitAnswer, lookingMs } from "./git.ts";

export interface View {
  root: string;
  /** The git directory of this worktree alone. */
  gitDir: string;
  /** Runs git in the view. Git does not look into submodules there, because it would use their settings. */
  git(args: readonly string[], more?: { env?: Readonly<Record<string, string>>; input?: string }): Promise<GitAnswer>;
  /** The filters in the repository's settings, which git does not run in the view. */
  filters: ReadonlySet<string>;
  /** A partial clone: some objects are missing, and git does not fetch them in the view. */
  isPartial: boolean;
}

/**
 * Creates a view for several git commands, which share the time limit, and removes it afterwards. `root` is the root of a worktree:
 * a repository around it does not count.
 */
export async function inView<T>(
  root: string,
  env: Environment,
  ask: (view: View) => Promise<T>,
  maxMs = lookingMs,
): Promise<{ ok: true; value: T } | { ok: false; why: string }> {
  const scratch = openScratch();
  try {
    return { ok: true, value: await ask(await openView(root, env, join(scratch.folder, "git"), maxMs)) };
  } catch (error) {
    if (error instanceof NoView) return { ok: false, why: error.message };
    throw error;
  } finally {
    scratch.remove();
  }
}

class NoView extends Error {}

async function openView(root: string, env: Environment, folder: string, maxMs: number): Promise<View> {
  const deadline = deadlineIn(maxMs);
  try {
    const found = repositoryAt(root);
    if (found === null) throw new NoView(`fatal: not a git repository: ${root}`);
    await checkOwners(root, found, env, deadline.remainingMs());
    const { settings, filters, isPartial } = await readSettings(root, env, deadline.remainingMs());
    buildView(folder, found, settings);
    const own = { GIT_DIR: folder, GIT_WORK_TREE: root, GIT_CONFIG_NOSYSTEM: "1", GIT_CONFIG_GLOBAL: "/dev/null" };
    const runGit: View["git"] = (args, { env: more, ...input } = {}) =>
      askGitQuietly({
        ...{ directory: root, args: withoutSubmodules(args), env, settings: [...settings], ...input },
        ...{ maxMs: deadline.remainingMs(), more: { ...more, ...own } },
      });
    return { root, gitDir: found.own, filters, isPartial, git: runGit };
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new NoView(`cannot read the repository of ${root}: ${failureText(error)}`);
  }
}

interface RepositoryFolders {
  /** The folder with the HEAD and the index of this worktree. */
  own: string;
  /** The folder with the refs and objects that all worktrees share. */
  common: string;
}

const maxPointerBytes = 64 * 1024;

const textOf = (path: string): string =>
  withFile(path, (file) => readWhole(file, maxPointerBytes).toString("utf8")).trimEnd();

function repositoryAt(root: string): RepositoryFolders | null {
  const mark = join(root, ".git");
  const kind = statSync(mark, { throwIfNoEntry: false });
  if (kind === undefined) return null;
  const pointer = kind.isDirectory() ? "" : textOf(mark);
  if (!kind.isDirectory() && !pointer.startsWith("gitdir: ")) return null;
  const own = kind.isDirectory() ? mark : resolve(root, pointer.slice("gitdir: ".length));
  const shared = join(own, "commondir");
  return { own, common: isThere(shared) ? resolve(own, textOf(shared)) : own };
}

export const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

/** Git itself decides whether a repository of another user may be read (safe.directory). */
async function checkOwners(root: string, { own }: RepositoryFolders, env: Environment, maxMs: number): Promise<void> {
  const owners = [lstatSync(root), lstatSync(join(root, ".git")), statSync(own)].map(({ uid }) => uid);
  if (owners.every((uid) => uid === process.geteuid?.())) return;
  const { ok, err } = await askGitQuietly({ directory: root, args: ["rev-parse", "--git-dir"], env, maxMs });
  if (!ok) throw new NoView(err);
}

/** Settings that define how files are compared, and that name no program. */
const harmless = [
  ...["filemode", "symlinks", "ignorecase", "precomposeunicode", "protecthfs", "protectntfs", "longpaths"],
  ...["autocrlf", "eol", "safecrlf", "checkroundtripencoding", "trustctime", "checkstat", "bigfilethreshold"],
  ...["excludesfile", "attributesfile", "sparsecheckout", "sparsecheckoutcone"],
];
const wanted = `^(core\\.(${harmless.join("|")})|index\\.sparse|extensions\\.(objectformat|refstorage)|filter\\..*|remote\\..*\\.promisor)$`;

/** Reads the configuration with its includes. Git reads them only here. */
async function readSettings(root: string, env: Environment, maxMs: number) {
  const args = ["config", "--null", "--get-regexp", wanted];
  const more = { GIT_CEILING_DIRECTORIES: dirname(root) };
  const { ok, out, err } = await askGitQuietly({ directory: root, args, env, maxMs, more });
  // If there is no such setting, git fails without a message.
  if (!ok && err !== "") throw new NoView(`git config: ${err}`);
  const settings = new Map<string, string>();
  const filters = new Set<string>();
  let isPartial = false;
  for (const entry of out.split("\0").filter((text) => text !== "")) {
    const [, key = "", value = "true"] = /^([^\n]*)(?:\n(.*))?$/s.exec(entry) ?? [];
    // Attributes cannot name a filter whose name contains a newline.
    const filter = /^filter\.(.*)\.(?:clean|smudge|process)$/.exec(key)?.[1];
    if (filter !== undefined) filters.add(filter);
    if (key.startsWith("remote.")) isPartial = true;
    if (!/^(?:filter|remote)\./.test(key)) settings.set(key, value);
  }
  return { settings, filters, isPartial };
}

/** Links the shared parts of the repository and the parts of this worktree. */
const sharedFiles = ["refs", "reftable", "packed-refs", "shallow", "info/exclude", "info/attributes", "info/grafts"];

function buildView(folder: string, { own, common }: RepositoryFolders, settings: Map<string, string>): void {
  for (const name of ["info", "objects/info"]) mkdirSync(join(folder, name), { recursive: true });
  const link = (from: string, name: string): void => {
    if (isThere(join(from, name))) symlinkSync(join(from, name), join(folder, name));
  };
  // Objects that git writes (an empty one for a new file) stay in the view.
  symlinkSync(join(common, "objects"), join(folder, "theirs"));
  writeFileSync(join(folder, "objects/info/alternates"), "../theirs\n");
  for (const name of sharedFiles) link(common, name);
  link(own, "info/sparse-checkout");
  for (const name of readdirSync(own)) if (name.startsWith("sharedindex.")) link(own, name);
  writeFileSync(join(folder, "HEAD"), `${textOf(join(own, "HEAD"))}\n`);
  writeFileSync(join(folder, "config"), formatOf(settings));
  copyIndex(join(own, "index"), join(folder, "index"));
}

/** Git reads the format of objects and refs only from this file. */
function formatOf(settings: Map<string, string>): string {
  const format = ["objectformat", "refstorage"].flatMap((name) => {
    const value = settings.get(`extensions.${name}`);
    settings.delete(`extensions.${name}`);
    return value !== undefined && /^[a-z0-9]+$/.test(value) ? [`\t${name} = ${value}`] : [];
  });
  return ["[core]", "\trepositoryformatversion = 1", "\tbare = false", "[extensions]", ...format, ""].join("\n");
}

const maxIndexBytes = 1024 * 1024 * 1024;

/**
 * The copy gets the time of the index: git reads a file that was changed in the second in which the index was written, and takes
 * that second from the index file. Rounding down makes git read the files of one more second.
 */
function copyIndex(from: string, to: string): void {
  try {
    withFile(from, (file) => {
      writeFileSync(to, readWhole(file, maxIndexBytes), { mode: 0o600 });
      const second = Math.floor(file.writtenAt / 1000);
      utimesSync(to, second, second);
    });
  } catch (error) {
    // Before the first `git add` there is no index.
    if (!isGone(error)) throw error;
  }
}

const comparing = new Set(["status", "diff", "diff-files", "diff-index"]);

/** Git would run itself in each submodule, with the submodule's own settings. */
function withoutSubmodules(args: readonly string[]): readonly string[] {
  const { options, command, words } = commandIn(args);
  if (!comparing.has(command)) return args;
  const end = words.includes("--") ? words.indexOf("--") : words.length;
  const before = words.slice(0, end).filter((word) => !word.startsWith("--ignore-submodules"));
  return [...options, command, ...before, "--ignore-submodules=dirty", ...words.slice(end)];
}
