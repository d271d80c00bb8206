// The truth harness: random schedules over scripted demo agents; after every step, what agentctl says is compared with
// what is true.
//
//   bun test/truth/run.ts --schedules 200 --seed 1 [--steps 8] [--bin dist/agentctl] [--workers 2]
//   bun test/truth/run.ts --replay "start:1:4711 prompt:1:12 kill:1:99" [--schedules 50: so many times]
//
// How it works
// - Each worker runs in a pid namespace of its own: only its processes exist there, and pids can be chosen.
// - Twins (twin.ts) are real processes named demo-agent that only block. The harness writes their records and
//   announcements for them, so it knows what is true. `world.ts` holds them, `steps-*.ts` act on them.
// - The oracle (oracle.ts) allows a set of answers per session; compare.ts names each answer outside of it.
//   It is written from the format page and the contract alone and must never import from src/.
// - A step is name:session:seed. All its choices come from its seed, so a list of steps is a replay.
// - A check is one session compared. The first lie ends a schedule; its steps are shortened by dropping what is not needed.
//
// What it does not do: nothing changes while agentctl looks (each answer is about a world at rest); no hosts; one home.
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { outputInNamespace, sameDeviceAsRoot, whyNoNamespace } from "./namespace.ts";
import { parseSteps } from "./schedule.ts";
import { addTally, emptyTally, lieKinds, printTally } from "./tally.ts";
import { type Failure, type Order, type Result, work } from "./worker.ts";

const repository = resolve(import.meta.dir, "../..");

const { values: options } = parseArgs({
  options: {
    schedules: { type: "string" },
    // Without one: a fresh seed, printed, so that every run looks elsewhere and can be repeated.
    seed: { type: "string", default: String(crypto.getRandomValues(new Uint32Array(1))[0] ?? 1) },
    steps: { type: "string", default: "8" },
    workers: { type: "string", default: "2" },
    bin: { type: "string", default: join(repository, "dist/agentctl") },
    replay: { type: "string" },
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
  const refusal = existsSync(options.bin) ? await whyNoNamespace() : `there is no ${options.bin}: build it first.`;
  if (refusal !== null) {
    console.error(`truth: cannot run: ${refusal}`);
    return 1;
  }
  console.log(`truth: seed ${options.seed}`);
  const base = mkdtempSync(join(sameDeviceAsRoot(repository), "agentctl-truth-"));
  const started = performance.now();
  try {
    const workers = orders(base).map(runWorker);
    // The folder must outlive every worker, also when one of them fails.
    await Promise.allSettled(workers);
    const results = await Promise.all(workers);
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    return report(results, seconds);
  } finally {
    rmSync(base, { recursive: true, force: true });
  }
}

function orders(base: string): Order[] {
  const replay = options.replay === undefined ? null : parseSteps(options.replay);
  const workers = replay === null ? Number(options.workers) : 1;
  const count = Number(options.schedules ?? (replay === null ? 200 : 1));
  const all = Array.from({ length: count }, (_none, index) => index);
  return Array.from({ length: workers }, (_none, worker) => ({
    base: join(base, `worker-${worker}`),
    bin: resolve(options.bin),
    seed: Number(options.seed),
    steps: Number(options.steps),
    schedules: all.filter((schedule) => schedule % workers === worker),
    replay,
  }));
}

async function runWorker(order: Order): Promise<Result> {
  const self = [process.execPath, import.meta.path, "--inside", JSON.stringify(order)];
  return JSON.parse(await outputInNamespace(self));
}

function report(results: Result[], seconds: string): number {
  const tally = emptyTally();
  for (const result of results) addTally(tally, result.tally);
  const failures = results.flatMap((result) => result.failures).sort((a, b) => a.schedule - b.schedule);
  for (const failure of failures) console.log(printFailure(failure));
  const failed = Math.max(
    tally.checks - tally.passed,
    lieKinds.reduce((sum, kind) => sum + tally[kind], 0),
  );
  console.log(`${printTally(tally)}\n${"seconds".padEnd(28)} ${seconds.padStart(8)}`);
  if (tally["pid reuses skipped"] > 0)
    console.log("some pid reuses were skipped: the kernel did not give the pid asked for");
  console.log(`truth: ${tally.passed} passed, ${failed} failed`);
  return failed > 0 || tally.checks === 0 ? 1 : 0;
}

function printFailure(failure: Failure): string {
  const afterwards = {
    yes: "replay:",
    no: "the same steps told the truth the second time: add --schedules 50 to this replay to meet it again",
    untried: "not shortened, as there were enough before; replay:",
  };
  const replay = `bun test/truth/run.ts --seed ${options.seed} --bin ${options.bin} --replay "${failure.steps}"`;
  return [
    `LIE in schedule ${failure.schedule} of seed ${options.seed} (${options.steps} steps)`,
    ...failure.lies.map(({ kind, text }) => `  ${kind}: ${text}`),
    ...failure.steps.split(" ").map((step, index) => `  ${String(index + 1).padStart(2)}. ${step}`),
    `  ${afterwards[failure.again]}`,
    `  ${replay}`,
    "",
  ].join("\n");
}
