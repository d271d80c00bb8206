// A command that waits really sleeps: its wake-ups are counted. It still reacts at once when something happens.
import { expect, test } from "bun:test";
import { appendFileSync, readFileSync } from "node:fs";
import { type RunningCommand, recordPath, ServerTestHome, until } from "../cli/test-home-servers.ts";

/** How often its main thread went to sleep. */
const naps = ({ pid }: RunningCommand): number =>
  Number(/^voluntary_ctxt_switches:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/task/${pid}/status`, "utf8"))?.[1]);

/** How many calls it has made to read something, from files, pipes and the kernel. */
const reads = ({ pid }: RunningCommand): number =>
  Number(/^syscr:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, "utf8"))?.[1]);

/** It has done what it does at its start: for a while it has not read anything. */
async function rested(begun: RunningCommand): Promise<void> {
  let before = -1;
  await until("its rest", async () => {
    if (begun.isOver) throw new Error(`it did not wait: ${JSON.stringify(await begun.answer())}`);
    const now = reads(begun);
    const isQuiet = now === before;
    before = now;
    if (!isQuiet) await Bun.sleep(300);
    return isQuiet;
  });
}

const idleMs = 2_000;
/** Both look every ten seconds anyway, so an answer this soon comes from a notification. */
const soonMs = 4_000;

async function soon(what: string, condition: () => boolean): Promise<void> {
  const begun = performance.now();
  await until(what, condition);
  expect(performance.now() - begun).toBeLessThan(soonMs);
}

test("wait and logs -f sleep until something happens", async () => {
  await using stage = new ServerTestHome();
  const agent = stage.start(["prompt:x", "work:600"]);
  await stage.until(agent.id, "working");
  const waiting = stage.begin("wait", agent.id);
  const following = stage.begin("logs", "-f", agent.id);
  const both = [waiting, following];
  await Promise.all(both.map(rested));

  const before = both.map((each) => ({ naps: naps(each), reads: reads(each) }));
  await Bun.sleep(idleMs);
  for (const [at, each] of both.entries()) {
    expect(naps(each) - (before[at]?.naps ?? 0)).toBeLessThan(10);
    // The runtime looks at its own memory now and then.
    expect(reads(each) - (before[at]?.reads ?? 0)).toBeLessThan(10);
  }

  const line = { type: "reply", at: new Date().toISOString(), text: "there is something to say" };
  appendFileSync(recordPath(stage, agent.id), `${JSON.stringify(line)}\n`);
  await soon("the line", () => following.out.includes(line.text));
  await agent.end("SIGKILL");
  await soon("the end", () => waiting.isOver);
  expect(await waiting.answer()).toMatchObject({ code: 10 });
  following.kill("SIGTERM");
  await following.answer();
});

test("writes of other sessions to the same folder do not wake wait", async () => {
  await using stage = new ServerTestHome();
  const agent = stage.start(["prompt:x", "work:600"]);
  const other = stage.start(["prompt:y", "work:600"]);
  for (const { id } of [agent, other]) await stage.until(id, "working");
  const waiting = stage.begin("wait", agent.id);
  await rested(waiting);
  const before = reads(waiting);
  for (let count = 0; count < 10; count += 1) {
    appendFileSync(recordPath(stage, other.id), `${JSON.stringify({ type: "reply", text: `line ${count}` })}\n`);
    await Bun.sleep(20);
  }
  await Bun.sleep(200);
  // One for each word of the kernel, which it reads and passes over; a look would be dozens.
  expect(reads(waiting) - before).toBeLessThan(25);
  await agent.end("SIGKILL");
  await soon("the end", () => waiting.isOver);
});
