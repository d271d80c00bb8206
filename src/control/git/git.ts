// Runs git with arguments, in the given repository whatever the caller's environment says. `git` is for reading: it runs no
// program that the repository names, and uses no network. `gitAsPerson` is for acting: filters and hooks run as usual.
import { Failure } from "../../core/failure.ts";
import type { Uncertainty } from "../../core/keep-reason.ts";
import { errorCode, failureText } from "../../lib/errors.ts";
import type { Environment } from "../../observe/homes.ts";
import { runCommand } from "../../sys/spawn.ts";

/** Long enough for a large repository on a slow disk. A git that never answers, because its configuration is a pipe, is ended. */
export const lookingMs = 60_000;
/** For a checkout, which may download large files through a filter. */
export const actingMs = 10 * 60_000;
/** The time to exit before SIGKILL, for commands that hold lock files. */
export const graceMs = 1_000;

export interface GitAnswer {
  ok: boolean;
  out: string;
  /** Its error output, for people. */
  err: string;
  /** It was ended before it had answered. */
  isIncomplete?: true;
}

export interface GitRun {
  directory: string;
  args: readonly string[];
  env: Environment;
  maxMs: number;
  /** Between SIGTERM, at which git removes its lock files, and SIGKILL; 0 for a command that takes no lock. */
  graceMs?: number;
  /** Override the settings of every file. Unlike with `-c`, names may contain any character. */
  settings?: readonly (readonly [key: string, value: string])[];
  more?: Readonly<Record<string, string>>;
  input?: string;
}

/** For reading. `directory` is the root of a worktree if the command reads files. */
export async function git(
  directory: string,
  args: readonly string[],
  env: Environment,
  more: Readonly<Record<string, string>> = {},
): Promise<GitAnswer> {
  const { command, words } = commandIn(args);
  const isRemoval = command === "worktree" && words[0] === "remove" && !words.includes("--force");
  if (!isRemoval && isPlain(command, words))
    return await askGitQuietly({ directory, args, env, more, maxMs: lookingMs, graceMs });
  // Loaded only if needed: most launches ask only for a commit.
  const { gitInView, removeIfClean } = await import("./view-files.ts");
  return isRemoval ? await removeIfClean(directory, args, env) : await gitInView(directory, args, env, more);
}

/** The output without its last newline. Throws git's error message if it failed. */
export const gitText = async (directory: string, args: readonly string[], env: Environment): Promise<string> =>
  textOf(args, await git(directory, args, env));

/** Git or the file system cannot tell, so nothing may be removed. */
export class CannotTell extends Error {
  constructor(readonly why: Uncertainty) {
    super(Object.values(why).join(" "));
  }
}

export const unreadable = (path: string, error: unknown): CannotTell =>
  new CannotTell({ problem: "unreadable", path, detail: failureText(error) });

/**
 * Replacements and grafts change which commits seem to contain which. Garbage collection ignores them, so they must not count
 * here either.
 */
const asGarbageCollectionSees = {
  GIT_NO_REPLACE_OBJECTS: "1",
  GIT_GRAFT_FILE: "/dev/null/no-grafts",
  GIT_NO_LAZY_FETCH: "1",
};

/** For answers that decide whether work may be removed. One with a warning does not count: git may have skipped a folder. */
export async function gitFact(
  directory: string,
  args: readonly string[],
  env: Environment,
  more: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { ok, out, err } = await git(directory, args, env, { ...asGarbageCollectionSees, ...more });
  if (!ok || err !== "") throw new CannotTell({ problem: "git-failed", command: commandIn(args).command, detail: err });
  return out;
}

/** For acting: like git in the person's shell, but git does not ask for passwords. */
export const gitAsPerson = (directory: string, args: readonly string[], env: Environment): Promise<GitAnswer> =>
  askGit({ directory, args, env, maxMs: actingMs, graceMs }, { GIT_TERMINAL_PROMPT: "0" });

