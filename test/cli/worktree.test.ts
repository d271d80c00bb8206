// Sessions in their own git worktrees: created by plain git, listed, and removed only if no work would be lost.
import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { tryLock } from "../../src/sys/file-lock.ts";
import { waitFor } from "../conformance/wait.ts";
import { binary } from "./test-home.ts";
import { createRepositoryHome, type RepositoryTestHome } from "./test-home-repository.ts";

const world = createRepositoryHome;

const worktreesOf = async (here: RepositoryTestHome): Promise<Record<string, unknown>[]> =>
  JSON.parse((await here.here("worktree", "list", "--json")).out) as Record<string, unknown>[];

describe("launch --worktree", () => {
  test("makes a worktree with a new branch beside the repository, and the session works there", async () => {
    await using here = await world();
    writeFileSync(join(here.repository, "uncommitted"), "");
    const { code, out, err } = await here.launchHere("work:600", "--worktree", "--name", "fix it");
    expect([code, err]).toEqual([0, expect.stringContaining("1 uncommitted file of")]);
    const row = (await here.row(out.trim())) as unknown as Record<string, unknown>;
    expect(row).toMatchObject({ cwd: here.at("fix-it"), launch: { worktree: here.at("fix-it") } });
    expect(await worktreesOf(here)).toMatchObject([
      { path: here.repository, branch: "main", main: true, dirty: 1 },
      { path: here.at("fix-it"), branch: "agentctl/fix-it", merged: true, dirty: 0, sessions: [{ id: out.trim() }] },
    ]);
    // Another place: the repository itself is free.
    expect((await here.launchHere("say:x")).code).toBe(0);
  });

  test("takes --base and a branch name, and starts in the same subfolder", async () => {
    await using here = await world();
    writeFileSync(join(here.repository, "file"), "two\n");
    await here.git("commit", "-qam", "two");
    const answer = await here.begin(
      [binary, "launch", "demo", "work:600", "--permission", "edit", "--worktree=topic/a", "--base", "HEAD~1"],
      { cwd: join(here.repository, "sub") },
    ).answer;
    expect(answer).toMatchObject({ code: 0 });
    expect(await here.row(answer.out.trim())).toMatchObject({ cwd: join(here.at("topic-a"), "sub") });
    expect(readFileSync(join(here.at("topic-a"), "file"), "utf8")).toBe("one\n");
    expect(await here.git("-C", here.at("topic-a"), "branch", "--show-current")).toBe("topic/a");
  });

  test("runs --setup before the agent; if it fails, the launch shows its output and leaves nothing", async () => {
    await using here = await world();
    const { out } = await here.here(
      ...["launch", "demo", "tool:cp ready was-ready", "--permission", "bypass"],
      "--worktree",
      "--setup",
      "echo yes > ready",
      "--name",
      "a",
    );
    await here.agentctl("wait", out.trim());
    expect(existsSync(join(here.at("a"), "was-ready"))).toBe(true);
    const failed = await here.launchHere("x", "--worktree", "--setup", "echo no such thing >&2; exit 3", "--name", "b");
    expect(failed).toMatchObject({ code: 1, out: "" });
    expect(failed.err).toContain("--setup failed (exit status 3)");
    expect(failed.err).toContain("no such thing");
    expect(existsSync(here.at("b"))).toBe(false);
    expect(await here.git("branch", "--list", "agentctl/b")).toBe("");
  });

  test("SIGINT during the setup ends the launch and leaves nothing", async () => {
    await using here = await world();
    const began = join(here.root, "began");
    const running = here.begin(
      [
        binary,
        "launch",
        "demo",
        "x",
        "--permission",
        "edit",
        "--worktree",
        "--name",
        "c",
        "--setup",
        `sleep 600 & echo $! > '${began}'; wait`,
      ],
      { cwd: here.repository },
    );
    while (!existsSync(began) || readFileSync(began, "utf8") === "") await Bun.sleep(20);
    running.kill("SIGINT");
    expect((await running.answer).code).toBe(130);
    expect(existsSync(`/proc/${readFileSync(began, "utf8").trim()}`)).toBe(false);
    expect(existsSync(here.at("c"))).toBe(false);
  });

  test("a failed setup is removed with its files; SIGKILL is named in the error", async () => {
    await using here = await world();
    const failed = await here.launchHere("x", "--worktree", "--setup", "touch made; kill -9 $$", "--name", "b");
    expect(failed).toMatchObject({ code: 1, out: "" });
    expect(failed.err).toContain("--setup was killed (SIGKILL); nothing was started");
    expect(existsSync(here.at("b"))).toBe(false);
  });

  test("SIGINT during the setup also ends its processes in other kernel sessions", async () => {
    await using here = await world();
    const pid = join(here.root, "pid");
    const setup = `setsid sh -c 'echo $$ >"${pid}.tmp"; mv "${pid}.tmp" "${pid}"; exec sleep 600' & exec sleep 600`;
    const words = ["launch", "demo", "x", "--permission", "edit", "--worktree", "--name", "c", "--setup", setup];
    const running = here.begin([binary, ...words], { cwd: here.repository });
    await waitFor("the setup", () => existsSync(pid));
    running.kill("SIGINT");
    expect((await running.answer).code).toBe(130);
    expect(here.processes()).toEqual([]);
    expect(existsSync(here.at("c"))).toBe(false);
  });

  test("if the agent does not start, files of the setup are kept and named", async () => {
    await using here = await world();
    const words = ["--worktree", "--name", "d", "--setup", "touch made", "--", "--no-such-option"];
    const { code, err } = await here.launchHere("x", ...words);
    expect([code, err]).toEqual([7, expect.stringContaining(`${here.at("d")} was kept, on branch agentctl/d: `)]);
    expect(existsSync(join(here.at("d"), "made"))).toBe(true);
  });

  test("an agent that does not start leaves no worktree", async () => {
    await using here = await world();
    const { code } = await here.launchHere("x", "--worktree", "--name", "d", "--", "--no-such-option");
    expect(code).toBe(7);
    expect(existsSync(here.at("d"))).toBe(false);
    expect(await here.git("branch", "--list", "agentctl/*")).toBe("");
  });

  test("environment variables of git have no effect on it", async () => {
    await using here = await world();
    const answer = await here.begin(
      [binary, "launch", "demo", "say:x", "--permission", "edit", "--worktree", "--name", "e"],
      {
        cwd: here.repository,
        env: { GIT_DIR: "/nowhere", GIT_WORK_TREE: "/nowhere", GIT_INDEX_FILE: "/nowhere" },
      },
    ).answer;
    expect(answer).toMatchObject({ code: 0 });
    expect(existsSync(here.at("e"))).toBe(true);
  });

  describe("is refused", () => {
    const cases: [
      name: string,
      prepare: (here: RepositoryTestHome) => unknown,
      args: string[],
      code: number,
      says: string,
    ][] = [
      [
        "over a folder that is there",
        (here) => mkdirSync(here.at("x"), { recursive: true }),
        ["--worktree", "--name", "x"],
        5,
        "exists already",
      ],
      [
        "over a link that leads nowhere",
        (here) => {
          mkdirSync(here.at(""), { recursive: true });
          symlinkSync("/nowhere", here.at("x"));
        },
        ["--worktree", "--name", "x"],
        5,
        "exists already",
      ],
      ["on a branch that is checked out", () => null, ["--worktree=main"], 5, "main"],
      [
        "with a branch that looks like an option",
        () => null,
        ["--worktree=--upload-pack=x"],
        2,
        "not a valid branch name",
      ],
      ...["-x", "a..b", "$(touch x)", "a\nb", "HEAD", "../../a"].map((branch): (typeof cases)[number] => [
        `with a branch called ${JSON.stringify(branch)}`,
        () => null,
        [`--worktree=${branch}`],
        2,
        `not a valid branch name: ${branch.replace("\n", " ")}\n`,
      ]),
      [
        "with a base for a branch that is there",
        (here) => here.git("branch", "topic"),
        ["--worktree=topic", "--base", "HEAD"],
        5,
        "exists already; --base would not change it",
      ],
      [
        "with a file in place of the folder",
        (here) => writeFileSync(join(here.root, "my repo.worktrees"), ""),
        ["--worktree"],
        1,
        "cannot make a worktree in",
      ],
      [
        "in a read-only folder",
        (here) => {
          here.folder(".config", "agentctl");
          here.write(".config/agentctl/config.json", JSON.stringify({ worktrees: "/proc" }));
        },
        ["--worktree", "--name", "x"],
        1,
        "cannot make a worktree in /proc/my repo",
      ],
      ["with a base that is no commit", () => null, ["--worktree", "--base", "no-such"], 2, "no such commit"],
      ["with a base that looks like an option", () => null, ["--worktree", "--base", "--all"], 2, "no such commit"],
      [
        "without commits",
        async (here) => {
          rmSync(join(here.repository, ".git"), { recursive: true });
          await here.git("init", "-q");
        },
        ["--worktree"],
        5,
        "no commits yet",
      ],
      [
        "outside of a repository",
        (here) => rmSync(join(here.repository, ".git"), { recursive: true }),
        ["--worktree"],
        2,
        "not in a git repository",
      ],
      ["with --setup alone", () => null, ["--setup", "true"], 2, "goes with --worktree"],
    ];
    test.each(cases)("%s", async (_name, prepare, args, code, says) => {
      await using here = await world();
      await prepare(here);
      const answer = await here.launchHere("x", ...args);
      expect(answer).toMatchObject({ code, out: "" });
      expect(answer.err).toContain(says);
      expect(here.launchedAgents()).toEqual([]);
      expect(existsSync(join(here.repository, "x"))).toBe(false);
    });

    test("by git itself, and then the new branch is removed", async () => {
      await using here = await world();
      here.folder("bin");
      const git = Bun.which("git", { PATH: here.env["PATH"] ?? "" });
      const script = `#!/bin/sh\ncase " $* " in *" worktree add "*) ${git} -C "$2" branch agentctl/x; echo broken >&2; exit 128;; esac\nexec ${git} "$@"\n`;
      here.write("bin/git", script, 0o755);
      here.env["PATH"] = `${join(here.root, "bin")}:${here.env["PATH"]}`;
      const { code, err } = await here.launchHere("x", "--worktree", "--name", "x");
      expect([code, err]).toEqual([1, expect.stringContaining("git made no worktree")]);
      expect(await here.git("branch", "--list", "agentctl/*")).toBe("");
    });

    test("not because of an existing branch name: the next number is used", async () => {
      await using here = await world();
      for (const name of ["x", "x-2"]) await here.git("branch", `agentctl/${name}`);
      const { code } = await here.launchHere("say:x", "--worktree", "--name", "x", "--base", "HEAD");
      expect(code).toBe(0);
      expect(await here.git("-C", here.at("x"), "branch", "--show-current")).toBe("agentctl/x-3");
    });

    test("for an existing branch only if another worktree uses it", async () => {
      await using here = await world();
      await here.git("branch", "topic");
      expect((await here.launchHere("say:x", "--worktree=topic")).code).toBe(0);
      const again = await here.launchHere("say:x", "--worktree=topic", "--name", "y");
      expect([again.code, again.err]).toEqual([5, expect.stringContaining("already checked out")]);
      expect(await here.git("branch", "--list", "topic")).toContain("topic");
    });
  });

  test("works with a detached HEAD, odd characters in the path, a bare repository and submodules", async () => {
    await using here = await world();
    await here.git("checkout", "-q", "--detach");
    expect((await here.launchHere("say:x", "--worktree", "--name", "detached")).code).toBe(0);
    const odd = here.folder("ö d\nd");
    await here.git("clone", "-q", ".", join(odd, "re po"));
    const inOdd = await here.begin(
      [binary, "launch", "demo", "say:x", "--permission", "edit", "--worktree", "--name", "w"],
      { cwd: join(odd, "re po") },
    ).answer;
    expect(inOdd).toMatchObject({ code: 0 });
    expect(existsSync(join(odd, "re po.worktrees", "w", "file"))).toBe(true);
    await here.git("clone", "-q", "--bare", ".", join(here.root, "bare.git"));
    const inBare = await here.begin(
      [binary, "launch", "demo", "say:x", "--permission", "edit", "--worktree", "--name", "w"],
      { cwd: join(here.root, "bare.git") },
    ).answer;
    expect(inBare).toMatchObject({ code: 0 });
    expect(existsSync(join(here.root, "bare.worktrees", "w", "file"))).toBe(true);
    await here.git("checkout", "-q", "main");
    await here.git(
      "-c",
      "protocol.file.allow=always",
      "submodule",
      "--quiet",
      "add",
      join(here.root, "bare.git"),
      "module",
    );
    await here.git("commit", "-qm", "module");
    const withModule = await here.launchHere("say:x", "--worktree", "--name", "modules");
    expect(withModule.err).toContain("its submodules are empty");
  });

  test("uses the folder from the settings", async () => {
    await using here = await world();
    mkdirSync(join(here.root, ".config", "agentctl"), { recursive: true });
    writeFileSync(join(here.root, ".config", "agentctl", "config.json"), JSON.stringify({ worktrees: "~/trees" }));
    expect((await here.launchHere("say:x", "--worktree", "--name", "w")).code).toBe(0);
    expect(existsSync(join(here.root, "trees", "my repo", "w", "file"))).toBe(true);
  });
});

