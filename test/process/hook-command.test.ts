// A person's hook command has limits for time and output; processes that it leaves running are left alone.
import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type HookEnd, runHookCommand } from "../../src/control/hooks/hook-command.ts";
import { waitFor } from "../conformance/wait.ts";

class Place implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), "agentctl-hook-"));
  readonly log = join(this.path, "log");
  pid = 0;

  run(command: string, limits: { limitMs?: number; graceMs?: number; maxBytes?: number } = {}): Promise<HookEnd> {
    const env = { PATH: process.env["PATH"] ?? "/bin" };
    const order = { command, cwd: this.path, env, log: this.log };
    return runHookCommand({ ...order, limitMs: 20_000, graceMs: 200, maxBytes: 1024 * 1024, ...limits }, (pid) => {
      this.pid = pid;
    });
  }

  said = (): string => readFileSync(this.log, "utf8");
  number = (name: string): number => Number(readFileSync(join(this.path, name), "utf8"));

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

function isThere(pid: number): boolean {
  try {
    return !/\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch (error) {
    if (error instanceof Error && "code" in error && ["ENOENT", "ESRCH"].includes(String(error.code))) return false;
    throw error;
  }
}

test("a command has its exit status and ordered output, no input, and its own kernel session", async () => {
  using place = new Place();
  const { status, timedOut, drained } = await place.run(
    `echo one; echo two >&2; cat; cut -d" " -f6 /proc/$$/stat; echo $$; ls /proc/self/fd | wc -l; exit 3`,
  );
  await drained;
  // 0, 1, 2 and the folder that ls reads.
  expect(place.said()).toBe(`one\ntwo\n${place.pid}\n${place.pid}\n4\n`);
  expect([status, timedOut]).toEqual([3, false]);
  expect(statSync(place.log).mode & 0o777).toBe(0o600);
});

test("the command does not ignore signals", async () => {
  using place = new Place();
  const { drained } = await place.run("grep SigIgn /proc/self/status");
  await drained;
  expect(place.said()).toBe("SigIgn:\t0000000000000000\n");
});

test("a command that hangs is ended with all its children", async () => {
  using place = new Place();
  const begun = performance.now();
  const { status, timedOut, drained } = await place.run("sleep 600 & echo $! >child; echo here; sleep 600", {
    limitMs: 300,
  });
  await drained;
  expect([status, timedOut, place.said()]).toEqual([143, true, "here\n"]);
  expect(isThere(place.number("child"))).toBe(false);
  expect(performance.now() - begun).toBeLessThan(5_000);
});

test("a command that ignores SIGTERM is killed with the processes that it starts last", async () => {
  using place = new Place();
  const command = `trap 'sleep 600 & echo $! >late' TERM; sleep 600 & echo $! >child; echo >ready; while :; do wait; sleep 0.05; done`;
  const { status, timedOut } = await place.run(command, { limitMs: 500 });
  expect([status, timedOut]).toEqual([137, true]);
  for (const name of ["child", "late"]) expect(isThere(place.number(name))).toBe(false);
});

test("of 100 MB of output the first megabyte is kept, with a note about the rest", async () => {
  using place = new Place();
  const { status, drained } = await place.run("head -c 104857600 /dev/zero | tr '\\0' x; echo end >&2");
  await drained;
  const said = place.said();
  expect([status, said.length <= 1024 * 1024, said.length > 1024 * 1024 - 200]).toEqual([0, true, true]);
  expect(said).toMatch(/^x+\nagentctl: cut off here; 10\d{7} more bytes were not kept\n$/);
});

test("a process that the command leaves running is left alone, and its output is read until the timeout", async () => {
  using place = new Place();
  const { status, timedOut, drained } = await place.run(
    "(sleep 0.3; echo late; sleep 600) & echo $! >child; echo first",
    {
      limitMs: 1_500,
    },
  );
  expect([status, timedOut, place.said()]).toEqual([0, false, "first\n"]);
  await drained;
  expect(place.said()).toBe("first\nlate\n");
  const child = place.number("child");
  expect(isThere(child)).toBe(true);
  for (const pid of [child, ...childrenOf(child)]) process.kill(pid, "SIGKILL");
  await waitFor("its end", () => !isThere(child));
});

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1").split(" ").filter(Boolean).map(Number);

test("a command may kill its whole kernel session", async () => {
  using place = new Place();
  const { status, timedOut } = await place.run("sleep 600 & kill -9 0");
  expect([status, timedOut]).toEqual([137, false]);
});

test("a command that cannot be started is an error", async () => {
  using place = new Place();
  rmSync(place.path, { recursive: true });
  await expect(place.run("true")).rejects.toThrow("ENOENT");
});
