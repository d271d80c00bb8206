// The bench: how long agentctl takes, compared with C programs that do the unavoidable part, with `ps -ef` and with an empty binary.
//
//   npm run bench -- [--quick] [--only CASE]… [--no-write] [--rounds N] [--bin dist/agentctl] [--even-wrong]
//
// --quick: five rounds, no home above 2,000 sessions. --even-wrong: also numbers of wrong answers, for who is working on them.
// Only a whole run is written to bench/RESULTS.md. docs/performance.md tells more.
import { existsSync, mkdirSync, openSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { tryLock } from "../src/sys/file-lock.ts";
import { sameDeviceAsRoot, whyNoNamespace } from "../test/truth/namespace.ts";
import { buildTools } from "./build.ts";
import { type Case, cases, isLargeCase, withoutOpenCode } from "./cases.ts";
import { commitOf, load, machineFacts } from "./machine.ts";
import { failures, measuredTable, targetTable } from "./report.ts";
import { Results } from "./results.ts";
import type { Tools } from "./stage.ts";
import { World } from "./worlds.ts";

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
  if (!withSqlite) tell("there is no sqlite3.h: OpenCode is left out, as the C reference cannot read its database");
  const measured = chosenCases(bin).flatMap((each) => (withSqlite ? each : withoutOpenCode(each)));
  const rounds = Number(options.rounds ?? (options.quick ? 5 : 15));
  const results = await measureAll(measured, rounds, bin, tools, folder);
  const loads = `load ${loadBefore} before the run and ${load()} at its end, of which 1 is the run itself`;
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
  if (unknown !== undefined) return `there is no case ${unknown}; known: ${names.join(", ")}.`;
  return existsSync(bin) ? await whyNoNamespace() : `there is no ${bin}: build it first.`;
}

/** In a namespace agentctl says unknown about stores on another device than `/`. */
function benchFolder(): string {
  const isHere = statSync(repository).dev === statSync("/").dev;
  return join(isHere ? repository : sameDeviceAsRoot(repository), isHere ? ".bench" : "agentctl-bench");
}

/** The kernel's lock goes with us, however we end. */
async function ourTurn(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const lock = openSync(join(folder, "lock"), "w");
  if (tryLock(lock)) return;
  tell("waits until another run is over");
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

/** Every round runs every command of every case once, so that whatever else the machine does falls on all of them alike. */
async function measureAll(
  measured: readonly Case[],
  rounds: number,
  bin: string,
  tools: Tools,
  folder: string,
): Promise<Results> {
  const results = new Results();
  const stages: { each: Case; world: World }[] = [];
  for (const each of measured) {
    tell(`${each.name}: ${each.about}`);
    const world = await World.open({ case: each, bin, tools, folder: join(folder, "homes", each.name) });
    stages.push({ each, world });
  }
  // A record that was written within the last two seconds is looked at twice.
  await Bun.sleep(2_500);
  for (const { each, world } of stages) {
    const wrong = await world.check();
    for (const text of wrong) tell(`${each.name}: wrong: ${text}`);
    if (wrong.length === 0 || options["even-wrong"])
      for (const command of each.commands) results.row(each.name, command).traced = await world.trace(command);
    else results.wrong.set(each.name, wrong);
  }
  for (let round = 1; round <= rounds; round += 1) {
    tell(`round ${round} of ${rounds}`);
    for (const { each, world } of stages) {
      if (results.wrong.has(each.name)) continue;
      for (const command of each.commands) results.row(each.name, command).runs.push(await world.measure(command));
    }
  }
  for (const { each, world } of stages) {
    const wrong = await world.checkAgain();
    if (wrong.length > 0) results.wrong.set(each.name, wrong);
    await world.close();
  }
  return results;
}

function resultsPage(facts: readonly string[], rounds: number, [measured, held]: readonly string[]): string {
  return `# Results

Written by \`npm run bench\`; docs/performance.md says what is compared and how.

- ${new Date().toISOString().slice(0, 10)}, commit ${commitOf(repository)}, ${rounds} rounds
${facts.map((fact) => `- ${fact}`).join("\n")}

## Targets
Ratios are those of minima.

${held}

## Measured
\`× C\`: to the C program that does the unavoidable part of the same command in the same home.

${measured}
`;
}

function tell(text: string): void {
  console.error(`bench: ${text}`);
}
