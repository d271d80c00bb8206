// Mutation testing: plants one bug after the other in a copy of the project and runs the tests, then the truth harness, until one
// of them fails. A planted bug that all of them miss fails the run.
//
//   bun test/mutants/run.ts [--only TEXT] [--from N]
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { type Mutant, mutants } from "./mutants.ts";
import { findPlaces, parseCode, replaceIn } from "./pattern.ts";
import { readSources } from "./sources.ts";

const repository = resolve(import.meta.dir, "../..");
const { values: options } = parseArgs({
  options: { only: { type: "string" }, from: { type: "string", default: "0" } },
});

/** The fast ones first: they catch most bugs. */
const hunters: readonly { name: string; command: (copy: string) => string[][] }[] = [
  { name: "unit", command: () => [["bun", "test", "--bail", "./test/unit/core"]] },
  { name: "property", command: () => [["bun", "test", "--bail", "./test/property"]] },
  { name: "process", command: () => [["scripts/test", "--bail", "./test/process/process-table-linux.test.ts"]] },
  { name: "other unit", command: () => [["bun", "test", "--bail", "./test/unit"]] },
  { name: "conformance", command: () => [["bun", "test", "--bail", "./test/conformance/captured.test.ts"]] },
  {
    name: "live",
    command: () => [
      build,
      [
        "scripts/test",
        "--bail",
        "./test/conformance/lifecycle.test.ts",
        "./test/cli/list.test.ts",
        "./test/cli/record-cache.test.ts",
        "./test/cli/list-when-unsure.test.ts",
        "./test/cli/stop-process-tree.test.ts",
      ],
    ],
  },
  { name: "security", command: () => [build, ["scripts/test", "--bail", "./test/security"]] },
  { name: "truth", command: () => [build, ["bun", "test/truth/run.ts", "--schedules", "150", "--seed", "1"]] },
];

const code = parseCode(readSources(repository));
const build = ["npm", "run", "--silent", "build"];

const copy = mkdtempSync(join(tmpdir(), "agentctl-mutants-"));
try {
  for (const part of ["src", "test", "scripts", "package.json", "tsconfig.json"])
    cpSync(join(repository, part), join(copy, part), {
      recursive: true,
      filter: (path) => !path.includes("test/agents/node_modules"),
    });
  mkdirSync(join(copy, "dist"), { recursive: true });
  symlinkSync(join(repository, "node_modules"), join(copy, "node_modules"));
  process.exitCode = await hunt();
} finally {
  rmSync(copy, { recursive: true, force: true });
}

async function hunt(): Promise<number> {
  const chosen = mutants.slice(Number(options.from)).filter(({ name }) => name.includes(options.only ?? ""));
  const survivors: string[] = [];
  const caught = new Map<string, number>();
  for (const mutant of chosen) {
    const by = await hunterOf(mutant);
    console.log(`${by === null ? "SURVIVED" : `caught by ${by}`.padEnd(22)}  ${mutant.name}`);
    if (by === null) survivors.push(mutant.name);
    else caught.set(by, (caught.get(by) ?? 0) + 1);
  }
  const sums = [...caught].map(([by, count]) => `${by} ${count}`).join(", ");
  console.log(`mutants: ${chosen.length - survivors.length} of ${chosen.length} caught (${sums})`);
  return survivors.length === 0 ? 0 : 1;
}

async function hunterOf({ name, pattern, replacement, inside }: Mutant): Promise<string | null> {
  const [place, ...more] = findPlaces(code, pattern, inside);
  if (place === undefined || more.length > 0) throw new Error(`"${name}" needs exactly one place in src`);
  const path = join(copy, place.source.path);
  writeFileSync(path, replaceIn(place, replacement));
  try {
    for (const hunter of hunters) if (await notices(hunter.command(copy))) return hunter.name;
    return null;
  } finally {
    writeFileSync(path, place.source.text);
  }
}

/** A command that fails has caught the bug; so has a build that fails. */
async function notices(commands: string[][]): Promise<boolean> {
  for (const command of commands) {
    const child = Bun.spawn(command, {
      cwd: copy,
      env: { ...process.env, PATH: `${join(repository, "node_modules/.bin")}:${process.env["PATH"]}` },
      stdin: "ignore",
      stdout: "ignore",
      stderr: "ignore",
    });
    if ((await child.exited) !== 0) return true;
  }
  return false;
}
