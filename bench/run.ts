// The bench: how long agentctl takes, compared with C programs that do the unavoidable part, with `ps -ef` and with an empty binary.
//
//   npm run bench -- [--quick] [--only CASE]… [--no-write] [--rounds N] [--bin dist/agentctl] [--even-wrong]
//
// --quick: five rounds, no home above 2,000 sessions. --even-wrong: measure also cases with wrong answers.
// Only a complete run is written to bench/RESULTS.md. docs/performance.md explains what is compared.
import { existsSync, mkdirSync, openSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { tryLock } from "../src/sys/file-lock.ts";
import { sameDeviceAsRoot, whyNoNamespace } from "../test/truth/namespace.ts";
import { buildTools } from "./build.ts";
import { CaseProcess } from "./case-process.ts";
import { type Case, cases, isLargeCase, withoutOpenCode } from "./cases.ts";
import { commitOf, load, machineFacts } from "./machine.ts";
import type { Tools } from "./prepared-case.ts";
import { failures, measuredTable, targetTable } from "./report.ts";
import { Results } from "./results.ts";

const repository = resolve(import.meta.dir, "..");

const { values: options } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    only: { type: "string", multiple: true },
    "no-write": { type: "boolean", default: false },
    rounds: { type: "string" },
    "even-wrong": { type: "boolean", default: false },
    bin: { type: "string", default: join(repository, "dist/agentctl") },
  },
});

process.exitCode = await main();

async function main(): Promise<number> {
  const bin = resolve(options.bin);
  const refusal = await whyNot(bin);
  if (refusal !== null) {
    tell(`cannot run: ${refusal}`);
    return 1;
  }
  const folder = benchFolder();
  await ourTurn(folder);
  const loadBefore = load();
  const { tools, withSqlite } = buildTools(join(folder, "tools"));
  if (!withSqlite) tell("sqlite3.h is missing: OpenCode is left out, because the C reference cannot read its database");
  const measured = chosenCases(bin).flatMap((each) => (withSqlite ? each : withoutOpenCode(each)));
  const rounds = Number(options.rounds ?? (options.quick ? 5 : 15));
  const results = await measureAll(measured, rounds, bin, tools, folder);
  const loads = `load ${loadBefore} before the run and ${load()} at its end, of which the run itself adds 1`;
  const facts = [...machineFacts(folder), loads];
  const tables = [measuredTable(results, measured), targetTable(results, measured)];
  console.log(`\n${facts.join("\n")}\n\n${tables.join("\n\n")}`);
  const isWhole = withSqlite && measured.length === cases.length && !options["even-wrong"];
  if (isWhole && !options["no-write"])
    writeFileSync(join(import.meta.dir, "RESULTS.md"), resultsPage(facts, rounds, tables));
  return failures(results) === 0 ? 0 : 1;
}

async function whyNot(bin: string): Promise<string | null> {
  const names = cases.map(({ name }) => name);
  const unknown = options.only?.find((name) => !names.includes(name));
  if (unknown !== undefined) return `no such case: ${unknown}; cases: ${names.join(", ")}`;
  return existsSync(bin) ? await whyNoNamespace() : `${bin} does not exist: run npm run build`;
}

/** Must be on the device of `/`: inside a pid namespace agentctl says unknown about stores on other devices. */
function benchFolder(): string {
  const isHere = statSync(repository).dev === statSync("/").dev;
  return join(isHere ? repository : sameDeviceAsRoot(repository), isHere ? ".bench" : "agentctl-bench");
}

/** Waits until no other run is active. The kernel releases the lock when this process ends. */
async function ourTurn(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const lock = openSync(join(folder, "lock"), "w");
  if (tryLock(lock)) return;
  tell("waiting for another run to end");
  while (!tryLock(lock)) await Bun.sleep(500);
}

function chosenCases(bin: string): Case[] {
  const isThere = (command: string): boolean =>
    command !== "statusline" ||
    Bun.spawnSync([bin, "statusline", "--help"], { env: { HOME: "/nowhere" } }).exitCode === 0;
  return cases
    .filter((each) => options.only?.includes(each.name) ?? !(options.quick && isLargeCase(each)))
    .map((each) => ({ ...each, commands: each.commands.filter(isThere) }));
}

/** Every round runs every command of every case once, so that other work on the host affects all of them alike. */
async function measureAll(
  measured: readonly Case[],
  rounds: number,
  bin: string,
  tools: Tools,
  folder: string,
): Promise<Results> {
  const results = new Results();
  const running: { each: Case; child: CaseProcess }[] = [];
  for (const each of measured) {
    tell(`${each.name}: ${each.about}`);
    const child = await CaseProcess.open({ case: each, bin, tools, folder: join(folder, "homes", each.name) });
    running.push({ each, child });
  }
  // agentctl reads a record twice if it was written within the last two seconds.
  await Bun.sleep(2_500);
  for (const { each, child } of running) {
    const wrong = await child.check();
    for (const text of wrong) tell(`${each.name}: wrong: ${text}`);
    if (wrong.length === 0 || options["even-wrong"])
      for (const command of each.commands) results.row(each.name, command).traced = await child.trace(command);
    else results.wrong.set(each.name, wrong);
  }
  for (let round = 1; round <= rounds; round += 1) {
    tell(`round ${round} of ${rounds}`);
    for (const { each, child } of running) {
      if (results.wrong.has(each.name)) continue;
      for (const command of each.commands) results.row(each.name, command).runs.push(await child.measure(command));
    }
  }
  for (const { each, child } of running) {
    const wrong = await child.checkAgain();
    if (wrong.length > 0) results.wrong.set(each.name, wrong);
    await child.close();
  }
  return results;
}

function resultsPage(facts: readonly string[], rounds: number, [measured, held]: readonly string[]): string {
  return `# Results

Written by \`npm run bench\`; docs/performance.md explains what is compared and how.

- ${new Date().toISOString().slice(0, 10)}, commit ${commitOf(repository)}, ${rounds} rounds
${facts.map((fact) => `- ${fact}`).join("\n")}

## Targets
Ratios compare minima.

${held}

## Measured
\`× C\` compares with the C program that does the unavoidable part of the same command in the same home.

${measured}
`;
}

function tell(text: string): void {
  console.error(`bench: ${text}`);
}
