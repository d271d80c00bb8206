// The fuzzer: damaged files, processes and answers for every parser, the launch notes and the configuration.
//
//   bun test/fuzz/run.ts [--seconds 60] [--seed N] [--only NAME]     looks for failures until the time is over
//   bun test/fuzz/run.ts --rounds 1 [--seed N] [--only NAME]         so many rounds, each time the same for the same seed
//   bun test/fuzz/run.ts --seed N --only TARGET --case K             one case again, as a failure names it
//
// - A target (target.ts) makes a case out of dice: captured files, damaged (mutate.ts), and what must hold for them.
//   NAME is a part of a target's name; --list shows them.
// - The work is done in a separate process. It notes what it is about to do, so that the outer one can name a case that
//   never ends and kill it.
// - A failure prints its seed, its case and a file with the input, made as small as it could be made.
import { mkdtempSync, openSync, readFileSync, rmSync, statSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { throwAwayFolder } from "../conformance/folder.ts";
import { caseOf, Engine, type Failure, written } from "./engine.ts";
import { targetsIn } from "./targets.ts";

const { values: options } = parseArgs({
  options: {
    seconds: { type: "string" },
    rounds: { type: "string" },
    seed: { type: "string", default: String(crypto.getRandomValues(new Uint32Array(1))[0] ?? 1) },
    only: { type: "string", default: "" },
    case: { type: "string" },
    skip: { type: "string", default: "" },
    list: { type: "boolean", default: false },
    inside: { type: "string" },
  },
});

const seed = Number(options.seed);
/** Far above the limit of any case: a worker that takes longer hangs. */
const hangMs = 30_000;
/** After collecting: what stays from case to case. */
const mostGrownMb = 500;

process.exitCode = options.inside === undefined ? await outside() : await inside(options.inside);

/** Starts again without a target that hung: the others are still worth a look. */
async function outside(): Promise<number> {
  const end = performance.now() + Number(options.seconds ?? "60") * 1000;
  const skip: string[] = [];
  for (;;) {
    const { status, hung } = await child([
      "--skip",
      skip.join(","),
      "--seconds",
      String(Math.max(0, (end - performance.now()) / 1000)),
    ]);
    if (hung === null) return skip.length > 0 ? 1 : status;
    skip.push(hung);
    if (options.rounds === undefined && performance.now() > end) return 1;
  }
}

async function child(more: string[]): Promise<{ status: number; hung: string | null }> {
  const folder = mkdtempSync(join(tmpdir(), "agentctl-fuzzing-"));
  const progress = join(folder, "progress");
  writeFileSync(progress, "start 0\n");
  const command = [process.execPath, import.meta.path, ...process.argv.slice(2), "--seed", options.seed, ...more];
  const running = Bun.spawn([...command, "--inside", progress], { stdio: ["ignore", "inherit", "inherit"] });
  let hung: string | null = null;
  const watch = setInterval(() => {
    if (hung !== null || Date.now() - statSync(progress).mtimeMs < hangMs) return;
    hung = sayHung(readFileSync(progress, "utf8"));
    running.kill("SIGKILL");
  }, 500);
  try {
    const status = await running.exited;
    if (hung === null && running.signalCode !== null) {
      console.log(`FAILED by ${running.signalCode} in ${readFileSync(progress, "utf8").trim()}\n  seed ${seed}`);
      return { status: 1, hung };
    }
    return { status, hung };
  } finally {
    clearInterval(watch);
    rmSync(folder, { recursive: true });
  }
}

function sayHung(progress: string): string {
  const [name = "", number = "0"] = progress.split("\n", 1)[0]?.split(" ") ?? [];
  using folder = throwAwayFolder();
  const target = targetsIn(folder.path).find((each) => each.name === name);
  const made = target === undefined ? null : caseOf(target, seed, Number(number));
  const path = made === null ? "(unknown)" : written(`${name.replaceAll(":", "-")}-${seed}-${number}-hang`, made.input);
  console.log(`FAILED ${name}: did not end within ${hangMs / 1000} s\n  seed ${seed}, case ${number}\n  input ${path}`);
  return name;
}

async function inside(progress: string): Promise<number> {
  using folder = throwAwayFolder();
  const targets = targetsIn(folder.path)
    .filter(({ name }) => name.includes(options.only))
    .filter(({ name }) => !options.skip.split(",").includes(name));
  if (targets.length === 0 && options.skip !== "") return 1;
  if (targets.length === 0) throw new Error(`no target is named like ${options.only}`);
  if (options.list) {
    for (const { name, weight } of targets) console.log(`${name} (${weight} a round)`);
    return 0;
  }
  console.log(`fuzz: seed ${seed}`);
  const note = openSync(progress, "r+");
  const engine = new Engine(seed, sayFailure);
  const run = async (index: number, number: number): Promise<void> => {
    const target = targets[index];
    if (target === undefined) return;
    writeSync(note, `${target.name} ${number}\n`.padEnd(80), 0);
    await engine.run(target, number);
  };
  const started = performance.now();
  const rounds = options.rounds === undefined ? Number.POSITIVE_INFINITY : Number(options.rounds);
  const endMs = options.rounds === undefined ? Number(options.seconds ?? "60") * 1000 : Number.POSITIVE_INFINITY;
  const isOver = (): boolean => performance.now() - started > endMs;
  let baseMb = 0;
  if (options.case !== undefined) await run(0, Number(options.case));
  else
    for (let round = 0; round < rounds && !isOver(); round += 1) {
      for (const [index, { weight }] of targets.entries()) {
        // Those that do not come up in every round take turns, beginning elsewhere with every seed.
        const phase = weight < 1 ? ((index * 7 + seed) % 18) / 18 : 0;
        const [from, to] = [round, round + 1].map((each) => Math.floor(each * weight + phase + 1e-9));
        for (let number = from ?? 0; number < (to ?? 0) && !isOver(); number += 1) await run(index, number);
      }
      Bun.gc(true);
      const nowMb = process.memoryUsage().rss / 1024 / 1024;
      if (round === 0) baseMb = nowMb;
      if (nowMb - baseMb > mostGrownMb) {
        console.log(`FAILED memory: grew by ${Math.round(nowMb - baseMb)} MB after round ${round}\n  seed ${seed}`);
        return 1;
      }
    }
  saySummary(engine, performance.now() - started);
  return engine.failures.length === 0 ? 0 : 1;
}

function sayFailure({ target, number, about, fault, stack, path, bytes }: Failure): void {
  console.log(`FAILED ${target}: ${fault}`);
  console.log(`  about ${about}`);
  console.log(`  again: bun test/fuzz/run.ts --seed ${seed} --only ${target} --case ${number}`);
  console.log(`  input ${path} (${bytes} bytes)`);
  if (stack !== null) console.log(`  ${stack.split("\n").slice(0, 8).join("\n  ")}`);
}

function saySummary({ counts, failures }: Engine, tookMs: number): void {
  const cases = [...counts.values()].reduce((sum, each) => sum + each.cases, 0);
  for (const [name, each] of counts)
    console.log(
      `${name.padEnd(34)} ${String(each.cases).padStart(8)} cases ${Math.round((each.cases / each.ms) * 1000)
        .toString()
        .padStart(8)}/s`,
    );
  console.log(
    `fuzz: seed ${seed}, ${cases} cases in ${(tookMs / 1000).toFixed(1)} s, ${failures.length} kinds of failures`,
  );
}
