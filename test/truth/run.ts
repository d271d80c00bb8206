// The truth harness: random schedules over scripted agents of every format. After every step the answer of agentctl is compared
// with the truth.
//
//   bun test/truth/run.ts --schedules 200 --seed 1 [--minutes 5] [--agents scripted|real|all] [--steps 8] [--bin dist/agentctl] [--workers 2] [--cast pi,demo]
//   bun test/truth/run.ts --replay "start:1:4711 prompt:1:12 kill:1:99" [--schedules 50: repeat it 50 times]
//
// How it works
// - Each worker runs in its own pid namespace: only its processes exist there, and it can choose pids.
// - Fake agents (fake-agent.ts, the type FakeAgent) are real processes with the names of agents that only block. The harness writes their
//   records and announcements for them, so it knows the truth; they take kernel locks themselves. `simulated-host.ts` holds them,
//   `steps-*.ts` act on them, and `format-*.ts` know what each agent writes, and when.
// - The oracle (oracle.ts) allows a set of answers for each session; compare.ts reports every other answer as a lie.
//   The oracle is written from the agents' notes, the captured files and the contract, and must never import from src/.
// - compare-in-process.ts calls the product's own code and compares its result with the answer of the process.
// - A step is name:session:seed. All its choices come from its seed, so a list of steps can be replayed.
// - A check is one session compared once. The first lie ends a schedule, and steps that the lie does not need are dropped.
// - Each schedule has three agents, chosen by its first step, or those of `--cast`; sessions launched by agentctl are demo agents.
// - `--minutes` runs new schedules until the time is over. `--agents real` runs test/truth/real/run.ts instead, `all` runs both.
// - A worker that dies is reported with its signal or exit code, its last output, and a replay (run-worker.ts).
//
// Limits: nothing changes while agentctl reads; of servers only Cline's hub and OpenClaw's gateway; one home per agent.
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { sameDeviceAsRoot, whyNoNamespace } from "./namespace.ts";
import { printDeath, runWorker, type WorkerDeath } from "./run-worker.ts";
import { parseSteps } from "./schedule.ts";
import { addTally, emptyTally, liesIn, printTally } from "./tally.ts";
import { type Failure, type Order, type Progress, type Result, work } from "./worker.ts";

const repository = resolve(import.meta.dir, "../..");
/** With --minutes: the number of schedules between two looks at the clock. */
const perBatch = 20;
const realHalf = join(import.meta.dir, "real/run.ts");

const { values: options } = parseArgs({
  options: {
    schedules: { type: "string" },
    // The default is a random seed, which is printed, so that each run is different and can be repeated.
    minutes: { type: "string" },
    agents: { type: "string", default: "scripted" },
    seed: { type: "string", default: String(crypto.getRandomValues(new Uint32Array(1))[0] ?? 1) },
    steps: { type: "string", default: "8" },
    workers: { type: "string", default: "2" },
    bin: { type: "string", default: join(repository, "dist/agentctl") },
    replay: { type: "string" },
    cast: { type: "string" },
    inside: { type: "string" },
  },
});

if (options.inside === undefined) process.exitCode = await outside();
else await inside(JSON.parse(options.inside));

async function inside(order: Order): Promise<void> {
  const result = await work(order);
  await Bun.write(Bun.stdout, JSON.stringify(result));
}

async function outside(): Promise<number> {
  const refusal = await whyNot();
  if (refusal !== null) {
    console.error(`truth: cannot run: ${refusal}`);
    return 1;
  }
  console.log(`truth: seed ${options.seed}`);
  const started = performance.now();
  const results: (Result | { death: WorkerDeath })[] = [];
  if (options.agents !== "real") results.push(...(await runScripted()));
  if (options.agents !== "scripted") results.push(await runReal());
  return report(results, ((performance.now() - started) / 1000).toFixed(1));
}

async function whyNot(): Promise<string | null> {
  if (!["scripted", "real", "all"].includes(options.agents)) return "--agents is scripted, real or all.";
  if (options.agents !== "scripted" && !existsSync(realHalf)) return `there is no ${realHalf}.`;
  return existsSync(options.bin) ? await whyNoNamespace() : `there is no ${options.bin}: build it first.`;
}

async function runScripted(): Promise<(Result | { death: WorkerDeath })[]> {
  const base = mkdtempSync(join(sameDeviceAsRoot(repository), "agentctl-truth-"));
  const deadline = performance.now() + Number(options.minutes ?? 0) * 60_000;
  const results: (Result | { death: WorkerDeath })[] = [];
  const batch = options.minutes === undefined ? Number.POSITIVE_INFINITY : perBatch;
  try {
    let first = 0;
    do {
      results.push(...(await Promise.all(orders(base, first, batch).map(runOrder))));
      first += batch;
    } while (performance.now() < deadline);
    return results;
  } finally {
    rmSync(base, { recursive: true, force: true });
  }
}