describe("worktree remove", () => {
  const made = async (here: RepositoryTestHome, name: string, prompt = "say:x"): Promise<string> => {
    const { out, err } = await here.launchHere(prompt, "--worktree", "--name", name);
    if (out === "") throw new Error(err);
    return out.trim();
  };
  const ended = async (here: RepositoryTestHome, name: string): Promise<void> => {
    await here.agentctl("wait", await made(here, name), "--until", "stopped");
  };

  test("removes a clean and merged worktree with its branch", async () => {
    await using here = await world();
    await ended(here, "a");
    expect(await here.here("worktree", "remove", "a")).toMatchObject({
      code: 0,
      out: expect.stringContaining("and its branch agentctl/a"),
    });
    expect(existsSync(here.at("a"))).toBe(false);
    expect(await here.git("branch", "--list", "agentctl/*")).toBe("");
  });

  test("refuses uncommitted files and names them; --discard removes them", async () => {
    await using here = await world();
    await ended(here, "a");
    writeFileSync(join(here.at("a"), "new file"), "");
    const refused = await here.here("worktree", "remove", "a");
    expect(refused).toMatchObject({ code: 5, out: "" });
    expect(refused.err).toContain("1 uncommitted file: new file");
    expect(existsSync(here.at("a"))).toBe(true);
    expect((await here.here("worktree", "remove", "a", "--discard")).code).toBe(0);
    expect(existsSync(here.at("a"))).toBe(false);
  });

  test("refuses commits that are nowhere else; pushed or merged ones are elsewhere", async () => {
    await using here = await world();
    await ended(here, "a");
    writeFileSync(join(here.at("a"), "file"), "two\n");
    await here.git("-C", here.at("a"), "commit", "-qam", "two");
    expect((await here.here("worktree", "remove", "a")).err).toContain("1 commit neither merged nor pushed");
    expect(await worktreesOf(here)).toMatchObject([{}, { ahead: 1, behind: 0, merged: false, pushed: false }]);
    await here.git("clone", "-q", "--bare", ".", join(here.root, "remote.git"));
    await here.git("remote", "add", "origin", join(here.root, "remote.git"));
    await here.git("push", "-q", "origin", "agentctl/a");
    expect(await worktreesOf(here)).toMatchObject([{}, { pushed: true, keep: [] }]);
    expect(await here.here("worktree", "remove", "a")).toMatchObject({ code: 0 });
    // Not merged: its branch stays.
    expect(await here.git("branch", "--list", "agentctl/a")).toContain("agentctl/a");
  });

  test("never removes the worktree of a live session or the main one, even with --discard", async () => {
    await using here = await world();
    const id = await made(here, "a", "work:600");
    for (const discard of [[], ["--discard"]]) {
      const refused = await here.here("worktree", "remove", "a", ...discard);
      expect(refused).toMatchObject({ code: 5, out: "" });
      expect(refused.err).toContain(`demo ${id} is running in it`);
    }
    await here.agentctl("stop", id);
    expect((await here.here("worktree", "remove", here.at("a"))).code).toBe(0);
    expect((await here.here("worktree", "remove", here.repository, "--discard")).err).toContain(
      "it is the main worktree",
    );
    expect(await here.here("worktree", "remove", "nobody")).toMatchObject({ code: 3 });
  });

  test("prune lists, asks, and removes only worktrees without work", async () => {
    await using here = await world();
    for (const name of ["merged", "dirty"]) await ended(here, name);
    await made(here, "live", "work:600");
    writeFileSync(join(here.at("dirty"), "new"), "");
    const asked = await here.here("worktree", "prune");
    expect(asked).toMatchObject({ code: 5, out: "" });
    expect(asked.err).toContain(`${here.at("merged")} can be removed`);
    expect(asked.err).toContain(`${here.at("dirty")} is kept: 1 uncommitted file: new`);
    const dry = await here.here("worktree", "prune", "--dry-run");
    expect(dry).toMatchObject({ code: 0, err: "" });
    expect(dry.out).toContain(`${here.at("merged")} can be removed`);
    expect(dry.out).toContain(`${here.at("dirty")} is kept: 1 uncommitted file: new`);
    expect(existsSync(here.at("merged"))).toBe(true);
    expect((await here.here("worktree", "prune", "-y")).code).toBe(0);
    expect(["merged", "dirty", "live"].map((name) => existsSync(here.at(name)))).toEqual([false, true, true]);
  });

  test("--json of remove and prune lists removed and kept worktrees with reasons", async () => {
    await using here = await world();
    for (const name of ["merged", "dirty", "first"]) await ended(here, name);
    writeFileSync(join(here.at("dirty"), "new"), "");
    const json = async (...words: string[]) => {
      const { code, out } = await here.here("worktree", ...words, "--json");
      const fates = JSON.parse(out) as Record<string, unknown>[];
      return [
        code,
        fates.map(({ bytes: _, ...fate }) => fate).sort((a, b) => (String(a["path"]) < String(b["path"]) ? -1 : 1)),
      ];
    };
    const fate = (name: string, result: string, keep: string[] = []) => ({
      ...{ path: here.at(name), branch: `agentctl/${name}`, result, branchRemoved: result === "removed" },
      ...{ ignored: [], keep, keptAs: null, unreferenced: [] },
    });
    const dirty = fate("dirty", "stays", ["1 uncommitted file: new"]);
    expect(await json("remove", "first")).toEqual([0, [fate("first", "removed")]]);
    expect(await json("prune", "--dry-run")).toEqual([0, [dirty, fate("merged", "can-go")]]);
    expect(await json("prune", "-y")).toEqual([0, [dirty, fate("merged", "removed")]]);
    expect(await json("prune", "-y")).toEqual([0, [dirty]]);
  });

  test("refuses while the setup or another process runs in it; --discard removes it", async () => {
    await using here = await world();
    const began = join(here.root, "began");
    const setup = `echo >'${began}'; until [ -e '${began}.go' ]; do sleep 0.02; done`;
    const words = ["launch", "demo", "work:600", "--permission", "edit", "--worktree", "--name", "a", "--setup", setup];
    const launching = here.begin([binary, ...words], { cwd: here.repository });
    await waitFor("the setup", () => existsSync(began));
    expect(await here.here("worktree", "remove", "a")).toMatchObject({
      code: 5,
      err: expect.stringMatching(/sh \(pid \d+\) runs in it/),
    });
    const pruned = await here.here("worktree", "prune", "-y");
    expect(pruned).toMatchObject({ code: 0, out: "no worktree can be removed\n" });
    expect(pruned.err).toMatch(/a is kept: sh \(pid \d+\) runs in it/);
    writeFileSync(`${began}.go`, "");
    const { code, out } = await launching.answer;
    expect(code).toBe(0);
    await here.agentctl("stop", out.trim());
    // No process of the launch is left there.
    const from = (args: string[], script = 'exec "$0" "$@"') =>
      here.begin(["sh", "-c", script, binary, "worktree", "remove", ...args], { cwd: here.at("a") }).answer;
    expect((await from([here.at("a")])).err).toContain("this command runs in it");
    expect((await from([here.at("a")], '"$0" "$@"; exit $?')).err).toMatch(
      /sh \(pid \d+\), which called this command, runs in it/,
    );
    expect((await from([here.at("a")], '(cd ..; cd "../my repo"; "$0" "$@"); exit $?')).code).toBe(5);
    expect((await from([here.at("a"), "--discard"])).code).toBe(0);
    expect(existsSync(here.at("a"))).toBe(false);
  });

  test("refuses while its launch waits for other sessions to start", async () => {
    await using here = await world();
    const runtime = here.folder("runtime");
    chmodSync(runtime, 0o700);
    here.env["XDG_RUNTIME_DIR"] = runtime;
    expect((await here.launchHere("say:x")).code).toBe(0);
    const lock = openSync(join(runtime, "agentctl", "launch.lock"), "r+");
    expect(tryLock(lock)).toBe(true);
    const launching = here.begin([binary, "launch", "demo", "x", "--permission", "edit", "--worktree", "--name", "a"], {
      cwd: here.repository,
    });
    const stays = /a is kept: sh \(pid \d+\) runs in it/;
    while (!stays.test((await here.here("worktree", "prune", "--dry-run")).out)) await Bun.sleep(5);
    // It is past everything but the lock when it sleeps for that.
    for (let round = 0; round < 5; round += 1)
      expect((await here.here("worktree", "prune", "--dry-run")).out).toMatch(stays);
    closeSync(lock);
    expect((await launching.answer).code).toBe(0);
  });

  test("keeps a worktree with checked-out submodules, even with --discard", async () => {
    await using here = await world();
    await here.git("clone", "-q", "--bare", ".", join(here.root, "bare.git"));
    const allow = ["-c", "protocol.file.allow=always"];
    await here.git(...allow, "submodule", "--quiet", "add", join(here.root, "bare.git"), "module");
    await here.git("commit", "-qm", "module");
    await ended(here, "empty");
    await ended(here, "filled");
    await here.git("-C", here.at("filled"), ...allow, "submodule", "--quiet", "update", "--init");
    const { code, out, err } = await here.here("worktree", "prune", "-y");
    expect([code, out]).toEqual([0, expect.stringContaining("empty and its branch")]);
    expect(err).toContain("filled is kept: its submodules are checked out");
    const refused = await here.here("worktree", "remove", "filled", "--discard");
    expect([refused.code, refused.err]).toEqual([5, expect.stringContaining("git worktree remove --force PATH")]);
  });

  test("keeps a worktree whose state git cannot read; --discard removes it", async () => {
    await using here = await world();
    for (const name of ["index", "link"]) await ended(here, name);
    writeFileSync(await here.git("-C", here.at("index"), "rev-parse", "--git-path", "index"), "garbage");
    // Around it is another repository: that is not meant.
    await here.git("init", "-q", here.at(""));
    rmSync(join(here.at("link"), ".git"));
    for (const name of ["index", "link"]) {
      const refused = await here.here("worktree", "remove", name);
      expect(refused).toMatchObject({ code: 5, out: "" });
      expect(refused.err).toMatch(/cannot tell what is in it: (error|fatal): /);
    }
    expect((await here.here("worktree", "prune", "-y")).out).toBe("no worktree can be removed\n");
    expect(await worktreesOf(here)).toMatchObject([{ dirty: 0 }, { dirty: null }, { dirty: null, gone: false }]);
    expect((await here.here("worktree", "list")).out).toContain("files unknown");
    expect((await here.here("worktree", "remove", "index", "--discard")).code).toBe(0);
    expect(existsSync(here.at("index"))).toBe(false);
    expect(existsSync(join(here.at("link"), "file"))).toBe(true);
  });

  test("of a missing folder keeps commits that only its HEAD had", async () => {
    await using here = await world();
    for (const name of ["branch", "detached"]) await ended(here, name);
    await here.git("-C", here.at("detached"), "checkout", "-q", "--detach");
    for (const name of ["branch", "detached"]) {
      writeFileSync(join(here.at(name), "file"), "two\n");
      await here.git("-C", here.at(name), "commit", "-qam", name);
      rmSync(here.at(name), { recursive: true });
    }
    // In an empty folder they might as well be on a disk that is not mounted.
    mkdirSync(here.at("another"));
    const { code, out, err } = await here.here("worktree", "prune", "-y");
    expect([code, out]).toEqual([0, expect.stringMatching(/^removed .*branch\n$/)]);
    expect(err).toContain("detached is kept: 1 commit neither merged nor pushed");
    expect(await here.git("branch", "--list", "agentctl/branch")).toContain("agentctl/branch");
    expect((await here.here("worktree", "remove", "detached", "--discard")).code).toBe(0);
  });

  test("sees new files that a person's settings hide from git status", async () => {
    await using here = await world();
    await ended(here, "a");
    writeFileSync(join(here.at("a"), "new"), "");
    await here.git("config", "status.showUntrackedFiles", "no");
    expect((await here.here("worktree", "remove", "a")).err).toContain("1 uncommitted file: new");
  });

  test("removes ignored files, too, and names them", async () => {
    await using here = await world();
    writeFileSync(join(here.repository, ".gitignore"), ".env*\nbuilt/\nmodules/\n");
    await here.git("add", ".gitignore");
    await here.git("commit", "-qm", "ignore");
    for (const name of ["a", "b"]) {
      await ended(here, name);
      for (const folder of ["built", "modules"]) {
        mkdirSync(join(here.at(name), folder));
        for (const file of ["x", "y"]) writeFileSync(join(here.at(name), folder, file), "");
      }
      for (const file of [".env", ".env.local"]) writeFileSync(join(here.at(name), file), "");
    }
    const some = "with ignored files: .env, .env.local, built/, and 1 more\n";
    expect(await here.here("worktree", "remove", "a")).toMatchObject({ code: 0, out: expect.stringContaining(some) });
    expect((await here.here("worktree", "prune")).err).toContain(some);
    expect((await here.here("worktree", "prune", "-y")).out).toContain(some);
  });
});
