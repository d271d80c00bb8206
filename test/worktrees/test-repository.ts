// A temporary repository with its remote, its worktrees and its own home, all below one folder.
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { Dice } from "../truth/random.ts";
import type { Content } from "./inventory.ts";

const foundGit = Bun.which("git");
if (foundGit === null) throw new Error("git is not installed");
/** The real one; agentctl meets the counting one of disturbance.ts first. */
export const realGit: string = foundGit;

const settings = `[user]\n\tname = Person\n\temail = person@example.invalid
[init]\n\tdefaultBranch = main\n\ttemplateDir =
[protocol "file"]\n\tallow = always
[uploadpack]\n\tallowFilter = true
[core]\n\tfsync = none
[gc]\n\tauto = 0
[maintenance]\n\tauto = false
[advice]\n\tdetachedHead = false
`;

/** Something that hides work for a while: a disk that is not mounted, a folder that cannot be read. */
export interface HiddenWork {
  lift(): void;
  drop(): void;
}

export interface Site {
  /** Where git believes the worktree to be. */
  path: string;
  name: string;
  branch: string | null;
  /** What agentctl must never remove, whatever a person wishes: "live" and "locked". */
  state: "plain" | "locked" | "live" | "hidden" | "broken";
}

export class GitFailed extends Error {}

export class TestRepository {
  readonly home: string;
  /** All repositories and worktrees. */
  readonly area: string;
  readonly hook: string;
  /** How often agentctl calls git for a look at this repository: moments are drawn within. */
  gitCallsOfLook = 1;
  /** The main worktree, or the bare repository. */
  repository = "";
  kind: TemplateKind = "plain";
  sites: Site[] = [];
  hiddenWork: HiddenWork[] = [];
  /** Files that a person or an agent may write while agentctl runs, by their names in the journal. */
  readonly deeds = new Map<string, { worktree: string; name: string; content: Content }>();
  /** What the schedule did, for people. */
  readonly story: string[] = [];
  #count = 0;

  constructor(
    readonly root: string,
    readonly binary: string,
  ) {
    this.home = join(root, "home");
    this.area = join(root, "area");
    this.hook = join(root, "hook");
    for (const folder of [this.home, this.area, this.hook, join(root, "tmp"), join(root, "runtime")])
      mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(join(this.home, ".gitconfig"), settings);
  }

  /** agentctl's own folder for worktrees of this repository. */
  get folder(): string {
    return `${this.repository.replace(/\.git$/, "")}.worktrees`;
  }

  get environment(): Record<string, string> {
    return {
      HOME: this.home,
      PATH: process.env["PATH"] ?? "/usr/bin:/bin",
      LC_ALL: "C",
      TMPDIR: join(this.root, "tmp"),
      XDG_RUNTIME_DIR: join(this.root, "runtime"),
      GIT_CONFIG_GLOBAL: join(this.home, ".gitconfig"),
      GIT_CONFIG_NOSYSTEM: "1",
    };
  }

  git(cwd: string, ...args: string[]): string {
    const { code, out, err } = this.tryGit(cwd, args);
    if (code !== 0) throw new GitFailed(`git ${args.join(" ")} in ${cwd}: ${err || `exit ${code}`}`);
    return out.replace(/\n$/, "");
  }

  tryGit(
    cwd: string,
    args: readonly string[],
    { input = "", env = {} }: { input?: string; env?: Record<string, string> } = {},
  ): { code: number; out: string; err: string } {
    const { status, stdout, stderr } = spawnSync(realGit, args, {
      cwd,
      env: { ...this.environment, ...env },
      input,
      encoding: "utf8",
      maxBuffer: 1 << 26,
    });
    return { code: status ?? 128, out: stdout ?? "", err: (stderr ?? "").trim() };
  }

  /** A text that exists nowhere else; its first words tell what it is when it is missing later. */
  text(label: string): string {
    this.#count += 1;
    return `${label} ${this.#count}\n`;
  }

  write(path: string, label: string): void {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, this.text(label));
  }

  commit(cwd: string, label: string): void {
    const message = this.text(label).trim();
    const file = `file-${this.#count}`;
    this.write(join(cwd, file), label);
    this.git(cwd, "add", "--sparse", "--", file);
    this.git(cwd, "commit", "-q", "-m", message, "--", file);
  }

  tell(line: string): void {
    this.story.push(line.replaceAll("\n", "\\n"));
  }

  /** Mounts every disk and opens every folder, as a person would who looks for the work. */
  uncovered<T>(look: () => T): T {
    this.#lift();
    try {
      return look();
    } finally {
      for (const work of this.hiddenWork) work.drop();
    }
  }

  /** The later ones first: a disk may hold a folder that was closed before it was unmounted. */
  #lift(): void {
    for (const work of this.hiddenWork.toReversed()) work.lift();
  }

  end(): void {
    this.#lift();
    spawnSync("chmod", ["-R", "u+rwX", "--", this.root]);
    rmSync(this.root, { recursive: true, force: true });
  }
}

