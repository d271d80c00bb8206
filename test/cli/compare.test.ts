// agentctl diff and compare: the changes of one session, and of several side by side.
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { waitFor } from "../conformance/wait.ts";
import { binary } from "./test-home.ts";
import { createRepositoryHome, type RepositoryTestHome } from "./test-home-repository.ts";

const over = async (here: RepositoryTestHome, prompt: string, ...args: string[]): Promise<string> => {
  const { out, err } = await here.launchHere(prompt, ...args);
  if (out === "") throw new Error(err);
  await here.agentctl("wait", out.trim(), "--until", "stopped");
  return out.trim();
};

const commits = "git -c user.name=A -c user.email=a@b commit -qam two";

describe("diff", () => {
  test("shows commits, uncommitted changes and untracked files, and does not touch the index", async () => {
    await using here = await createRepositoryHome();
    const id = await over(
      here,
      `tool:echo two > file; ${commits}; echo three > sub/file; echo new > 'n w'; echo x > ignored; echo ignored > .gitignore`,
    );
    const index = readFileSync(join(here.repository, ".git", "index"));
    const { code, out, err } = await here.here("diff", id);
    expect([code, err]).toEqual([0, ""]);
    for (const part of ["-one\n+two", "+three", "+new", "+++ b/n w"]) expect(out).toContain(part);
    expect(out).not.toContain("b/ignored");
    expect(readFileSync(join(here.repository, ".git", "index"))).toEqual(index);
    expect((await here.here("diff", id, "--stat")).out).toContain("4 files changed");
  });

  test("leaves out changes from before the session and names them, also for a session in a subfolder", async () => {
    await using here = await createRepositoryHome();
    const write = (name: string, text: string) => writeFileSync(join(here.repository, name), text);
    write("file", "mine\n");
    write("notes *", "mine, too\n");
    write("both", "mine\n");
    const id = await over(here, "tool:echo theirs >> both; echo theirs > new");
    const { out, err } = await here.here("diff", id, "--stat");
    expect(out).toMatch(/ both .* new .* 2 files changed/s);
    expect(err).toBe("agentctl: left out, last changed before it started: file, notes *\n");
    const below = await here.launched("tool:echo x > file", "--cwd", join(here.repository, "sub"), "--share");
    await here.agentctl("wait", below);
    expect((await here.here("diff", below)).out).toContain("b/sub/file");
  });

  test("removes the temporary index of a killed diff", async () => {
    await using here = await createRepositoryHome();
    const id = await over(here, "say:x");
    const temporary = here.folder("temporary");
    const left = (): string[] =>
      readdirSync(temporary, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith("/index"));
    const real = Bun.which("git", { PATH: here.env["PATH"] ?? "" });
    here.folder("bin");
    here.write(
      "bin/git",
      `#!/bin/sh\ncase " $* " in *" --no-ext-diff "*) exec sleep 600;; esac\nexec ${real} "$@"\n`,
      0o755,
    );
    const env = { TMPDIR: temporary };
    const slow = { ...env, PATH: `${join(here.root, "bin")}:${here.env["PATH"]}` };
    const job = here.begin([binary, "diff", id], { cwd: here.repository, env: slow });
    await waitFor("its index", () => here.processes().some(({ argv }) => argv[0] === "sleep"));
    job.kill("SIGKILL");
    for (const { pid, argv } of here.processes()) if (argv[0] === "sleep") process.kill(pid, "SIGKILL");
    await job.answer;
    expect(left()).toHaveLength(1);
    expect((await here.begin([binary, "diff", id], { cwd: here.repository, env }).answer).code).toBe(0);
    expect(left()).toEqual([]);
  });

  test("of a session started by hand begins at the last commit before it, and says so", async () => {
    await using here = await createRepositoryHome();
    here.gitEnv["GIT_COMMITTER_DATE"] = "2001-01-01T00:00:00Z";
    await here.git("commit", "-q", "--amend", "--no-edit");
    const agent = here.start(["prompt:x", "say:y", "end"], { cwd: here.repository });
    await here.agentctl("wait", agent.id, "--until", "stopped");
    writeFileSync(join(here.repository, "file"), "two\n");
    const { out, err } = await here.here("diff", agent.id);
    expect(out).toContain("+two");
    expect(err).toContain("the last commit before it started");
  });

  test(`names another session in the same directory, says "nothing changed", and is refused without a repository`, async () => {
    await using here = await createRepositoryHome();
    const id = await over(here, "say:x");
    const quiet = await here.here("diff", id);
    expect(quiet).toMatchObject({ code: 0, out: "", err: "agentctl: nothing changed\n" });
    const other = await over(here, "tool:echo two > file");
    expect((await here.here("diff", id)).err).toContain(
      `demo ${other.slice(0, 8)} worked in the same directory; its changes are included`,
    );
    const outside = await here.launched("say:x");
    expect(await here.here("diff", outside)).toMatchObject({ code: 5, out: "" });
  });
});

