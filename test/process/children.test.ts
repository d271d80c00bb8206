// Programs that agentctl runs for an answer: they end in time, with everything that they started, and print no more than fits.
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

describe("a program that does not end in time", () => {
  test("is killed with its group, although it ignores SIGTERM and its child holds the pipes", async () => {
    const script = "trap '' TERM; note $$; sleep 600 & note $!; echo begun; while :; do sleep 600; done";
    const { value, ms } = await timed(runCommand(shell(script), { ...options, mostMs: 300 }));
    expect(value).toMatchObject({ status: null, out: "begun\n", err: "no answer within 0.3 s\n", gaveUp: "late" });
    expect(ms).toBeLessThan(1_500);
    expect(noted()).toHaveLength(2);
    await allGone();
  });

  test("is killed although it is suspended", async () => {
    const { value } = await timed(runCommand(shell("note $$; kill -STOP $$"), { ...options, mostMs: 200 }));
    expect(value.gaveUp).toBe("late");
    await allGone();
  });

  test("may have a moment to remove its lock files, and no more than that", async () => {
    const script = `note $$; trap 'echo cleaned >"${folder}/cleaned"; exit 3' TERM; while :; do sleep 0.02; done`;
    await runCommand(shell(script), { ...options, mostMs: 100, graceMs: 5_000 });
    expect(readFileSync(join(folder, "cleaned"), "utf8")).toBe("cleaned\n");
    const deaf = shell("note $$; trap '' TERM; while :; do sleep 0.02; done");
    const { ms } = await timed(runCommand(deaf, { ...options, mostMs: 100, graceMs: 200 }));
    expect(ms).toBeLessThan(1_500);
    await allGone();
  });
});

test("a grandchild that left the group and keeps the pipes open does not hold the answer back", async () => {
  const script = `setsid sh -c 'echo $$ >>"$0"; exec sleep 600' '${folder}/pids' & echo answer; exit 7`;
  const { value, ms } = await timed(runCommand(shell(script), { ...options, mostMs: 10_000 }));
  expect(value).toMatchObject({ status: 7, out: "answer\n", gaveUp: null });
  expect(ms).toBeLessThan(2_000);
  await waitFor("the grandchild", () => noted().length === 1);
});

test.each(["", " >&2"])("a program that prints for ever%s is killed when its output does not fit", async (where) => {
  const mostBytes = 1024 * 1024;
  const { value, ms } = await timed(
    runCommand(shell(`note $$; yes${where}`), { ...options, mostMs: 60_000, mostBytes }),
  );
  expect(value).toMatchObject({ status: null, gaveUp: "too much output" });
  expect(value.out.length).toBeLessThanOrEqual(mostBytes);
  expect(value.err).toEndWith("more than 1 MB of output\n");
  expect(ms).toBeLessThan(5_000);
  await allGone();
});

test("reads what it is given, and an answer comes back whole", async () => {
  const { status, out } = await runCommand(["cat"], { ...options, mostMs: 10_000, input: "é\0\n".repeat(100_000) });
  expect({ status, whole: out === "é\0\n".repeat(100_000) }).toEqual({ status: 0, whole: true });
});

describe("when agentctl itself is asked to end", () => {
  const module = JSON.stringify(join(import.meta.dir, "../../src/sys/spawn.ts"));
  const begin = (more: string, script: string, graceMs = 0) => {
    const text = `import { runCommand } from ${module};
      ${more}
      const { status } = await runCommand(${JSON.stringify(shell(script))}, { cwd: "/", mostMs: 60_000, graceMs: ${graceMs} });
      console.log("after it", status);`;
    return Bun.spawn([process.execPath, "-e", text], { stdio: ["ignore", "pipe", "inherit"] });
  };
  const sleeping = "note $$; sleep 600 & note $!; wait";

  test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("%s ends the children, and then it as usual", async (signal) => {
    const child = begin("", sleeping);
    await waitFor("the child", () => noted().length === 2);
    child.kill(signal);
    await child.exited;
    expect([child.signalCode, await child.stdout.text()]).toEqual([signal, ""]);
    await allGone();
  });

  test("a child that holds lock files may remove them; a deaf one is killed", async () => {
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

  test("a command with a handler of its own goes on, without the child", async () => {
    const child = begin('process.on("SIGINT", () => console.log("handled"));', sleeping);
    await waitFor("the child", () => noted().length === 2);
    child.kill("SIGINT");
    expect([await child.stdout.text(), await child.exited]).toEqual(["handled\nafter it null\n", 0]);
    await allGone();
  });

  test("process.exit ends them, too", async () => {
    const child = begin('process.on("SIGUSR1", () => process.exit(5));', sleeping);
    await waitFor("the child", () => noted().length === 2);
    child.kill("SIGUSR1");
    expect(await child.exited).toBe(5);
    await allGone();
  });

  test("without a child a signal does what it does by default", async () => {
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