/** A folder that is away: nothing in its place, or the empty folder that a mount point is. */
export function unmountedDisk(world: TestRepository, folder: string, place: "missing" | "empty"): HiddenWork {
  const parked = join(world.root, `parked-${world.hiddenWork.length}`);
  // What was made in its place meanwhile. It is shown together with the disk, and left in place when the disk goes away again.
  let meanwhile: string[] = [];
  const move = (from: string, to: string): void => {
    for (const name of meanwhile) if (existsSync(join(from, name))) renameSync(join(from, name), join(to, name));
  };
  return {
    drop() {
      if (!existsSync(folder)) return;
      renameSync(folder, parked);
      if (place === "empty" || meanwhile.length > 0) mkdirSync(folder);
      move(parked, folder);
    },
    lift() {
      if (!existsSync(parked)) return;
      meanwhile = existsSync(folder) ? readdirSync(folder) : [];
      move(folder, parked);
      rmSync(folder, { recursive: true, force: true });
      mkdirSync(dirname(folder), { recursive: true });
      renameSync(parked, folder);
    },
  };
}

export function unreadableFolder(folder: string): HiddenWork {
  const set = (mode: number) => () => {
    if (existsSync(folder)) chmodSync(folder, mode);
  };
  return { drop: set(0), lift: set(0o700) };
}

const templateKinds = ["plain", "partial", "modules", "bare", "alone"] as const;
export type TemplateKind = (typeof templateKinds)[number];

/** One repository of each kind is made once; schedules copy it. */
export class Templates {
  readonly #folder: string;

  constructor(base: string) {
    const world = new TestRepository(join(base, "templates"), "");
    this.#folder = world.area;
    for (const kind of templateKinds) makeTemplate(world, kind);
    const nested = join(world.area, "nested");
    world.git(world.area, "init", "-q", nested);
    world.commit(nested, "first of a nested repository");
  }

  /** Copies the repository and its remotes into the world. */
  fill(world: TestRepository, kind: TemplateKind, name: string): void {
    const from = join(this.#folder, kind);
    copy(`${from}/.`, world.area);
    const isBare = kind === "bare";
    world.kind = kind;
    world.repository = join(world.area, isBare ? `${name}.git` : name);
    renameSync(join(world.area, "repository"), world.repository);
    const config = join(world.repository, isBare ? "config" : ".git/config");
    writeFileSync(config, readFileSync(config, "utf8").replaceAll(from, world.area));
  }

  nested(path: string): void {
    mkdirSync(dirname(path), { recursive: true });
    copy(join(this.#folder, "nested"), path);
  }
}

export const drawTemplate = (dice: Dice): TemplateKind =>
  dice.pick(["plain", "plain", "plain", "plain", "partial", "modules", "bare", "alone"]);

function makeTemplate(world: TestRepository, kind: TemplateKind): void {
  const folder = join(world.area, kind);
  mkdirSync(folder);
  const repository = join(folder, "repository");
  if (kind === "modules") {
    world.git(folder, "init", "-q", "seed");
    world.commit(join(folder, "seed"), "first of a submodule");
    world.git(folder, "clone", "-q", "--bare", "seed", "module.git");
    rmSync(join(folder, "seed"), { recursive: true });
  }
  world.git(folder, "init", "-q", "repository");
  for (const name of ["a.txt", "b.txt", "deep/c.txt"]) world.write(join(repository, name), "the beginning of");
  writeFileSync(join(repository, ".gitignore"), "ignored/\n.claude/\n*.log\n");
  world.git(repository, "add", ".");
  world.git(repository, "commit", "-q", "-m", "first");
  world.commit(repository, "second");
  if (kind === "modules") {
    world.git(repository, "submodule", "--quiet", "add", join(folder, "module.git"), "module");
    // Relative to the remote, so that a copy finds its own.
    world.git(repository, "config", "-f", ".gitmodules", "submodule.module.url", "../module.git");
    world.git(repository, "commit", "-q", "-am", "with a submodule");
  }
  world.commit(repository, "third");
  if (kind === "alone") return;
  world.git(repository, "checkout", "-q", "-b", "other");
  world.commit(repository, "commit of another branch of the remote");
  world.git(repository, "checkout", "-q", "main");
  world.git(folder, "clone", "-q", "--bare", "repository", "remote.git");
  rmSync(repository, { recursive: true });
  const partial = kind === "partial" ? ["--filter=blob:none"] : [];
  const bare = kind === "bare" ? ["--bare"] : [];
  world.git(folder, "clone", "-q", ...partial, ...bare, `file://${join(folder, "remote.git")}`, "repository");
  if (kind !== "bare") return;
  world.git(repository, "config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*");
  world.git(repository, "fetch", "-q");
}

function copy(from: string, to: string): void {
  const { status, stderr } = spawnSync("cp", ["-a", "--", from, to], { encoding: "utf8" });
  if (status !== 0) throw new Error(`cp ${from}: ${stderr}`);
}
