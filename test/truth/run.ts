// The truth harness: random schedules over scripted agents of every format; after every step, what agentctl says is compared
// with what is true.
//
//   bun test/truth/run.ts --schedules 200 --seed 1 [--minutes 5] [--agents scripted|real|all] [--steps 8] [--bin dist/agentctl] [--workers 2] [--cast pi,demo]
//   bun test/truth/run.ts --replay "start:1:4711 prompt:1:12 kill:1:99" [--schedules 50: so many times]
//
// How it works
// - Each worker runs in a pid namespace of its own: only its processes exist there, and pids can be chosen.
// - Twins (twin.ts) are real processes under the agents' names that only block. The harness writes their records and
//   announcements for them, so it knows what is true; kernel locks they take themselves. `world.ts` holds them,
//   `steps-*.ts` act on them, `format-*.ts` know what each agent writes, and when.
// - The oracle (oracle.ts) allows a set of answers per session; compare.ts names each answer outside of it.
//   It is written from the agents' notes, captured files and the contract alone and must never import from src/.
// - in-process.ts asks the product's own code the same question and compares it with the process's answer.
// - A step is name:session:seed. All its choices come from its seed, so a list of steps is a replay.
// - A check is one session compared. The first lie ends a schedule; its steps are shortened by dropping what is not needed.
// - Each schedule plays three agents, drawn by its first step, or those of `--cast`; agentctl's own launches are demo agents.
// - `--minutes` draws fresh schedules until the time is over. `--agents real` runs test/truth/real/run.ts instead, `all` both.
//
// What it does not do: nothing changes while agentctl looks (each answer is about a world at rest); of hosts only Cline's hub and
// OpenClaw's gateway; one home per agent.
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { outputInNamespace, sameDeviceAsRoot, whyNoNamespace } from "./namespace.ts";
import { parseSteps } from "./schedule.ts";
import { addTally, emptyTally, liesIn, printTally } from "./tally.ts";
import { type Failure, type Order, type Result, work } from "./worker.ts";

const repository = resolve(import.meta.dir, "../..");
/** With --minutes: so many schedules before the clock is looked at again. */
const perBatch = 20;
const realHalf = join(import.meta.dir, "real/run.ts");

const { values: options } = parseArgs({
  options: {
    schedules: { type: "string" },
    // Without one: a fresh seed, printed, so that every run looks elsewhere and can be repeated.
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
  const results: Result[] = [];
  if (options.agents !== "real") results.push(...(await runScripted()));
  if (options.agents !== "scripted") results.push(await runReal());
  return report(results, ((performance.now() - started) / 1000).toFixed(1));
}

async function whyNot(): Promise<string | null> {
  if (!["scripted", "real", "all"].includes(options.agents)) return "--agents is scripted, real or all.";
  if (options.agents !== "scripted" && !existsSync(realHalf)) return `there is no ${realHalf}.`;
  return existsSync(options.bin) ? await whyNoNamespace() : `there is no ${options.bin}: build it first.`;
}

async function runScripted(): Promise<Result[]> {
  const base = mkdtempSync(join(sameDeviceAsRoot(repository), "agentctl-truth-"));
  const deadline = performance.now() + Number(options.minutes ?? 0) * 60_000;
  const results: Result[] = [];
  const batch = options.minutes === undefined ? Number.POSITIVE_INFINITY : perBatch;
  try {
    let first = 0;
    do {
      const workers = orders(base, first, batch).map(runWorker);
      // The folder must outlive every worker, also when one of them fails.
      await Promise.allSettled(workers);
      results.push(...(await Promise.all(workers)));
      first += batch;
    } while (performance.now() < deadline);
    return results;
  } finally {
    rmSync(base, { recursive: true, force: true });
  }
}

/** Without --minutes as many as asked for; with it, batch after batch. */
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

async function runWorker(order: Order): Promise<Result> {
  const self = [process.execPath, import.meta.path, "--inside", JSON.stringify(order)];
  return JSON.parse(await outputInNamespace(self));
}

/** Its talk goes to stderr; the last line of its stdout is the answer. It needs test/agents/run, and prints its own replays. */
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
    console.log(`${stuck.length} real schedules got stuck: an agent gave no sign; their checks until then count`);
  return { tally, failures: failures.map((failure) => ({ ...failure, half: "real" })) };
}

function report(results: Result[], seconds: string): number {
  const tally = emptyTally();
  for (const result of results) addTally(tally, result.tally);
  const failures = results.flatMap((result) => result.failures).sort((a, b) => a.schedule - b.schedule);
  for (const failure of failures) console.log(printFailure(failure));
  const failed = Math.max(tally.checks - tally.passed, liesIn(tally));
  console.log(`${printTally(tally)}\n${"seconds".padEnd(28)} ${seconds.padStart(8)}`);
  if (tally["pid reuses skipped"] > 0)
    console.log("some pid reuses were skipped: the kernel did not give the pid asked for");
  console.log(`truth: ${tally.passed} passed, ${failed} failed`);
  return failed > 0 || failures.length > 0 || tally.checks === 0 ? 1 : 0;
}

function printFailure(failure: Failure): string {
  const afterwards = {
    yes: "replay:",
    no: "the same steps told the truth the second time: add --schedules 50 to this replay to meet it again",
    untried: "not shortened, as there were enough before; replay:",
  };
  const program = "half" in failure ? "test/agents/run test/truth/real/run.ts" : "bun test/truth/run.ts";
  const cast = options.cast === undefined ? "" : `--cast ${options.cast} `;
  const replay = `${program} --seed ${options.seed} --bin ${options.bin} ${cast}--replay "${failure.steps}"`;
  return [
    `LIE in schedule ${failure.schedule} of seed ${options.seed} (${options.steps} steps)`,
    ...failure.lies.map(({ kind, text }) => `  ${kind}: ${text}`),
    ...failure.steps.split(" ").map((step, index) => `  ${String(index + 1).padStart(2)}. ${step}`),
    `  ${afterwards[failure.again]}`,
    `  ${replay}`,
    "",
  ].join("\n");
}
