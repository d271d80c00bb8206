// Programs that agentctl runs for their output end by a deadline, with all their children, and with a limit on the output.
import { afterEach, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../../src/sys/spawn.ts";
import { waitFor } from "../conformance/wait.ts";

const folder = mkdtempSync(join(tmpdir(), "agentctl-children-"));
afterEach(() => {
  for (const pid of noted()) if (isAlive(pid)) process.kill(pid, "SIGKILL");
  rmSync(join(folder, "pids"), { force: true });
});

/** A program notes the pids of what it starts, so that the test can see them go, and end what stays. */
const noted = (): number[] => {
  const path = join(folder, "pids");
  return existsSync(path) ? readFileSync(path, "utf8").trim().split("\n").filter(Boolean).map(Number) : [];
};

function isAlive(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch (error) {
    if (error instanceof Error && "code" in error && ["ENOENT", "ESRCH"].includes(String(error.code))) return false;
    throw error;
  }
}

const allGone = (): Promise<void> => waitFor("their end", () => !noted().some(isAlive));
const shell = (script: string): string[] => ["/bin/sh", "-c", `note() { echo $1 >>'${folder}/pids'; }\n${script}`];
const options = { cwd: "/", env: { PATH: process.env["PATH"] ?? "" } };

async function timed<T>(work: Promise<T>): Promise<{ value: T; ms: number }> {
  const begun = performance.now();
  return { value: await work, ms: performance.now() - begun };
}

describe("a program that misses its deadline", () => {
  test("is killed with its group, even if it ignores SIGTERM and its child holds the pipes", async () => {
    const script = "trap '' TERM; note $$; sleep 600 & note $!; echo begun; while :; do sleep 600; done";
    const { value, ms } = await timed(runCommand(shell(script), { ...options, maxMs: 300 }));
    expect(value).toMatchObject({ status: null, out: "begun\n", err: "no answer within 0.3 s\n", gaveUp: "late" });
    expect(ms).toBeLessThan(1_500);
    expect(noted()).toHaveLength(2);
    await allGone();
  });

  test("is killed even if it is suspended", async () => {
    const { value } = await timed(runCommand(shell("note $$; kill -STOP $$"), { ...options, maxMs: 200 }));
    expect(value.gaveUp).toBe("late");
    await allGone();
  });

  test("has a short time to remove its lock files", async () => {
    const script = `note $$; trap 'echo cleaned >"${folder}/cleaned"; exit 3' TERM; while :; do sleep 0.02; done`;
    await runCommand(shell(script), { ...options, maxMs: 100, graceMs: 5_000 });
    expect(readFileSync(join(folder, "cleaned"), "utf8")).toBe("cleaned\n");
    const deaf = shell("note $$; trap '' TERM; while :; do sleep 0.02; done");
    const { ms } = await timed(runCommand(deaf, { ...options, maxMs: 100, graceMs: 200 }));
    expect(ms).toBeLessThan(1_500);
    await allGone();
  });
});

test("a grandchild in another group that keeps the pipes open does not delay the answer", async () => {
  const script = `setsid sh -c 'echo $$ >>"$0"; exec sleep 600' '${folder}/pids' & echo answer; exit 7`;
  const { value, ms } = await timed(runCommand(shell(script), { ...options, maxMs: 10_000 }));
  expect(value).toMatchObject({ status: 7, out: "answer\n", gaveUp: null });
  expect(ms).toBeLessThan(2_000);
  await waitFor("the grandchild", () => noted().length === 1);
});

test.each(["", " >&2"])("a program that prints forever%s is killed at the output limit", async (where) => {
  const maxBytes = 1024 * 1024;
  const { value, ms } = await timed(runCommand(shell(`note $$; yes${where}`), { ...options, maxMs: 60_000, maxBytes }));
  expect(value).toMatchObject({ status: null, gaveUp: "too much output" });
  expect(value.out.length).toBeLessThanOrEqual(maxBytes);
  expect(value.err).toEndWith("more than 1 MB of output\n");
  expect(ms).toBeLessThan(5_000);
  await allGone();
});

test("a program reads its input, and its output comes back complete", async () => {
  const { status, out } = await runCommand(["cat"], { ...options, maxMs: 10_000, input: "é\0\n".repeat(100_000) });
  expect({ status, whole: out === "é\0\n".repeat(100_000) }).toEqual({ status: 0, whole: true });
});

describe("when agentctl itself gets a signal", () => {
  const module = JSON.stringify(join(import.meta.dir, "../../src/sys/spawn.ts"));
  const begin = (more: string, script: string, graceMs = 0) => {
    const text = `import { runCommand } from ${module};
      ${more}
      const { status } = await runCommand(${JSON.stringify(shell(script))}, { cwd: "/", maxMs: 60_000, graceMs: ${graceMs} });
      console.log("after it", status);`;
    return Bun.spawn([process.execPath, "-e", text], { stdio: ["ignore", "pipe", "inherit"] });
  };
  const sleeping = "note $$; sleep 600 & note $!; wait";

  test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("%s ends the children first, then agentctl", async (signal) => {
    const child = begin("", sleeping);
    await waitFor("the child", () => noted().length === 2);
    child.kill(signal);
    await child.exited;
    expect([child.signalCode, await child.stdout.text()]).toEqual([signal, ""]);
    await allGone();
  });

  test("a child may remove its lock files; a child that ignores signals is killed", async () => {
    rmSync(join(folder, "cleaned"), { force: true });
    const tidy = `trap 'echo cleaned >"${folder}/cleaned"; exit' TERM; note $$; while :; do sleep 0.02; done`;
    const child = begin("", tidy, 5_000);
    await waitFor("the child", () => noted().length === 1);
    child.kill("SIGTERM");
    await child.exited;
    expect([child.signalCode, existsSync(join(folder, "cleaned"))]).toEqual(["SIGTERM", true]);
    const deaf = begin("", "trap '' TERM INT; note $$; while :; do sleep 0.02; done", 200);
    await waitFor("the deaf one", () => noted().length === 2);
    deaf.kill("SIGINT");
    await deaf.exited;
    expect(deaf.signalCode).toBe("SIGINT");
    await allGone();
  });

  test("a command with its own signal handler continues without the child", async () => {
    const child = begin('process.on("SIGINT", () => console.log("handled"));', sleeping);
    await waitFor("the child", () => noted().length === 2);
    child.kill("SIGINT");
    expect([await child.stdout.text(), await child.exited]).toEqual(["handled\nafter it null\n", 0]);
    await allGone();
  });

  test("process.exit ends the children, too", async () => {
    const child = begin('process.on("SIGUSR1", () => process.exit(5));', sleeping);
    await waitFor("the child", () => noted().length === 2);
    child.kill("SIGUSR1");
    expect(await child.exited).toBe(5);
    await allGone();
  });

  test("without a child the signal has its default effect", async () => {
    const child = begin(
      `setTimeout(() => { require("node:fs").writeFileSync("${folder}/idle", ""); setInterval(() => {}, 1000); }, 200);`,
      "true",
    );
    await waitFor("its rest", () => existsSync(join(folder, "idle")));
    child.kill("SIGTERM");
    await child.exited;
    expect(child.signalCode).toBe("SIGTERM");
  });
});
