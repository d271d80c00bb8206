// Sessions in git worktrees of their own: made by plain git, listed, and removed only when nothing would be lost.
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type RepositoryWorld, repositoryWorld } from "./repository.ts";
import { binary } from "./world.ts";

const world = repositoryWorld;

const worktreesOf = async (here: RepositoryWorld): Promise<Record<string, unknown>[]> =>
  JSON.parse((await here.here("worktree", "list", "--json")).out) as Record<string, unknown>[];

describe("launch --worktree", () => {
  test("makes one on a new branch beside the repository; the session works there, and its note says so", async () => {
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

  test("--base and a branch of one's own; in the same directory below", async () => {
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

  test("--setup makes it ready before the agent starts; its failure stops the launch, shows its output, and leaves nothing", async () => {
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

  test("SIGINT during the setup ends it, and leaves nothing", async () => {
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

  test("an agent that does not begin leaves no worktree", async () => {
    await using here = await world();
    const { code } = await here.launchHere("x", "--worktree", "--name", "d", "--", "--no-such-option");
    expect(code).toBe(7);
    expect(existsSync(here.at("d"))).toBe(false);
    expect(await here.git("branch", "--list", "agentctl/*")).toBe("");
  });

  test("environment variables of git do not lead it elsewhere", async () => {
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
      prepare: (here: RepositoryWorld) => unknown,
      args: string[],
      code: number,
      says: string,
    ][] = [
      [
        "over a folder that is there",
        (here) => mkdirSync(here.at("x"), { recursive: true }),
        ["--worktree", "--name", "x"],
        5,
        "is there already",
      ],
      [
        "over a link that leads nowhere",
        (here) => {
          mkdirSync(here.at(""), { recursive: true });
          symlinkSync("/nowhere", here.at("x"));
        },
        ["--worktree", "--name", "x"],
        5,
        "is there already",
      ],
      ["on a branch that is checked out", () => null, ["--worktree=main"], 5, "main"],
      [
        "with a branch that looks like an option",
        () => null,
        ["--worktree=--upload-pack=x"],
        2,
        "not the name of a branch",
      ],
      ["with a branch that git does not take", () => null, ["--worktree=a..b"], 2, "not the name of a branch"],
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
        "in no git repository",
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
    });
  });

  test("a detached HEAD, a path with odd characters, a bare repository and submodules are no obstacle", async () => {
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

  test("where the settings want it", async () => {
    await using here = await world();
    mkdirSync(join(here.root, ".config", "agentctl"), { recursive: true });
    writeFileSync(join(here.root, ".config", "agentctl", "config.json"), JSON.stringify({ worktrees: "~/trees" }));
    expect((await here.launchHere("say:x", "--worktree", "--name", "w")).code).toBe(0);
    expect(existsSync(join(here.root, "trees", "my repo", "w", "file"))).toBe(true);
  });
});

describe("worktree remove", () => {
  const made = async (here: RepositoryWorld, name: string, prompt = "say:x"): Promise<string> => {
    const { out, err } = await here.launchHere(prompt, "--worktree", "--name", name);
    if (out === "") throw new Error(err);
    return out.trim();
  };
  const ended = async (here: RepositoryWorld, name: string): Promise<void> => {
    await here.agentctl("wait", await made(here, name), "--until", "stopped");
  };

  test("takes a clean and merged one away, with its branch", async () => {
    await using here = await world();
    await ended(here, "a");
    expect(await here.here("worktree", "remove", "a")).toMatchObject({
      code: 0,
      out: expect.stringContaining("and its branch agentctl/a"),
    });
    expect(existsSync(here.at("a"))).toBe(false);
    expect(await here.git("branch", "--list", "agentctl/*")).toBe("");
  });

  test("refuses with uncommitted files, says which; --discard means it", async () => {
    await using here = await world();
    await ended(here, "a");
    writeFileSync(join(here.at("a"), "new file"), "");
    const refused = await here.here("worktree", "remove", "a");
    expect(refused).toMatchObject({ code: 5, out: "" });
    expect(refused.err).toContain("1 uncommitted: new file");
    expect(existsSync(here.at("a"))).toBe(true);
    expect((await here.here("worktree", "remove", "a", "--discard")).code).toBe(0);
    expect(existsSync(here.at("a"))).toBe(false);
  });

  test("refuses with commits that are nowhere else; pushed or merged they are", async () => {
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

  test("never under a live session, not even with --discard; never the main one", async () => {
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

  test("prune lists, asks, and takes only what holds nothing", async () => {
    await using here = await world();
    for (const name of ["merged", "dirty"]) await ended(here, name);
    await made(here, "live", "work:600");
    writeFileSync(join(here.at("dirty"), "new"), "");
    const asked = await here.here("worktree", "prune");
    expect(asked).toMatchObject({ code: 5, out: "" });
    expect(asked.err).toContain(`${here.at("merged")} can go`);
    expect(asked.err).toContain(`${here.at("dirty")} stays: 1 uncommitted: new`);
    expect((await here.here("worktree", "prune", "--dry-run")).code).toBe(0);
    expect(existsSync(here.at("merged"))).toBe(true);
    expect((await here.here("worktree", "prune", "-y")).code).toBe(0);
    expect(["merged", "dirty", "live"].map((name) => existsSync(here.at(name)))).toEqual([false, true, true]);
  });
});
