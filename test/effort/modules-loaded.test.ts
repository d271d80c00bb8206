// The modules that a command loads before it starts to work: few of our own, and no slow module of the runtime.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

const root = join(import.meta.dir, "../..");
const transpiler = new Bun.Transpiler({ loader: "ts" });

/** Measured with compiled programs that import nothing else: each takes one to four milliseconds. */
const slow = /^node:(zlib|crypto|http|https|net|tty|util|readline|child_process|stream)|^(yaml|@)/;

function loadedBy(path: string, found = new Set<string>()): Set<string> {
  if (found.has(path)) return found;
  found.add(path);
  for (const { path: target, kind } of transpiler.scanImports(readFileSync(join(root, path), "utf8"))) {
    if (kind !== "import-statement") continue;
    if (target.startsWith(".") && target.endsWith(".ts")) loadedBy(normalize(join(dirname(path), target)), found);
    else found.add(target);
  }
  return found;
}

test.each([
  ["src/main.ts", 2, 10_000],
  ["src/cli/perform.ts", 5, 17_000],
  ["src/cli/list.ts", 121, 690_000],
  ["src/cli/statusline.ts", 113, 650_000],
  ["src/cli/status.ts", 135, 750_000],
  ["src/cli/why.ts", 135, 750_000],
  ["src/cli/launch.ts", 178, 950_000],
  ["src/cli/wait.ts", 143, 780_000],
  ["src/cli/stop.ts", 158, 845_000],
  ["src/cli/logs.ts", 144, 790_000],
])("%s loads at most %d modules of %d characters, and nothing slow", (entry, modules, characters) => {
  const own = [...loadedBy(entry)].filter((path) => path.endsWith(".ts"));
  const size = own.reduce((sum, path) => sum + readFileSync(join(root, path), "utf8").length, 0);
  expect([...loadedBy(entry)].filter((path) => slow.test(path))).toEqual([]);
  expect(own.length).toBeLessThanOrEqual(modules);
  expect(size).toBeLessThanOrEqual(characters);
});

test("src/main.ts loads no module of the runtime before it knows the command", () => {
  expect([...loadedBy("src/main.ts")]).toEqual(["src/main.ts", "../package.json", "src/sys/write-early.ts"]);
});

test("list loads no sentences of failures or proofs, and nothing that counts tokens", () => {
  const loaded = [...loadedBy("src/cli/list.ts")];
  expect(loaded.filter((path) => /words\/(failures|proofs|notices)|core\/failure-kinds|usage/.test(path))).toEqual([]);
});
