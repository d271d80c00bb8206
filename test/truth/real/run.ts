// The truth harness with real agents: random schedules. After every step, and during steps, the answer of agentctl is compared with
// the truth.
//
//   test/agents/run test/truth/real/run.ts [--schedules N] [--seed S] [--minutes M] [--steps 25] [--bin dist/agentctl]
//   test/agents/run test/truth/real/run.ts --replay "home:0:17 open:1:4711 prompt:1:12 sigkill:1:99" [--schedules 5: repeat it 5 times]
//
// The truth comes from the schedule (the prompts, the held answers of the model, the killed processes) and from /proc; no code is
// shared with the product (simulated-host.ts, check-answer.ts). After a step the harness waits for a sign of the agent
// (signs-of-agents.ts); until then the old and the new truth are both allowed. A check is one session compared in one answer.
// The last line of stdout is JSON: {tally, failures, stuck}. The exit code is 1 after a lie, or if no schedule reached its end.
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
  // A copy, because a build during the run must not change the binary under test.
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

/** Repeats the steps; if there is a lie again, repeats only the steps of the sessions that it is about. */
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
