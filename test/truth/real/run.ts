// The real half of the truth harness: random schedules over the real agents; after every step, and while steps are under
// way, what agentctl says is compared with what is true.
//
//   test/agents/run test/truth/real/run.ts [--schedules N] [--seed S] [--minutes M] [--steps 25] [--bin dist/agentctl]
//   test/agents/run test/truth/real/run.ts --replay "world:0:17 open:1:4711 prompt:1:12 sigkill:1:99" [--schedules 5: so many times]
//
// What is true comes from the schedule (who was told what, whether the model holds its answer, who was killed) and from
// /proc; it shares no code with the product (scene.ts, check.ts). After a step the agent's own sign is awaited (signs.ts);
// until it comes, the old truth and the new one are both allowed. A check is one session compared in one answer.
// The last line of stdout is JSON: {tally, failures, stuck}. Exit 1 on any lie, and if no schedule came to its end.
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { addTally, emptyTally, type Lie, lieKinds, printTally } from "../tally.ts";
import { actions, onlyFor, type Plan, parsePlan, planOf, printPlan, type Run, runPlan } from "./schedule.ts";

interface Failure {
  schedule: number;
  lies: Lie[];
  steps: string;
  again: "yes" | "no" | "untried";
}

const { values: options } = parseArgs({
  options: {
    schedules: { type: "string" },
    seed: { type: "string", default: String(crypto.getRandomValues(new Uint32Array(1))[0] ?? 1) },
    steps: { type: "string", default: "25" },
    minutes: { type: "string", default: "30" },
    bin: { type: "string", default: join(import.meta.dir, "../../../dist/agentctl") },
    replay: { type: "string" },
  },
});

const mostReruns = 5;
const tell = (text: string): void => void process.stderr.write(`${text}\n`);

async function main(): Promise<number> {
  const began = performance.now();
  const isTimeLeft = () => performance.now() - began < Number(options.minutes) * 60_000;
  const folder = mkdtempSync("/tmp/bin-");
  // A copy: a build meanwhile must not change whom we ask.
  const bin = join(folder, "agentctl");
  copyFileSync(resolve(options.bin), bin);
  const tally = emptyTally();
  const failures: Failure[] = [];
  const stuck: { schedule: number; why: string; steps: string }[] = [];
  const used = new Map<string, number>();
  let ended = 0;
  tell(`truth: seed ${options.seed}`);
  try {
    for (const plan of plans()) {
      if (!isTimeLeft()) break;
      const run = await runPlan(bin, plan, tell);
      addTally(tally, run.tally);
      for (const { name } of run.steps) used.set(name, (used.get(name) ?? 0) + 1);
      if (run.stuck === null) ended += 1;
      else stuck.push({ schedule: plan.schedule, why: run.stuck, steps: printPlan(plan.worldSeed, run.steps) });
      if (run.stuck !== null) tell(`STUCK in schedule ${plan.schedule}: ${run.stuck}`);
      if (run.lies.length === 0) continue;
      tell(printLies(plan, run));
      const tryAgain = failures.length < mostReruns && options.replay === undefined && isTimeLeft();
      failures.push(tryAgain ? await again(bin, plan, run) : failureOf(plan, run, "untried"));
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  for (const { steps, again: lied } of failures)
    tell(`lied again: ${lied}; test/agents/run test/truth/real/run.ts --replay "${steps}"`);
  tell(`${printTally(tally)}\n${"seconds".padEnd(28)} ${seconds.padStart(8)}`);
  tell(
    `steps: ${[...used]
      .sort()
      .map(([name, times]) => `${name} ${times}`)
      .join(", ")}`,
  );
  tell(`never: ${[...actions.keys()].filter((name) => !used.has(name)).join(", ")}`);
  tell(`truth: ${ended} schedules came to their end, ${stuck.length} got stuck, ${failures.length} lied`);
  await Bun.write(Bun.stdout, `${JSON.stringify({ tally, failures, stuck })}\n`);
  const lies = lieKinds.reduce((sum, kind) => sum + tally[kind], 0);
  return lies > 0 || ended === 0 ? 1 : 0;
}

function plans(): Plan[] {
  const { replay } = options;
  const count = Number(options.schedules ?? (replay === undefined ? 10 : 1));
  return Array.from({ length: count }, (_none, schedule) =>
    replay === undefined ? planOf(Number(options.seed), schedule, Number(options.steps)) : parsePlan(replay),
  );
}

/** The same steps once more; if they lie again, once more with only those that concern the sessions in question. */
async function again(bin: string, plan: Plan, failed: Run): Promise<Failure> {
  const kinds = new Set(failed.lies.map(({ kind }) => kind));
  const liesAgain = async (steps: Plan["steps"]): Promise<Run | null> => {
    const run = await runPlan(bin, { ...plan, steps }, tell);
    return run.lies.some(({ kind }) => kinds.has(kind)) ? run : null;
  };
  const second = await liesAgain(failed.steps);
  if (second === null) return failureOf(plan, failed, "no");
  const fewer = onlyFor(second.steps, second.lies);
  const short = fewer.length > 0 && fewer.length < second.steps.length ? await liesAgain(fewer) : null;
  return failureOf(plan, short ?? second, "yes");
}

const failureOf = (plan: Plan, { lies, steps }: Run, lied: Failure["again"]): Failure => ({
  schedule: plan.schedule,
  lies,
  steps: printPlan(plan.worldSeed, steps),
  again: lied,
});

const printLies = (plan: Plan, run: Run): string =>
  [
    `LIE in schedule ${plan.schedule} of seed ${options.seed}`,
    ...run.lies.map(({ kind, text }) => `  ${kind}: ${text}`),
    run.evidence,
    `  --replay "${printPlan(plan.worldSeed, run.steps)}"`,
  ].join("\n");

process.exitCode = await main();
