// The existing work: every commit that git shows, and every file and index entry of every worktree that is not ignored.
// Taken by plain git and by reading folders; agentctl is not asked.
import { createHash } from "node:crypto";
import { chmodSync, existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { TestRepository } from "./test-repository.ts";

export interface Worktree {
  path: string;
  /** Its own folder inside of a repository: `.git`, or `.git/worktrees/x`. */
  gitDir: string;
  /** The repository that holds its objects. */
  store: string;
  isSubmodule: boolean;
  /** Git can read it. */
  works: boolean;
  /** `git worktree list` shows it here. */
  isListed: boolean;
  /** Path below the worktree → blob. Of one that git cannot read: all files. */
  files: Map<string, Content>;
  /** Blobs in the index, with their paths. */
  index: Map<string, string>;
}

export interface Content {
  blob: string;
  /** The beginning of it. */
  text: string;
}

export interface Inventory {
  worktrees: Map<string, Worktree>;
  /** Everything below a branch, a tag, a remote branch, a stash: object → subject of the commit, or path. */
  inRefs: Objects;
  /** The same, or only below a HEAD, a ref of one worktree, a rebase or the like. */
  shown: Objects;
  /** The names and values of all refs, to see whether any of them changed. */
  refs: Map<string, string>;
}

interface Objects {
  commits: Map<string, string>;
  others: Set<string>;
}

/** `without`: a worktree that a person agreed to lose, with its branch where that is agentctl's own. */
export const takeInventory = (world: TestRepository, without: string | null = null): Inventory =>
  world.uncovered(() => inventoryOf(world, without));

function inventoryOf(world: TestRepository, without: string | null): Inventory {
  const found = scan(world.area);
  for (const store of found.stores) removeHalfMade(store);
  const inventory: Inventory = { worktrees: new Map(), inRefs: none(), shown: none(), refs: new Map() };
  const excepted = new Set<string>();
  const listed = new Map(found.stores.map((store) => [store, listedIn(world, store)]));
  for (const path of found.worktrees) {
    const worktree = worktreeAt(world, path, listed);
    if (without !== null && goesWith(worktree, without)) {
      excepted.add(worktree.gitDir);
      if (worktree.isSubmodule) excepted.add(worktree.store);
    } else inventory.worktrees.set(path, worktree);
  }
  for (const [store, entries] of listed) {
    if (excepted.has(store)) continue;
    const lost = entries.find(({ path }) => path === without)?.branch ?? "";
    addStore(inventory, world, store, (name) => name !== lost || !name.startsWith("refs/heads/agentctl/"), excepted);
  }
  return inventory;
}

/** The worktree itself, wherever a person has moved it to, and its submodules; not what else lies below. */
function goesWith({ path, gitDir, isSubmodule }: Worktree, discarded: string): boolean {
  const back = join(gitDir, "gitdir");
  const isMoved = existsSync(back) && readFileSync(back, "utf8").replace(/\n$/, "") === join(discarded, ".git");
  return path === discarded || isMoved || (isSubmodule && path.startsWith(`${discarded}/`));
}

const none = (): Objects => ({ commits: new Map(), others: new Set() });

/** A `git worktree add` that was killed leaves an entry that git cannot read, and then lists no worktree at all. */
function removeHalfMade(store: string): void {
  for (const entry of linkedIn(store)) {
    const common = join(entry, "commondir");
    if (!existsSync(common) || statSync(common).size === 0) rmSync(entry, { recursive: true });
  }
}

function linkedIn(store: string): string[] {
  const folder = join(store, "worktrees");
  return existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
}

/** Folders with a `.git`, and repositories, wherever they are. */
function scan(folder: string): { worktrees: string[]; stores: string[] } {
  const worktrees: string[] = [];
  const stores: string[] = [];
  const visit = (path: string): void => {
    // agentctl may have moved a closed folder away from where the world would open it.
    chmodSync(path, 0o700);
    const entries = readdirSync(path, { withFileTypes: true });
    const names = new Set(entries.map(({ name }) => name));
    const isStore = names.has("HEAD") && names.has("objects") && names.has("refs");
    if (isStore) stores.push(path);
    if (names.has(".git")) worktrees.push(path);
    for (const entry of entries)
      if (entry.isDirectory() && !(isStore && insideStore.has(entry.name))) visit(join(path, entry.name));
  };
  visit(folder);
  return { worktrees, stores };
}

/** What holds no repository; `modules` and `worktrees` may. */
const insideStore = new Set(["objects", "refs", "logs", "hooks", "info"]);

interface Listed {
  path: string;
  branch: string | null;
}

function listedIn(world: TestRepository, store: string): Listed[] {
  const out = askStore(world, store, ["worktree", "list", "--porcelain", "-z"]);
  return out.split("\0\0").flatMap((entry) => {
    const lines = entry.split("\0");
    const value = (key: string) => lines.find((line) => line.startsWith(`${key} `))?.slice(key.length + 1) ?? null;
    const path = value("worktree");
    return path === null ? [] : [{ path, branch: value("branch") }];
  });
}

function worktreeAt(world: TestRepository, path: string, listed: Map<string, Listed[]>): Worktree {
  const gitDir = gitDirOf(path);
  const store = storeOf(gitDir);
  const { code, out } = world.tryGit(path, ["ls-files", "-z", "-t", "-s", "-o", "--exclude-standard"], {
    env: { GIT_CEILING_DIRECTORIES: dirname(path) },
  });
  const works = code === 0;
  const files = new Map<string, Content>();
  const index = new Map<string, string>();
  for (const line of works ? out.split("\0").filter(Boolean) : []) {
    const [, mode, blob, name] = /^[^?] (\d+) ([0-9a-f]+) \d\t(.*)$/s.exec(line) ?? [];
    if (mode === "160000") continue;
    if (blob !== undefined && name !== undefined) index.set(blob, name);
    addFile(files, path, name ?? line.slice(2));
  }
  if (!works) for (const name of allFiles(path)) addFile(files, path, name);
  const isSubmodule = gitDir.includes("/modules/");
  const isListed = isSubmodule || (listed.get(store)?.some((each) => each.path === path) ?? false);
  return { path, gitDir, store, isSubmodule, works, isListed, files, index };
}

export function gitDirOf(path: string): string {
  const entry = join(path, ".git");
  if (statSync(entry).isDirectory()) return entry;
  return resolve(
    path,
    readFileSync(entry, "utf8")
      .replace(/^gitdir: /, "")
      .replace(/\n$/, ""),
  );
}

function storeOf(gitDir: string): string {
  const common = join(gitDir, "commondir");
  return existsSync(common) ? resolve(gitDir, readFileSync(common, "utf8").trim()) : gitDir;
}

function addFile(files: Map<string, Content>, folder: string, name: string): void {
  const content = contentAt(join(folder, name));
  if (content !== null) files.set(name, content);
}

/** null: no file is there, or a folder. */
export function contentAt(path: string): Content | null {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined || stat.isDirectory()) return null;
  const bytes = stat.isSymbolicLink() ? Buffer.from(readlinkSync(path)) : readFileSync(path);
  return contentOf(bytes);
}

