// The worktree harness: random commands of agentctl in random repositories, killed and disturbed at random moments. Every byte of
// work that existed before must exist afterwards, in a place that git shows.
//
//   bun test/worktrees/run.ts --schedules 200 --seed 1 [--binary dist/agentctl] [--workers 2]
//   bun test/worktrees/run.ts --replay 4711 [--keep]     repeats one schedule, by the number that its loss printed
//
// It uses agentctl's commands and none of its code. docs/worktrees-harness.md describes the random choices and what counts as lost.
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { sameDeviceAsRoot, whyNoNamespace } from "../truth/namespace.ts";
import { seedOf } from "../truth/random.ts";
import { printDeath, runWorker, type WorkerDeath } from "../truth/run-worker.ts";
import { type Counts, type Failure, type Order, type Result, work } from "./worker.ts";

const repository = resolve(import.meta.dir, "../..");

/** A worker is root in its namespace; without these capabilities it still cannot read a folder without permissions. */
const withoutOverride = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"];

const { values: options } = parseArgs({
  options: {
    schedules: { type: "string", default: "200" },
    // The default is a random seed, which is printed, so that each run is different and can be repeated.
    seed: { type: "string", default: String(crypto.getRandomValues(new Uint32Array(1))[0] ?? 1) },
    workers: { type: "string", default: "2" },
    binary: { type: "string", default: process.env["AGENTCTL_BINARY"] ?? join(repository, "dist/agentctl") },
    replay: { type: "string" },
    keep: { type: "boolean", default: false },
    inside: { type: "string" },
  },
});

if (options.inside === undefined) process.exitCode = await outside();
else await Bun.write(Bun.stdout, JSON.stringify(await work(JSON.parse(options.inside))));

async function outside(): Promise<number> {
  const refusal = existsSync(options.binary)
    ? await whyNoNamespace()
    : `there is no ${options.binary}: build it first.`;
  if (refusal !== null) {
    console.error(`worktrees: cannot run: ${refusal}`);
    return 1;
  }
  if (options.replay === undefined) console.log(`worktrees: seed ${options.seed}`);
  const started = performance.now();
  const base = mkdtempSync(join(sameDeviceAsRoot(repository), "agentctl-worktrees-"));
  try {
    const results = await Promise.all(orders(base).map(runOrder));
    return report(results, ((performance.now() - started) / 1000).toFixed(1));
  } finally {
    if (!options.keep) rmSync(base, { recursive: true, force: true });
  }
}

function orders(base: string): Order[] {
  const seeds =
    options.replay === undefined
      ? Array.from({ length: Number(options.schedules) }, (_none, index) => seedOf(Number(options.seed), index))
      : [Number(options.replay)];
  const workers = Math.min(Number(options.workers), seeds.length);
  return Array.from({ length: workers }, (_none, worker) => ({
    base: join(base, `worker-${worker}`),
    binary: resolve(options.binary),
    seeds: seeds.filter((_seed, index) => index % workers === worker),
    keep: options.keep,
  }));
}

async function runOrder(order: Order): Promise<Result | { death: WorkerDeath }> {
  const self = [process.execPath, import.meta.path, "--inside", JSON.stringify(order)];
  const ended = await runWorker([...withoutOverride, ...self], order.base);
  return "death" in ended ? ended : JSON.parse(ended.output);
}

function report(all: (Result | { death: WorkerDeath })[], seconds: string): number {
  const results = all.flatMap((each) => ("death" in each ? [] : [each]));
  const deaths = all.flatMap((each) => ("death" in each ? [each.death] : []));
  const failures = results.flatMap((result) => result.failures);
  for (const failure of failures) console.log(printFailure(failure));
  const counts: Partial<Counts> = {};
  for (const result of results)
    for (const [name, count] of Object.entries(result.counts) as [keyof Counts, number][])
      counts[name] = (counts[name] ?? 0) + count;
  const losses = failures.flatMap((failure) => failure.losses);
  const kinds = new Map<string, number>();
  for (const kind of failures.flatMap((failure) => [...new Set(failure.losses.map((loss) => loss.kind))]))
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  const row = ([name, count]: [string, number | string]) => `${name.padEnd(52)} ${String(count).padStart(8)}`;
  console.log(
    Object.entries({ ...counts, losses: losses.length, seconds })
      .map(row)
      .join("\n"),
  );
  if (kinds.size > 0)
    console.log(
      ["", row(["kind of loss", "schedules"]), ...[...kinds].sort(([, a], [, b]) => b - a).map(row)].join("\n"),
    );
  const { schedules = 0 } = counts;
  for (const death of deaths)
    console.log(printDeath(death, (seed) => `  in the schedule ${seed}; replay:\n  ${replayOf(seed)}`));
  const failed = failures.length + deaths.length;
  console.log(`worktrees: ${schedules - failures.length} passed, ${failed} failed`);
  return failed > 0 || schedules === 0 ? 1 : 0;
}

function printFailure({ seed, losses, story, root }: Failure): string {
  return [
    `LOSS in the schedule ${seed}`,
    ...losses.map(({ kind, text }) => `  ${kind}: ${text.replaceAll("\n", "\\n")}`),
    ...story.map((line) => `    ${line}`),
    `  ${replayOf(seed)}`,
    ...(options.keep ? [`  its folder: ${root}`] : []),
    "",
  ].join("\n");
}

function replayOf(seed: number | string): string {
  return `bun test/worktrees/run.ts --binary ${options.binary} --replay ${seed} --keep`;
}
