// A view of a repository: a git directory of our own that shows its commits, its refs and a copy of its index, and has none of its
// settings. Whatever a repository's configuration names (filters, textconv, external diffs, merge drivers, a file system monitor,
// hooks, remotes) is unknown there, so git cannot run it, even if somebody rewrites the configuration while we look.
import { lstatSync, mkdirSync, readdirSync, statSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { deadlineIn } from "../lib/deadline.ts";
import { failureText, isGone } from "../observe/failure.ts";
import { readWhole, withFile } from "../observe/files.ts";
import type { Environment } from "../observe/homes.ts";
import { openScratch } from "../sys/scratch.ts";
import { askGitQuietly, commandIn, type GitAnswer, lookingMs } from "./git-process.ts";

export interface View {
  root: string;
  /** What git keeps for this worktree alone. */
  gitDir: string;
  /** Asks in the view. What is uncommitted inside of submodules is not looked at: that would obey their settings. */
  git(args: readonly string[], more?: { env?: Readonly<Record<string, string>>; input?: string }): Promise<GitAnswer>;
  /** The filters that the settings name. Git does not run them here. */
  filters: ReadonlySet<string>;
  /** Some of its objects were never fetched; git does not fetch them here. */
  isPartial: boolean;
}

export interface ViewWish {
  env: Environment;
  /** An empty folder for it, which the caller removes. */
  folder: string;
  /** For everything that is asked in it, together. */
  mostMs: number;
}

/** Several questions about one worktree, in one view of it. */
export async function inView<T>(
  root: string,
  env: Environment,
  ask: (view: View) => Promise<T>,
): Promise<{ ok: true; value: T } | { ok: false; why: string }> {
  const scratch = openScratch();
  try {
    const opened = await openView(root, { folder: join(scratch.folder, "git"), env, mostMs: lookingMs });
    return opened.ok ? { ok: true, value: await ask(opened.view) } : opened;
  } finally {
    scratch.remove();
  }
}

type Opened = { ok: true; view: View } | { ok: false; why: string };

/** `root`: of a worktree. A repository around it is not meant. */
export async function openView(root: string, { env, folder, mostMs }: ViewWish): Promise<Opened> {
  const deadline = deadlineIn(mostMs);
  try {
    const found = repositoryAt(root);
    if (found === null) return { ok: false, why: `fatal: not a git repository: ${root}` };
    const refusal = await ownersRefusal(root, found, env, deadline.remainingMs());
    if (refusal !== null) return { ok: false, why: refusal };
    const read = await readSettings(root, env, deadline.remainingMs());
    if (!read.ok) return read;
    buildView(folder, found, read.settings);
    const own = { GIT_DIR: folder, GIT_WORK_TREE: root, GIT_CONFIG_NOSYSTEM: "1", GIT_CONFIG_GLOBAL: "/dev/null" };
    return {
      ok: true,
      view: {
        root,
        gitDir: found.own,
        filters: read.filters,
        isPartial: read.isPartial,
        git: (args, more = {}) =>
          askGitQuietly({
            ...{ place: root, args: withoutSubmodules(args), env, settings: [...read.settings] },
            ...{ mostMs: deadline.remainingMs(), more: { ...more.env, ...own } },
            ...(more.input === undefined ? {} : { input: more.input }),
          }),
      },
    };
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    return { ok: false, why: `cannot read the repository of ${root}: ${failureText(error)}` };
  }
}

interface Found {
  /** What belongs to this worktree: its HEAD and its index. */
  own: string;
  /** What all worktrees share: refs and objects. */
  common: string;
}

const mostPointerBytes = 64 * 1024;

const textOf = (path: string): string =>
  withFile(path, (file) => readWhole(file, mostPointerBytes).toString("utf8")).trimEnd();

function repositoryAt(root: string): Found | null {
  const mark = join(root, ".git");
  const kind = statSync(mark, { throwIfNoEntry: false });
  if (kind === undefined) return null;
  const pointer = kind.isDirectory() ? "" : textOf(mark);
  if (!kind.isDirectory() && !pointer.startsWith("gitdir: ")) return null;
  const own = kind.isDirectory() ? mark : resolve(root, pointer.slice("gitdir: ".length));
  const shared = join(own, "commondir");
  return { own, common: isThere(shared) ? resolve(own, textOf(shared)) : own };
}

const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

/** Git itself says whether a repository of another user may be looked at (safe.directory). */
async function ownersRefusal(root: string, { own }: Found, env: Environment, mostMs: number): Promise<string | null> {
  const owners = [lstatSync(root), lstatSync(join(root, ".git")), statSync(own)].map(({ uid }) => uid);
  if (owners.every((uid) => uid === process.geteuid?.())) return null;
  const { ok, err } = await askGitQuietly({ place: root, args: ["rev-parse", "--git-dir"], env, mostMs });
  return ok ? null : err;
}

/** Settings that say how files are to be compared, and that name no program. */
const harmless = [
  ...["filemode", "symlinks", "ignorecase", "precomposeunicode", "protecthfs", "protectntfs", "longpaths"],
  ...["autocrlf", "eol", "safecrlf", "checkroundtripencoding", "trustctime", "checkstat", "bigfilethreshold"],
  ...["excludesfile", "attributesfile", "sparsecheckout", "sparsecheckoutcone"],
];
const wanted = `^(core\\.(${harmless.join("|")})|index\\.sparse|extensions\\.(objectformat|refstorage)|filter\\..*|remote\\..*\\.promisor)$`;

interface Settings {
  ok: true;
  settings: Map<string, string>;
  filters: Set<string>;
  isPartial: boolean;
}

/** With everything that the configuration includes, which git reads here and nowhere else. */
async function readSettings(
  root: string,
  env: Environment,
  mostMs: number,
): Promise<Settings | { ok: false; why: string }> {
  const args = ["config", "--null", "--get-regexp", wanted];
  const more = { GIT_CEILING_DIRECTORIES: dirname(root) };
  const { ok, out, err } = await askGitQuietly({ place: root, args, env, mostMs, more });
  // Without any such setting git fails and says nothing.
  if (!ok && err !== "") return { ok: false, why: `git config: ${err}` };
  const settings = new Map<string, string>();
  const filters = new Set<string>();
  let isPartial = false;
  for (const entry of out.split("\0").filter((text) => text !== "")) {
    const [, key = "", value = "true"] = /^([^\n]*)(?:\n(.*))?$/s.exec(entry) ?? [];
    // The name of a filter that attributes can choose holds no newline.
    const filter = /^filter\.(.*)\.(?:clean|smudge|process)$/.exec(key)?.[1];
    if (filter !== undefined) filters.add(filter);
    if (key.startsWith("remote.")) isPartial = true;
    if (!/^(?:filter|remote)\./.test(key)) settings.set(key, value);
  }
  return { ok: true, settings, filters, isPartial };
}

/** What the worktrees of a repository share, and what each has of its own. */
const sharedFiles = ["refs", "reftable", "packed-refs", "shallow", "info/exclude", "info/attributes", "info/grafts"];

function buildView(folder: string, { own, common }: Found, settings: Map<string, string>): void {
  for (const name of ["info", "objects/info"]) mkdirSync(join(folder, name), { recursive: true });
  const link = (from: string, name: string): void => {
    if (isThere(join(from, name))) symlinkSync(join(from, name), join(folder, name));
  };
  // What git writes here (for a new file the empty object) stays here.
  symlinkSync(join(common, "objects"), join(folder, "theirs"));
  writeFileSync(join(folder, "objects/info/alternates"), "../theirs\n");
  for (const name of sharedFiles) link(common, name);
  link(own, "info/sparse-checkout");
  for (const name of readdirSync(own)) if (name.startsWith("sharedindex.")) link(own, name);
  writeFileSync(join(folder, "HEAD"), `${textOf(join(own, "HEAD"))}\n`);
  writeFileSync(join(folder, "config"), formatOf(settings));
  copyIndex(join(own, "index"), join(folder, "index"));
}

/** The format of objects and refs stands in the file alone: git does not take it from elsewhere. */
function formatOf(settings: Map<string, string>): string {
  const format = ["objectformat", "refstorage"].flatMap((name) => {
    const value = settings.get(`extensions.${name}`);
    settings.delete(`extensions.${name}`);
    return value !== undefined && /^[a-z0-9]+$/.test(value) ? [`\t${name} = ${value}`] : [];
  });
  return ["[core]", "\trepositoryformatversion = 1", "\tbare = false", "[extensions]", ...format, ""].join("\n");
}

const mostIndexBytes = 1024 * 1024 * 1024;

/**
 * The copy is as old as the index: git compares the content of a file that was changed in the second in which the index was
 * written, and it knows that second by the index's own time. Rounded down, that is one second of files more.
 */
function copyIndex(from: string, to: string): void {
  try {
    withFile(from, (file) => {
      writeFileSync(to, readWhole(file, mostIndexBytes), { mode: 0o600 });
      const second = Math.floor(file.writtenAt / 1000);
      utimesSync(to, second, second);
    });
  } catch (error) {
    // A repository without a first `git add` has none.
    if (!isGone(error)) throw error;
  }
}

const comparing = new Set(["status", "diff", "diff-files", "diff-index"]);

/** Git would start itself inside of each submodule, where the submodule's own settings count. */
function withoutSubmodules(args: readonly string[]): readonly string[] {
  const { options, command, words } = commandIn(args);
  if (!comparing.has(command)) return args;
  const end = words.includes("--") ? words.indexOf("--") : words.length;
  const before = words.slice(0, end).filter((word) => !word.startsWith("--ignore-submodules"));
  return [...options, command, ...before, "--ignore-submodules=dirty", ...words.slice(end)];
}
