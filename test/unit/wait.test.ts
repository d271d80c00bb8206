// waitFor with looks that the test controls: it misses no change between a look and a watch, and does not look without need.
import { expect, test } from "bun:test";
import { appendFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor } from "../../src/control/wait.ts";
import type { Session } from "../../src/core/session.ts";
import { pause } from "../../src/lib/deadline.ts";

class Folder implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), "agentctl-wait-"));
  readonly record = join(this.path, "sessions/record.jsonl");

  constructor() {
    mkdirSync(join(this.path, "sessions"));
    writeFileSync(this.record, "");
  }

  session(status: Session["status"] = working): Session {
    const facts = { model: null, title: null, prompt: null, branch: null, agentVersion: null, permission: null };
    const counted = { denied: null, tokens: null, costUsd: null };
    return {
      ...{
        agent: "demo",
        home: this.path,
        id: "x",
        status,
        reason: null,
        since: null,
        waiting: null,
        background: null,
      },
      ...{ cwd: null, startedAt: null, updatedAt: null, endedAt: null, parent: null, continuedBy: null, job: null },
      ...{ processes: [], conflicts: [], evidence: [], wouldChange: [] },
      record: {
        ...{ id: "x", source: this.record, cwd: null, createdAt: null, lastMessageAt: null, writtenAt: null },
        ...{ turn: { state: "none" }, waiting: null, pending: null, subagentOf: null, background: null, parent: null },
        ...{ continuedBy: null, facts: { ...facts, ...counted }, skippedLines: 0, torn: false, unknownLines: 0 },
      },
    };
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true });
  }
}

const working: Session["status"] = {
  state: "running",
  owner: { kind: "process", processes: [], link: "announced" },
  activity: "working",
};

/** Far below the sweep of ten seconds. */
const soonMs = 2_000;

const timed = async <T>(act: Promise<T>): Promise<{ value: T; ms: number }> => {
  const begun = performance.now();
  const value = await act;
  return { value, ms: performance.now() - begun };
};

test("a condition that is true at once takes one look", async () => {
  let looks = 0;
  const answer = await waitFor({
    look: async () => ++looks,
    isEnough: () => true,
    sessions: () => [],
    timeoutMs: 0,
  });
  expect([answer, looks]).toEqual([{ value: 1, isEnough: true }, 1]);
});

test("a change between the first look and the watch is not missed", async () => {
  using folder = new Folder();
  let changed = false;
  const { value, ms } = await timed(
    waitFor({
      look: async () => changed,
      // Right after the look: nothing is watched yet.
      isEnough: (seen) => {
        changed = true;
        return seen;
      },
      sessions: () => [folder.session()],
      timeoutMs: null,
    }),
  );
  expect(value).toEqual({ value: true, isEnough: true });
  expect(ms).toBeLessThan(soonMs);
});

test("a change of the record ends the sleep", async () => {
  using folder = new Folder();
  const looks: number[] = [];
  const { ms } = await timed(
    waitFor({
      look: async () => looks.push(performance.now()),
      isEnough: (count) => {
        if (count === 2) setTimeout(() => appendFileSync(folder.record, "x"), 200);
        return count > 2;
      },
      sessions: () => [folder.session()],
      timeoutMs: null,
    }),
  );
  expect(ms).toBeGreaterThan(200);
  expect(ms).toBeLessThan(soonMs);
});

test("a record that is created three missing folders deep is noticed", async () => {
  using folder = new Folder();
  const home = join(folder.path, "a/b");
  const session: Session = { ...folder.session(), home, record: null };
  let made = false;
  setTimeout(() => {
    mkdirSync(join(home, "sessions"), { recursive: true });
    made = true;
  }, 200);
  const { ms } = await timed(
    waitFor({ look: async () => made, isEnough: (seen) => seen, sessions: () => [session], timeoutMs: null }),
  );
  expect(ms).toBeLessThan(800);
});

test("a timeout ends the wait in time, after few looks", async () => {
  using folder = new Folder();
  let looks = 0;
  const told: number[] = [];
  const { value, ms } = await timed(
    waitFor({
      look: async () => ++looks,
      isEnough: () => false,
      sessions: () => [folder.session()],
      timeoutMs: 500,
      tell: (look) => told.push(look),
    }),
  );
  expect([value, told]).toEqual([{ value: 3, isEnough: false }, [1, 2]]);
  expect(ms).toBeGreaterThanOrEqual(500);
  expect(ms).toBeLessThan(500 + soonMs);
});

test("a condition that is true for now ends the wait if it stays true or at the timeout", async () => {
  using folder = new Folder();
  const ask = (answers: (false | "for now")[], timeoutMs: number | null) =>
    timed(
      waitFor({
        look: async () => answers.shift(),
        isEnough: (answer) => answer ?? "for now",
        sessions: () => [folder.session()],
        timeoutMs,
      }),
    );
  const stays = await ask([], null);
  expect(stays.value.isEnough).toBe(true);
  expect(stays.ms).toBeGreaterThan(1_000);
  expect((await ask([], 100)).value.isEnough).toBe(true);
  expect((await ask(["for now", "for now", false, false, false], 100)).value.isEnough).toBe(false);
});

test.each([
  ["unknown", { state: "unknown", why: { code: "out-of-sight" } }],
  ["in a server", { ...working, owner: { kind: "server", process: null, address: "" } }],
] as const)(
  "a session that is %s is checked again within about a second, even without a notice",
  async (_name, status) => {
    using folder = new Folder();
    let looks = 0;
    const { ms } = await timed(
      waitFor({
        look: async () => ++looks,
        isEnough: (count) => count > 2,
        sessions: () => [folder.session(status)],
        timeoutMs: null,
      }),
    );
    expect(ms).toBeLessThan(soonMs);
  },
);

test("a record that is written constantly does not cause constant looks", async () => {
  using folder = new Folder();
  let looks = 0;
  const writing = setInterval(() => appendFileSync(folder.record, "x"), 5);
  await waitFor({
    look: async () => {
      looks += 1;
      await pause(50);
    },
    isEnough: () => false,
    sessions: () => [folder.session()],
    timeoutMs: 1_500,
  });
  clearInterval(writing);
  // Each costs 50 ms: at most a quarter of the time is spent on them.
  expect(looks).toBeLessThanOrEqual(10);
});

test("no descriptor stays open, and the error of a look is thrown", async () => {
  using folder = new Folder();
  const files = () => readdirSync("/proc/self/fd").length;
  const before = files();
  let looks = 0;
  const failing = waitFor({
    look: async () => {
      looks += 1;
      if (looks === 3) throw new Error("cannot look");
      appendFileSync(folder.record, "x");
    },
    isEnough: () => false,
    sessions: () => [folder.session()],
    timeoutMs: null,
  });
  expect(failing).rejects.toThrow("cannot look");
  await failing.catch(() => {});
  expect(files()).toBe(before);
});