export function contentOf(bytes: Buffer): Content {
  const blob = createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");
  return { blob, text: bytes.toString("utf8").split("\n")[0]?.slice(0, 80) ?? "" };
}

const allFiles = (folder: string): string[] =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (entry.name === ".git") return [];
    return entry.isDirectory()
      ? allFiles(join(folder, entry.name)).map((name) => join(entry.name, name))
      : [entry.name];
  });

function addStore(
  inventory: Inventory,
  world: TestRepository,
  store: string,
  counts: (ref: string) => boolean,
  excepted: ReadonlySet<string>,
): void {
  const format = "--format=%(objectname) %(refname)";
  const lines = askStore(world, store, ["for-each-ref", format]).split("\n").filter(Boolean);
  const refs = lines
    .map((line) => ({ id: line.slice(0, line.indexOf(" ")), name: line.slice(line.indexOf(" ") + 1) }))
    .filter(({ name }) => counts(name));
  for (const { id, name } of refs) inventory.refs.set(`${store} ${name}`, id);
  // In the main worktree git also shows the refs that belong to this worktree alone.
  const roots = refs.filter(({ name }) => !ownRefs.test(name)).map(({ id }) => id);
  const stashes = idsIn(join(store, "logs/refs/stash"), 1);
  addObjects(inventory.inRefs, world, store, [...roots, ...stashes]);
  addObjects(inventory.shown, world, store, heldByWorktrees(store, excepted));
  for (const [id, subject] of inventory.inRefs.commits) inventory.shown.commits.set(id, subject);
  for (const id of inventory.inRefs.others) inventory.shown.others.add(id);
}

const ownRefs = /^refs\/(worktree|bisect|rewritten)\//;

/** What only a worktree of this repository holds: its HEAD, its own refs, what a rebase or a merge in it has put aside. */
function heldByWorktrees(store: string, excepted: ReadonlySet<string>): string[] {
  return [store, ...linkedIn(store)]
    .filter((folder) => !excepted.has(folder))
    .flatMap((folder) => [
      ...heldBy.flatMap((name) => idsIn(join(folder, name), 0)),
      ...["worktree", "bisect", "rewritten"].flatMap((name) => idsBelow(join(folder, "refs", name))),
    ]);
}

const heldBy = [
  ...["HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REBASE_HEAD", "REVERT_HEAD"],
  ...["rebase-merge/autostash", "rebase-merge/orig-head", "rebase-apply/autostash", "rebase-apply/orig-head"],
  "MERGE_AUTOSTASH",
];

const idsBelow = (folder: string): string[] =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .flatMap((entry) => idsIn(join(entry.parentPath, entry.name), 0))
    : [];

/** The object ids in one column of a file of git's. */
const idsIn = (file: string, column: number): string[] =>
  existsSync(file)
    ? readFileSync(file, "utf8")
        .split("\n")
        .flatMap((line) => /^[0-9a-f]{40}$/.exec(line.split(/\s/)[column] ?? "")?.[0] ?? [])
        .filter((id) => !/^0+$/.test(id))
    : [];

function addObjects(objects: Objects, world: TestRepository, store: string, roots: readonly string[]): void {
  if (roots.length === 0) return;
  const words = ["rev-list", "--objects", "--missing=allow-promisor", "--ignore-missing", "--format=%s", "--stdin"];
  const out = askStore(world, store, words, [...new Set(roots)].join("\n"));
  const lines = out.split("\n");
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    if (line.startsWith("commit ")) {
      at += 1;
      objects.commits.set(line.slice(7), lines[at] ?? "");
    } else if (line !== "") objects.others.add(line.slice(0, 40));
  }
}

/** The setting of a submodule may name a removed worktree, so git gets another one. */
function askStore(world: TestRepository, store: string, words: readonly string[], input = ""): string {
  const { code, out, err } = world.tryGit(store, ["--git-dir", store, "--work-tree", store, ...words], { input });
  if (code !== 0) throw new Error(`git ${words[0]} in ${store}: ${err}`);
  return out;
}
