// A repository that names programs wherever git lets it. Each program leaves a mark when it is run.
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { RepositoryTestHome } from "../cli/test-home-repository.ts";

export class HostileRepository extends RepositoryTestHome {
  readonly marksFolder = this.folder("marks");
  /** Two live sessions in worktrees of their own, so that looking has a reason to compare their files. */
  ids: string[] = [];

  async begun(): Promise<this> {
    await this.filled();
    for (const name of ["a", "b"]) {
      const { out, err } = await this.launchHere("work:600", "--worktree", "--name", name, "--group", "g");
      if (out === "") throw new Error(err);
      this.ids.push(out.trim());
    }
    return this;
  }

  marks = (): string[] => readdirSync(this.marksFolder).sort();

  /** A program that leaves a mark. What it is given on its input it gives back, as a filter does. */
  trap(name: string, then = "cat 2>/dev/null"): string {
    const path = join(this.folder("traps"), name);
    writeFileSync(path, `#!/bin/sh\n: >'${join(this.marksFolder, name)}'\n${then}\n`);
    chmodSync(path, 0o755);
    return path;
  }

  /** Every setting that names a program, in the file that all worktrees share. */
  async setTraps(): Promise<void> {
    await this.setProgramTraps();
    await this.setHookTraps();
    await this.addSubmodule();
    for (const name of ["a", "b"]) this.touch(this.at(name));
  }

  /** Changed, and new: git has to read it. */
  touch(root: string): void {
    writeFileSync(join(root, "file"), "two\n");
    writeFileSync(join(root, "sub", "file"), "one\n");
    writeFileSync(join(root, "new"), "new\n");
  }

  private async setProgramTraps(): Promise<void> {
    const settings: Record<string, string> = {
      ...{ "filter.evil.clean": "clean", "filter.evil.smudge": "smudge", "filter.evil.required": "true" },
      "filter.long.process": "process",
      // `=` in a name cannot be overridden by `git -c`.
      "filter.a=b.clean": "clean-equals",
      ...{ "diff.external": "diff-external", "diff.evil.command": "diff-command", "diff.evil.textconv": "textconv" },
      "merge.evil.driver": "merge-driver",
      ...{ "core.fsmonitor": "fsmonitor", "core.pager": "pager", "core.editor": "editor", "core.askPass": "askpass" },
      ...{ "core.sshCommand": "ssh", "core.gitProxy": "proxy", "core.alternateRefsCommand": "alternate-refs" },
      ...{ "gpg.program": "gpg", "credential.helper": "credential" },
    };
    for (const [key, name] of Object.entries(settings))
      await this.git("config", key, key.endsWith("required") ? name : this.trap(name));
    await this.git("config", "log.showSignature", "true");
    await this.git("config", "diff.submodule", "diff");
    await this.git("config", "status.submoduleSummary", "true");
    await this.git("config", "submodule.recurse", "true");
    await this.git("config", "trace2.eventTarget", join(this.marksFolder, "trace2"));
    // In files that the settings include, and in those of one worktree.
    const included = this.write("included", `[filter "included"]\n\tclean = ${this.trap("clean-included")}\n`);
    await this.git("config", "include.path", included);
    await this.git("config", "extensions.worktreeConfig", "true");
    await this.git("-C", this.at("a"), "config", "--worktree", "filter.own.clean", this.trap("clean-worktree"));
    const attributes = ["* diff=evil merge=evil", "file filter=evil", "sub/file filter=long", "new filter=a=b"];
    writeFileSync(join(this.repository, ".git", "info", "attributes"), `${attributes.join("\n")}\n`);
    for (const root of [this.repository, this.at("a"), this.at("b")])
      writeFileSync(join(root, ".gitattributes"), "* filter=included\nmore filter=own\n");
  }

  private async setHookTraps(): Promise<void> {
    const hooks = this.folder("hooks");
    const names = ["reference-transaction", "post-index-change", "post-checkout", "pre-auto-gc", "query-watchman"];
    for (const name of names) {
      const path = this.trap(`hook-${name}`);
      writeFileSync(join(hooks, name), `#!/bin/sh\nexec '${path}' </dev/null\n`);
      chmodSync(join(hooks, name), 0o755);
    }
    await this.git("config", "core.hooksPath", hooks);
  }

  /** Its own settings would count where git goes into it. */
  private async addSubmodule(): Promise<void> {
    for (const name of ["a", "b"]) {
      const root = join(this.at(name), "module");
      mkdirSync(root);
      const inside = ["-c", "core.hooksPath=/dev/null", "-C", root];
      await this.git("-C", root, "init", "-q");
      writeFileSync(join(root, "file"), "one\n");
      await this.git(...inside, "add", "file");
      await this.git(...inside, "commit", "-qm", "one");
      const outside = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-C", this.at(name)];
      await this.git(...outside, "update-index", "--add", "--cacheinfo", `160000,${await this.head(root)},module`);
      await this.git("-C", root, "config", "core.fsmonitor", this.trap("submodule-fsmonitor"));
      await this.git("-C", root, "config", "filter.evil.clean", this.trap("submodule-clean"));
      writeFileSync(join(root, ".gitattributes"), "* filter=evil\n");
      writeFileSync(join(root, "file"), "two\n");
    }
  }

  private head = (root: string): Promise<string> => this.git("-C", root, "rev-parse", "HEAD");

  /** A remote that git asks for objects that are missing here, by every way to name a program. */
  async makePartial(way: "ext" | "uploadpack" | "ssh"): Promise<void> {
    const trap = this.trap(`fetch-${way}`, "exit 1");
    const remote = this.folder("remote");
    await this.git("clone", "-q", "--bare", this.repository, remote);
    const urls = { ext: `ext::${trap}`, uploadpack: remote, ssh: "ssh://nobody@127.0.0.1:9/x" };
    const settings: Record<string, string> = {
      ...{ "remote.far.url": urls[way], "remote.far.promisor": "true", "remote.far.uploadpack": trap },
      ...{ "extensions.partialClone": "far", "core.repositoryFormatVersion": "1", "core.sshCommand": trap },
      ...{ "protocol.ext.allow": "always", "protocol.file.allow": "always", "protocol.ssh.allow": "always" },
    };
    for (const [key, value] of Object.entries(settings)) await this.git("config", key, value);
  }
}

export const hostileRepository = async (): Promise<HostileRepository> => await new HostileRepository().begun();