describe("compare", () => {
  test("shows how each session ended, its changes, and whether its check passes", async () => {
    await using here = await createRepositoryHome();
    await over(here, `tool:echo two > file; ${commits}`, "--group", "g", "--worktree", "--name", "good");
    await over(here, "tool:echo 'a<b>' > new; fail:no", "--group", "g", "--worktree", "--name", "bad");
    const { code, out, err } = await here.here(
      "compare",
      "g",
      "--check",
      "grep -q two file || { echo it is not there; exit 3; }",
      "--json",
    );
    expect([code, err]).toEqual([0, expect.stringContaining("failed (3)")]);
    expect(JSON.parse(out)).toMatchObject([
      {
        name: "good",
        outcome: "completed",
        changes: { commits: 1, files: 1, added: 1, removed: 1 },
        check: { status: 0 },
      },
      {
        name: "bad",
        changes: { commits: 0, files: 1, added: 1, removed: 0 },
        check: { status: 3, output: expect.stringContaining("it is not there") },
      },
    ]);
    const text = (await here.here("compare", "g")).out;
    for (const part of ["COMMITS", "+1 -1", "completed"]) expect(text).toContain(part);
    for (const name of ["good", "bad"]) expect(text).toMatch(new RegExp(`^\\S+ ${name} +demo `, "m"));
  });

  test("shows a check as killed after a signal, and as not run if it cannot be started", async () => {
    await using here = await createRepositoryHome();
    await over(here, "say:x", "--group", "g", "--worktree", "--name", "a");
    const killed = await here.here("compare", "g", "--check", "kill -9 $$");
    expect([killed.code, killed.out, killed.err]).toEqual([
      0,
      expect.stringContaining("killed (SIGKILL)"),
      expect.stringContaining(": killed (SIGKILL)\n"),
    ]);
    const { out } = await here.here("compare", "g", "--check", "kill -9 $$", "--json");
    expect(JSON.parse(out)).toMatchObject([{ check: { status: null, signal: "SIGKILL" } }]);
    rmSync(here.at("a"), { recursive: true });
    expect((await here.here("compare", "g", "--check", "true")).out).toContain("could not run");
  });

  test.each(["SIGINT", "SIGTERM"] as const)("%s ends the checks with all their children", async (signal) => {
    await using here = await createRepositoryHome();
    for (const name of ["a", "b", "c"]) await over(here, "say:x", "--group", "g", "--worktree", "--name", name);
    // One that exits at once, one that must be killed, and one in its own kernel session.
    const check = [
      "setsid sh -c 'trap \"\" TERM; echo >stubborn; while :; do sleep 0.05; done' &",
      "until [ -e stubborn ]; do sleep 0.02; done; echo >begun; exec sleep 600",
    ].join("\n");
    const job = here.begin([binary, "compare", "g", "--check", check], { cwd: here.repository });
    await waitFor(
      "two checks",
      () => ["a", "b", "c"].filter((name) => existsSync(join(here.at(name), "begun"))).length === 2,
    );
    job.kill(signal);
    expect(await job.answer).toMatchObject({ code: 130, out: "" });
    expect(here.processes()).toEqual([]);
    expect(["a", "b", "c"].filter((name) => existsSync(join(here.at(name), "begun")))).toHaveLength(2);
  });

  test("--html writes one page that loads nothing and contains no foreign markup", async () => {
    await using here = await createRepositoryHome();
    await over(here, "tool:echo '<script>alert(1)</script>' > new", "--group", "g", "--worktree", "--name", "a");
    mkdirSync(join(here.root, "out"));
    const page = join(here.root, "out", "page.html");
    expect((await here.here("compare", "g", "--html", page)).code).toBe(0);
    const html = readFileSync(page, "utf8");
    expect(html).toContain("&lt;script&gt;alert(1)");
    expect(html).not.toMatch(/<script|src=|href=/);
    expect((await here.here("compare", "g", "--html", "/nowhere/page.html")).code).toBe(1);
  });

  test("of an empty group is not found", async () => {
    await using here = await createRepositoryHome();
    expect(await here.here("compare", "nobody")).toMatchObject({ code: 3, out: "" });
    expect(await here.here("compare")).toMatchObject({ code: 2, out: "" });
  });
});
