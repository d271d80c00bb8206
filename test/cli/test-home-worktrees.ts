// A repository with worktrees that plain git has made where agentctl would, and a `git` that does something at a chosen moment.
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { RepositoryTestHome } from "./test-home-repository.ts";

export class WorktreeTestHome extends RepositoryTestHome {
  /** On a branch of agentctl's, at the commit of the main worktree. */
  async add(name: string): Promise<string> {
    await this.git("worktree", "add", "-q", "-b", `agentctl/${name.replace(/\W/g, "-")}`, this.at(name));
    return this.at(name);
  }

  /** Written and, with the other changes there, committed. */
  async commit(folder: string, name: string, text: string): Promise<string> {
    this.put(join(folder, name), text);
    await this.git("-C", folder, "add", "-A", ".");
    await this.git("-C", folder, "commit", "-qm", text);
    return await this.git("-C", folder, "rev-parse", "HEAD");
  }

  put(path: string, text: string): void {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }

  ignoring = (...patterns: string[]): Promise<string> =>
    this.commit(this.repository, ".gitignore", `${patterns.join("\n")}\n`);

  prune = () => this.here("worktree", "prune", "-y");
  remove = (name: string, ...args: string[]) => this.here("worktree", "remove", this.at(name), ...args);

  /** Which refs have a commit; none: it is lost with the next garbage collection. */
  async refsWith(commit: string): Promise<string[]> {
    const out = await this.git("for-each-ref", "--contains", commit, "--format=%(refname)");
    return out.split("\n").filter((ref) => ref !== "");
  }

  listed = async (): Promise<string[]> =>
    (await this.git("worktree", "list", "--porcelain", "-z"))
      .split("\0")
      .filter((line) => line.startsWith("worktree "))
      .map((line) => line.slice("worktree ".length));

  /** From now on agentctl runs this script in place of git: `$git` is the real one. */
  replaceGit(script: string): void {
    const real = Bun.which("git", { PATH: this.env["PATH"] ?? "" });
    const path = join(this.folder("bin"), "git");
    // The script acts for a person, without the environment that agentctl gives to git.
    const own = [
      "DIR",
      "WORK_TREE",
      "INDEX_FILE",
      "CONFIG_COUNT",
      "CONFIG_GLOBAL",
      "CONFIG_NOSYSTEM",
      "OPTIONAL_LOCKS",
    ];
    const asPerson = `env ${own.map((name) => `-u GIT_${name}`).join(" ")} ${real}`;
    writeFileSync(path, `#!/bin/sh\ngit='${asPerson}'\n${script}\nexec '${real}' "$@"\n`);
    chmodSync(path, 0o755);
    this.env["PATH"] = `${join(this.root, "bin")}:${this.env["PATH"]}`;
  }

  /** Runs `act` in the shell once, right before the `count`th call of git from the first one that moves or removes a worktree. */
  atCall(count: number, act: string): void {
    const counter = join(this.root, "calls");
    // Calls at once count one by one: each makes the next free folder.
    const script = [
      `case " $* " in *' worktree move '*|*' worktree remove '*) : >'${counter}.begun';; esac`,
      "number=1",
      `if [ -e '${counter}.begun' ]; then`,
      `until mkdir '${counter}'.$number 2>/dev/null; do number=$((number + 1)); done`,
      `if [ $number = ${count} ]; then : >'${counter}.reached'`,
      act,
      "fi; fi",
    ];
    this.replaceGit(script.join("\n"));
  }

  wasReached = (): boolean => existsSync(join(this.root, "calls.reached"));
  text = (name: string): string => {
    const path = join(this.root, name);
    return existsSync(path) ? readFileSync(path, "utf8").trim() : "";
  };
}

export const createWorktreeHome = async (): Promise<WorktreeTestHome> => await new WorktreeTestHome().filled();

/** Removes a worktree once for each call of git after the move of its folder, with `act` at that call; the number of calls. */
export async function atEveryCall(
  act: (here: WorktreeTestHome) => string,
  check: (here: WorktreeTestHome, call: number) => Promise<void>,
): Promise<number> {
  for (let call = 1; ; call += 1) {
    await using here = await createWorktreeHome();
    await here.ignoring("ignored");
    await here.add("a");
    here.put(join(here.at("a"), "ignored"), "secret");
    // Beside it is another one: the folder around them is never empty.
    mkdirSync(here.at("another"));
    here.atCall(call, act(here));
    await here.remove("a");
    if (!here.wasReached()) return call;
    await check(here, call);
  }
}