/** Without --minutes all schedules at once; with it, batch after batch. */
function orders(base: string, first: number, most: number): Order[] {
  const replay = options.replay === undefined ? null : parseSteps(options.replay);
  const workers = replay === null ? Number(options.workers) : 1;
  const count = Math.min(most, Number(options.schedules ?? (replay === null ? 200 : 1)));
  const all = Array.from({ length: options.minutes === undefined ? count : most }, (_none, index) => first + index);
  return Array.from({ length: workers }, (_none, worker) => ({
    base: join(base, `worker-${worker}`),
    bin: resolve(options.bin),
    seed: Number(options.seed),
    steps: Number(options.steps),
    schedules: all.filter((schedule) => schedule % workers === worker),
    replay,
    cast: options.cast?.split(",") ?? null,
  }));
}

async function runOrder(order: Order): Promise<Result | { death: WorkerDeath }> {
  const self = [process.execPath, import.meta.path, "--inside", JSON.stringify(order)];
  const ended = await runWorker(self, order.base);
  return "death" in ended ? ended : JSON.parse(ended.output);
}

/** The last line of its stdout is the result; everything else goes to stderr. It runs in test/agents/run and prints its own replays. */
async function runReal(): Promise<Result> {
  const passed = (["seed", "schedules", "minutes", "bin"] as const).flatMap((name) => {
    const value = name === "bin" ? resolve(options.bin) : options[name];
    return value === undefined ? [] : [`--${name}`, value];
  });
  const command = [join(repository, "test/agents/run"), realHalf, ...passed];
  const child = Bun.spawn(command, { cwd: repository, stdin: "ignore", stdout: "pipe", stderr: "inherit" });
  const [text] = await Promise.all([child.stdout.text(), child.exited]);
  const last = text.trimEnd().split("\n").at(-1) ?? "";
  if (!last.startsWith("{")) throw new Error(`truth: the real half ended with ${child.exitCode} and no answer`);
  const { tally, failures, stuck }: Result & { stuck: unknown[] } = JSON.parse(last);
  if (stuck.length > 0)
    console.log(`${stuck.length} real schedules got stuck because an agent gave no sign; their earlier checks count`);
  return { tally, failures: failures.map((failure) => ({ ...failure, half: "real" })) };
}

function report(all: (Result | { death: WorkerDeath })[], seconds: string): number {
  const tally = emptyTally();
  const results = all.flatMap((each) => ("death" in each ? [] : [each]));
  const deaths = all.flatMap((each) => ("death" in each ? [each.death] : []));
  for (const result of results) addTally(tally, result.tally);
  const failures = results.flatMap((result) => result.failures).sort((a, b) => a.schedule - b.schedule);
  for (const failure of failures) console.log(printFailure(failure));
  for (const death of deaths) console.log(printDeath(death, replayOfDeath));
  const failed = Math.max(tally.checks - tally.passed, liesIn(tally)) + deaths.length;
  console.log(`${printTally(tally)}\n${"seconds".padEnd(28)} ${seconds.padStart(8)}`);
  if (tally["pid reuses skipped"] > 0)
    console.log("some pid reuses were skipped: the kernel did not give the pid asked for");
  console.log(`truth: ${tally.passed} passed, ${failed} failed`);
  return failed > 0 || failures.length > 0 || tally.checks === 0 ? 1 : 0;
}

function printFailure(failure: Failure): string {
  const afterwards = {
    yes: "replay:",
    no: "the same steps gave a right answer the second time; add --schedules 50 to this replay to repeat it more often",
    untried: "not shortened, because there were enough lies before; replay:",
  };
  const program = "half" in failure ? "test/agents/run test/truth/real/run.ts" : "bun test/truth/run.ts";
  return [
    `LIE in schedule ${failure.schedule} of seed ${options.seed} (${options.steps} steps)`,
    ...failure.lies.map(({ kind, text }) => `  ${kind}: ${text}`),
    ...failure.steps.split(" ").map((step, index) => `  ${String(index + 1).padStart(2)}. ${step}`),
    `  ${afterwards[failure.again]}`,
    `  ${replayOf(failure.steps, program)}`,
    "",
  ].join("\n");
}

function replayOf(steps: string, program = "bun test/truth/run.ts"): string {
  const cast = options.cast === undefined ? "" : `--cast ${options.cast} `;
  return `${program} --seed ${options.seed} --bin ${options.bin} ${cast}--replay "${steps}"`;
}

function replayOfDeath(progress: string): string {
  const { schedule, steps }: Progress = JSON.parse(progress);
  return `  in schedule ${schedule} of seed ${options.seed} (${options.steps} steps); replay:\n  ${replayOf(steps)}`;
}
