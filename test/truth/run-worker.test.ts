// A worker of a harness that dies says why, and how to repeat it.
import { expect, test } from "bun:test";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { noteProgress, runWorker } from "./run-worker.ts";

const repository = resolve(import.meta.dir, "../..");

class Folder implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), "run-worker-"));
  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

test.each([
  ["exits with an error", "exit 3", "exit code 3"],
  ["is killed", "kill -KILL $$", "killed by SIGKILL"],
  ["crashes", "kill -SEGV $$", "killed by SIGSEGV"],
])("a worker that %s is reported with its last words and its progress", async (_name, end, cause) => {
  using folder = new Folder();
  noteProgress(folder.path, "the third step");
  const ended = await runWorker(["sh", "-c", `echo first >&2; echo last words >&2; ${end}`], folder.path);
  // The shell adds a line for a signal.
  const lastLines = expect.arrayContaining(["first", "last words"]);
  expect(ended).toEqual({ death: { cause, lastLines, progress: "the third step" } });
});

test("a worker that ends well is its output", async () => {
  using folder = new Folder();
  expect(await runWorker(["echo", "result"], folder.path)).toEqual({ output: "result\n" });
});

test("only the last lines of a long stderr are kept, and no progress is null", async () => {
  using folder = new Folder();
  const ended = await runWorker(["sh", "-c", "seq 100 >&2; exit 1"], folder.path);
  const lastLines = Array.from({ length: 20 }, (_none, index) => String(81 + index));
  expect(ended).toEqual({ death: { cause: "exit code 1", lastLines, progress: null } });
});

/** A binary under test that kills the worker that runs it. */
function killer(folder: Folder): string {
  const path = join(folder.path, "killer");
  writeFileSync(path, "#!/bin/sh\nkill -KILL $PPID\n");
  chmodSync(path, 0o755);
  return path;
}

async function harness(...args: string[]): Promise<{ code: number; out: string }> {
  const child = Bun.spawn([process.execPath, ...args], { cwd: repository, stdout: "pipe", stderr: "ignore" });
  const out = await child.stdout.text();
  return { code: await child.exited, out };
}

test("the truth harness names the schedule and the steps of a dead worker, and fails", async () => {
  using folder = new Folder();
  const bin = killer(folder);
  const words = ["--schedules", "1", "--workers", "1", "--seed", "1", "--bin", bin];
  const { code, out } = await harness("test/truth/run.ts", ...words);
  expect(code).toBe(1);
  expect(out).toContain("DEATH of a worker: killed by SIGKILL\n");
  expect(out).toContain("in schedule 0 of seed 1 (8 steps); replay:\n");
  const steps = /--replay "([^"]+)"/.exec(out)?.[1] ?? "";
  expect(steps.split(" ")[0]).toStartWith("cast:");
  expect(out).toEndWith("truth: 0 passed, 1 failed\n");
  const again = await harness("test/truth/run.ts", "--bin", bin, "--replay", steps);
  expect(again.out).toContain(`--replay "${steps}"`);
});

test("the worktree harness names the seed of a dead worker's schedule, and fails", async () => {
  using folder = new Folder();
  const words = ["--schedules", "1", "--workers", "1", "--seed", "1", "--binary", killer(folder)];
  const { code, out } = await harness("test/worktrees/run.ts", ...words);
  expect(code).toBe(1);
  expect(out).toMatch(/in the schedule (\d+); replay:\n {2}bun test\/worktrees\/run\.ts .*--replay \1 --keep\n/);
  expect(out).toEndWith("worktrees: 0 passed, 1 failed\n");
});
