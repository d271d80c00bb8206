// A repository, a program in PATH or a suspended server cannot make agentctl hang, and no child process is left behind.
import { describe, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { binary } from "../cli/test-home.ts";
import { ServerTestHome, Tmux, until } from "../cli/test-home-servers.ts";
import { waitFor } from "../conformance/wait.ts";
import { type HostileRepository, hostileRepository } from "./hostile-repository.ts";

const soonMs = 3_000;

async function timed<T>(work: Promise<T>): Promise<{ answer: T; ms: number }> {
  const begun = performance.now();
  return { answer: await work, ms: performance.now() - begun };
}

const fifo = (path: string): void => {
  rmSync(path, { force: true });
  if (spawnSync("mkfifo", [path]).status !== 0) throw new Error(`mkfifo ${path}`);
};

/** `git` first in PATH: what `when` matches in its arguments runs the script instead. */
function fakeGit(here: HostileRepository, when: string, script: string): { PATH: string } {
  const real = Bun.which("git", { PATH: here.env["PATH"] ?? "" });
  here.folder("bin");
  here.write("bin/git", `#!/bin/sh\ncase " $* " in *" ${when} "*) ${script};; esac\nexec ${real} "$@"\n`, 0o755);
  return { PATH: `${join(here.root, "bin")}:${here.env["PATH"]}` };
}

const gits = (here: HostileRepository): string[][] =>
  here
    .processes()
    .flatMap(({ argv }) => (argv.some((word) => /(^|\/)git$|held-open|^60[12]$/.test(word)) ? [argv] : []));

const deaf = "trap '' TERM INT HUP; sleep 601 & while :; do sleep 602; done";

describe("list with a git that does not exit", () => {
  test.each([
    ["ignores every gentle signal", deaf],
    ["is suspended", "kill -STOP $$"],
    ["prints for ever", "yes held-open"],
  ])("and %s gives up soon, reports it, and leaves no process behind", async (_, script) => {
    await using here = await hostileRepository();
    const env = fakeGit(here, "status", script);
    for (let round = 0; round < 3; round += 1) {
      const { answer, ms } = await timed(here.begin([binary, "list"], { cwd: here.repository, env }).answer);
      expect(answer.code).toBe(0);
      expect(answer.err).toContain("changed files were not compared, git did not answer: ");
      expect(ms).toBeLessThan(soonMs);
    }
    await waitFor("their end", () => gits(here).length === 0);
    const { out } = await here.begin([binary, "list", "--json"], { cwd: here.repository, env }).answer;
    expect(JSON.parse(out)).toMatchObject({ conflicts: [], omitted: { places: 2 } });
  });

  test("a grandchild in another group that keeps the pipe open does not block list", async () => {
    await using here = await hostileRepository();
    const env = fakeGit(here, "config", "setsid sh -c 'exec sleep 603' held-open & exit 1");
    const { answer, ms } = await timed(here.begin([binary, "list"], { cwd: here.repository, env }).answer);
    expect(answer.code).toBe(0);
    expect(ms).toBeLessThan(soonMs);
  });
});

describe.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("%s", (signal) => {
  test.each([
    ["list", "status"],
    ["diff", "ls-files"],
    ["worktree", "status"],
  ])("ends %s and the git that it waits for", async (command, when) => {
    await using here = await hostileRepository();
    const env = fakeGit(here, when, `: >'${join(here.root, "begun")}'; ${deaf}`);
    const words = { list: ["list"], diff: ["diff", here.ids[0] ?? ""], worktree: ["worktree", "list"] }[command] ?? [];
    const job = here.begin([binary, ...words], { cwd: here.repository, env });
    await waitFor("git", () => existsSync(join(here.root, "begun")));
    job.kill(signal);
    const { code } = await job.answer;
    // The shell's word for a death by this signal, or an answer that was given up on git in the same moment.
    if (command !== "list") expect(code).toBe({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }[signal]);
    await waitFor("their end", () => gits(here).length === 0);
  });
});

describe("a named pipe instead of a file of git", () => {
  test.each([
    ["an included configuration", (here: HostileRepository) => here.git("config", "include.path", "../pipe")],
    [
      "the attributes",
      (here: HostileRepository) => renameSync(join(here.repository, "pipe"), join(here.at("a"), ".gitattributes")),
    ],
    ["the index", (here: HostileRepository) => fifo(join(here.repository, ".git/worktrees/a/index"))],
    ["HEAD", (here: HostileRepository) => fifo(join(here.repository, ".git/worktrees/a/HEAD"))],
    ["the mark of the worktree", (here: HostileRepository) => fifo(join(here.at("a"), ".git"))],
    ["packed refs", (here: HostileRepository) => fifo(join(here.repository, ".git/packed-refs"))],
  ])("%s: reading does not block", async (_, set) => {
    await using here = await hostileRepository();
    for (const name of ["a", "b"]) here.touch(here.at(name));
    fifo(join(here.repository, "pipe"));
    await set(here);
    for (const words of [["list"], [], ["statusline"], ["status", here.ids[0] ?? ""], ["doctor"], ["lock", "list"]]) {
      const { answer, ms } = await timed(here.here(...words));
      expect({ words, soon: ms < soonMs, internal: answer.err.includes("internal") }).toEqual({
        ...{ words, soon: true, internal: false },
      });
    }
    await waitFor("their end", () => gits(here).length === 0);
  });
});

test("a filter that keeps its pipe open does not block worktree list", async () => {
  await using here = await hostileRepository();
  for (const name of ["a", "b"]) here.touch(here.at(name));
  writeFileSync(join(here.repository, ".git", "info", "attributes"), "* filter=slow\n");
  await here.git("config", "filter.slow.clean", "sleep 25 & cat");
  const { answer, ms } = await timed(here.here("worktree", "list"));
  expect(answer.code).toBe(0);
  expect(ms).toBeLessThan(soonMs);
});

test.each(["SIGINT", "SIGTERM"] as const)(
  "%s ends a launch that waits for a slow checkout, and leaves nothing",
  async (signal) => {
    await using here = await hostileRepository();
    writeFileSync(join(here.repository, ".git", "info", "attributes"), "* filter=slow\n");
    const begun = join(here.root, "begun");
    await here.git("config", "filter.slow.smudge", `: >'${begun}'; sleep 601; cat`);
    const words = ["launch", "demo", "say:x", "--permission", "bypass", "--worktree", "--name", "c"];
    const job = here.begin([binary, ...words], { cwd: here.repository });
    await waitFor("the checkout", () => existsSync(begun));
    job.kill(signal);
    expect(await job.answer).toMatchObject({ code: 130, out: "" });
    await waitFor("their end", () => gits(here).length === 0);
    expect(existsSync(here.at("c"))).toBe(false);
    expect(await here.git("branch", "--list", "agentctl/c")).toBe("");
    expect((await here.git("worktree", "list")).split("\n")).toHaveLength(3);
  },
);

describe("a suspended tmux server", () => {
  test("hides the panes and does not block the answer", async () => {
    await using stage = new ServerTestHome();
    const tmux = new Tmux(stage);
    const id = crypto.randomUUID();
    await tmux.open("-s", "main", binary, "demo-agent", "--session-id", id, "prompt:x", "end", "idle");
    await stage.until(id, "idle");
    const server = Number(await tmux.run("display-message", "-p", "#{pid}"));
    process.kill(server, "SIGSTOP");
    try {
      for (const words of [
        ["list", "--json"],
        ["status", id],
      ]) {
        const { answer, ms } = await timed(stage.run(words));
        expect(answer.code).toBe(0);
        expect(ms).toBeLessThan(9_000);
      }
      await until("the end of the clients", () => stage.pids().every((pid) => !isClient(pid)));
    } finally {
      process.kill(server, "SIGCONT");
    }
  }, 30_000);
});

const isClient = (pid: number): boolean =>
  spawnSync("grep", ["-qa", "list-panes", `/proc/${pid}/cmdline`]).status === 0;
