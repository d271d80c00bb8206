// A short run of the fuzzer: first with a fixed seed, then with a random one, which is printed.
import { expect, setDefaultTimeout, test } from "bun:test";

/** A case that never ends is given up after half a minute, and named. */
setDefaultTimeout(120_000);

test.each([
  ["a known seed", ["--seed", "1", "--rounds", "1"]],
  ["a fresh seed", ["--rounds", "1"]],
])("%s", async (_name, more) => {
  const fuzzer = Bun.fileURLToPath(import.meta.resolve("./run.ts"));
  const running = Bun.spawn([process.execPath, fuzzer, ...more], { stdout: "pipe", stderr: "inherit" });
  const said = await new Response(running.stdout).text();
  console.log(said.match(/^fuzz: .* cases .*$/m)?.[0] ?? said);
  expect(said.match(/^FAILED.*(?:\n {2}.*)*/gm) ?? []).toEqual([]);
  expect(await running.exited).toBe(0);
});
