// A throw-away home with a git repository in it.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { binary } from "./test-home.ts";
import { LaunchTestHome } from "./test-home-launch.ts";

export class RepositoryTestHome extends LaunchTestHome {
  readonly repository = this.folder("my repo");

  /** Beside HOME and PATH; dates of commits, for example. */
  gitEnv: Record<string, string> = {};

  /** In the repository, or with -C elsewhere. */
  async git(...args: string[]): Promise<string> {
    const child = Bun.spawn(["git", "-C", this.repository, "-c", "user.name=A", "-c", "user.email=a@b", ...args], {
      env: { PATH: this.env["PATH"] ?? "", HOME: this.root, ...this.gitEnv },
      stdout: "pipe",
      stderr: "pipe",
    });
    const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    if (code !== 0) throw new Error(`git ${args.join(" ")}: ${err}`);
    return out.trim();
  }

  /** With a first commit. */
  async filled(): Promise<this> {
    this.folder("my repo", "sub");
    await this.git("init", "-q", "-b", "main");
    for (const name of ["file", "sub/file"]) writeFileSync(join(this.repository, name), "one\n");
    await this.git("add", ".");
    await this.git("commit", "-qm", "one");
    return this;
  }

  here = (...args: string[]) => this.begin([binary, ...args], { cwd: this.repository }).answer;
  launchHere = (prompt: string, ...args: string[]) =>
    this.here("launch", "demo", prompt, "--permission", "bypass", ...args);

  at = (name: string): string => join(this.root, "my repo.worktrees", name);
}

export const createRepositoryHome = async (): Promise<RepositoryTestHome> => await new RepositoryTestHome().filled();