/** Commands on refs, objects and git's own files. Without hooks and network no setting makes them run a program. */
const plain = new Set([
  ...["rev-parse", "rev-list", "merge-base", "cat-file", "ls-tree", "commit-tree", "hash-object", "config", "worktree"],
  ...["for-each-ref", "show-ref", "symbolic-ref", "check-ref-format", "update-ref", "branch"],
]);

/** Commands that read files. They run in a view of the repository, and write only there. */
const comparing = new Set([
  ...["status", "diff", "diff-files", "diff-index", "ls-files", "add", "check-attr", "check-ignore"],
]);

function isPlain(command: string, words: readonly string[]): boolean {
  const has = (word: string): boolean => words.includes(word);
  if (command === "diff-index" && has("--cached") && has("--name-only")) return true;
  const isFiltered = command === "hash-object" ? !has("--no-filters") && !has("tree") : has("--filters");
  if (plain.has(command) && !isFiltered && !has("--textconv")) return true;
  if (comparing.has(command) || plain.has(command)) return false;
  throw new Error(`git ${command}: not on the lists of commands whose programs are known`);
}

const quiet = {
  GIT_TERMINAL_PROMPT: "0",
  GIT_OPTIONAL_LOCKS: "0",
  // No protocol is allowed, so nothing is fetched. Before 2.44 git has no other way to prevent the lazy fetch of partial clones.
  GIT_ALLOW_PROTOCOL: "",
  GIT_NO_LAZY_FETCH: "1",
};

const quietSettings = [
  ["core.fsmonitor", "false"],
  ["core.hooksPath", "/dev/null"],
  // The program of gpg.program would check signatures.
  ["log.showSignature", "false"],
  ["submodule.recurse", "false"],
  ["diff.autoRefreshIndex", "false"],
] as const;

/** Runs git without hooks, the file system monitor and the network. */
export const askGitQuietly = (order: GitRun): Promise<GitAnswer> =>
  askGit({ ...order, settings: [...quietSettings, ...(order.settings ?? [])] }, quiet);

async function askGit(order: GitRun, own: Readonly<Record<string, string>>): Promise<GitAnswer> {
  const { directory, args, env, maxMs, graceMs = 0, settings = [], more = {}, input } = order;
  const kept = Object.entries(env).filter(([key]) => !key.startsWith("GIT_"));
  const set = settings.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  try {
    const { status, out, err, gaveUp } = await runCommand(["git", "-C", directory, ...args], {
      cwd: "/",
      env: {
        ...Object.fromEntries([...kept, ...set]),
        ...{ LC_ALL: "C", GIT_CONFIG_COUNT: String(settings.length) },
        ...own,
        ...more,
      },
      ...{ maxMs, graceMs },
      ...(input === undefined ? {} : { input }),
    });
    return { ok: status === 0, out, err: err.trim(), ...(gaveUp === null ? {} : { isIncomplete: true }) };
  } catch (error) {
    if (errorCode(error) === "ENOENT") throw new Failure("git-not-installed", {}, { cause: error });
    throw error;
  }
}

export function textOf(args: readonly string[], { ok, out, err }: GitAnswer): string {
  if (!ok) throw new Failure("git-failed", { command: commandIn(args).command, detail: err || "failed" });
  return out.replace(/\n$/, "");
}

/** Skips git's own options before the command; `-c` takes a value. */
export function commandIn(args: readonly string[]): { options: readonly string[]; command: string; words: string[] } {
  let at = 0;
  while (args[at]?.startsWith("-")) at += args[at] === "-c" ? 2 : 1;
  return { options: args.slice(0, at), command: args[at] ?? "", words: args.slice(at + 1) };
}

/** The names in an answer to a command with `-z`. */
export const namesIn = (answer: string): string[] => answer.split("\0").filter((name) => name !== "");

/** Replaces bytes that are not UTF-8. A name with this character may mean another file, and git would not find a file by it. */
export const lostByte = "\ufffd";

/** Overrides settings that would hide new files. */
export const plainStatus = ["status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal"];
