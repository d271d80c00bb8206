// Counting on from the last count: only what was added is read, and whatever happened to the record or to what was kept of
// it, the answer is that of a count from the beginning.
import { afterAll, describe, expect, test } from "bun:test";
import {
  appendFileSync,
  chmodSync,
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { claudeCode } from "../../src/agents/claude-code/index.ts";
import { demo } from "../../src/agents/demo/index.ts";
import { pi as piAdapter } from "../../src/agents/pi/index.ts";
import { qwen } from "../../src/agents/qwen/index.ts";
import type { RecordPlace } from "../../src/observe/conversation.ts";
import { wantsCache } from "../../src/observe/homes.ts";
import { recordAt } from "../../src/observe/records.ts";
import { type CountingTools, readCounts, readTotals } from "../../src/observe/usage/read-counts.ts";
import { type CountsFolder, openCountsFolder } from "../../src/observe/usage/saved-counts.ts";

const root = mkdtempSync(join(tmpdir(), "agentctl-counts-"));
afterAll(() => rmSync(root, { recursive: true }));
let made = 0;

const minute = 60_000;

/** A record, what is kept of it, and how much of it a count reads. */
class GrowingRecord {
  readonly folder = join(root, String(++made));
  readonly path = join(this.folder, "11111111-1111-4111-8111-111111111111.jsonl");
  readonly cache: CountsFolder = {
    folder: join(this.folder, "cache", "totals"),
    build: "one",
    leastBytes: 0,
    newestKeys: 2,
  };
  readonly place: RecordPlace = {
    adapter: claudeCode,
    home: this.folder,
    file: recordAt(claudeCode, this.path, "11111111-1111-4111-8111-111111111111"),
  };
  bytesRead = 0;

  constructor(text: string) {
    mkdirSync(this.folder);
    writeFileSync(this.path, text);
  }

  /** By a clock that is ahead, a file that was just written has been left alone for long. */
  count({ aheadMs = 0, cache = this.cache }: { aheadMs?: number; cache?: CountsFolder | null } = {}) {
    const means: CountingTools = {
      read: (...args) => {
        const got = readSync(...args);
        this.bytesRead += got;
        return got;
      },
      now: () => Date.now() + aheadMs,
    };
    this.bytesRead = 0;
    return readCounts(this.place, cache, means);
  }

  /** The answer is the right one; says how much was read for it. */
  check(options: Parameters<GrowingRecord["count"]>[0] = {}): number {
    const { tokens, byModel, denied, costUsd } = readTotals(this.place);
    expect(this.count(options)).toEqual({ tokens, byModel, denied, costUsd });
    return this.bytesRead;
  }

  get kept(): string {
    const [name = "", more] = readdirSync(this.cache.folder);
    expect(more).toBeUndefined();
    return join(this.cache.folder, name);
  }
}

const said = (id: string, output: number, text = "words"): string =>
  `${JSON.stringify({
    ...{ type: "assistant", isSidechain: false },
    message: { id, model: "claude-opus-4-5", content: [{ type: "text", text }], usage: { output_tokens: output } },
  })}\n`;
const cost = (usd: number): string => `${JSON.stringify({ type: "cost-state", totalCostUSD: usd })}\n`;
const result = (text: string, isError = false): string =>
  `${JSON.stringify({
    type: "user",
    message: { role: "user", content: [{ type: "tool_result", content: text, is_error: isError }] },
  })}\n`;
const denied = result("This command requires approval", true);

const large = Array.from({ length: 400 }, (_, index) => said(`m${index}`, index) + result("x".repeat(10_000))).join("");

describe("a record that was counted before", () => {
  test("is read from the end of the last count", () => {
    const record = new GrowingRecord(large);
    expect(record.check()).toBeGreaterThan(large.length);
    for (const more of [said("m399", 7), result("y".repeat(50_000)), denied, cost(0.5), said("new", 1), '{"half'])
      for (const _again of [1, 2]) {
        appendFileSync(record.path, more);
        // Finding the end of the lines reads the same bytes again; two places are checked, with four small reads around them.
        expect(record.check()).toBeLessThanOrEqual(2 * more.length + 6 * 4096);
      }
  });

  test("is read whole once if an old message reappears; every message is kept from then on", () => {
    const record = new GrowingRecord(large);
    record.check();
    const { size } = statSync(record.kept);
    for (const [more, isOld] of [
      [said("new", 1), false],
      [said("m1", 7), true],
      [said("m2", 7) + said("m1", 8), false],
    ] as const) {
      appendFileSync(record.path, more);
      expect(record.check() > large.length).toBe(isOld);
    }
    expect(statSync(record.kept).size).toBeGreaterThan(5 * size);
  });

  test("is not read if nothing was added", () => {
    const record = new GrowingRecord(large);
    record.check({ aheadMs: minute });
    expect(record.check()).toBe(0);
    expect(record.check()).toBe(0);
  });

  test("is read whole if it was written a moment ago, because its times may hide another change", () => {
    const record = new GrowingRecord(large);
    record.check();
    expect(record.check()).toBeGreaterThan(large.length);
  });

  test("is read from the end of the last count together with its subagents' records", () => {
    const record = new GrowingRecord(large);
    const folder = join(record.path.replace(".jsonl", ""), "subagents");
    mkdirSync(folder, { recursive: true });
    const subagent = join(folder, "agent-1.jsonl");
    writeFileSync(subagent, large.replaceAll('"m', '"sub'));
    record.check({ aheadMs: minute });
    expect(record.check()).toBe(0);
    appendFileSync(subagent, said("sub5", 1_000_000) + said("last", 1));
    expect(record.check({ aheadMs: minute })).toBeLessThan(30_000);
    // A message that the session's own record has, too: all of its messages are needed, from now on.
    appendFileSync(subagent, said("m5", 1_000_000));
    expect(record.check({ aheadMs: minute })).toBeGreaterThan(large.length);
    appendFileSync(record.path, said("m6", 1_000_000));
    expect(record.check({ aheadMs: minute })).toBeLessThan(30_000);
    rmSync(subagent);
    expect(record.check()).toBe(0);
  });
});

describe("a record is counted from its start", () => {
  // The middle is far from both ends, which are looked at again.
  const far = result("x".repeat(10_000));
  const text = said("a", 1) + cost(3) + far + said("b", 2) + denied + far + said("c", 3);
  const other = said("a", 9) + cost(4) + said("d", 2) + result("fine", true) + said("c", 3);
  const changes: [name: string, (path: string) => void][] = [
    ["cut", (path) => truncateSync(path, said("a", 1).length)],
    ["emptied", (path) => truncateSync(path, 0)],
    ["is cut and then longer than before", (path) => writeFileSync(path, other + text)],
    ["replaced by a longer one", (path) => replace(path, other + text)],
    ["replaced by one of the same length", (path) => replace(path, text.replace("approval", "patience"))],
    [
      "replaced by one with another middle, and grown",
      (path) => replace(path, text.replace('tokens":2', 'tokens":7') + said("more", 5)),
    ],
    ["written over in place, as long as before", (path) => overwrite(path, text.replaceAll('"a"', '"c"'))],
    ["one byte changed", (path) => overwrite(path, text.replace('tokens":2', 'tokens":7'))],
    [
      "one byte changed, and its time set back",
      (path) => {
        const { atime, mtime } = statSync(path);
        overwrite(path, text.replace('tokens":2', 'tokens":7'));
        utimesSync(path, atime, mtime);
      },
    ],
    [
      "its beginning changed, and grown",
      (path) => overwrite(path, text.replace('tokens":1', 'tokens":7') + said("more", 5)),
    ],
    ["its end changed, and grown", (path) => overwrite(path, text.replace('tokens":3', 'tokens":7') + said("more", 5))],
  ];
  for (const aheadMs of [0, minute])
    test.each(changes)(`%s, counted ${aheadMs === 0 ? "at once" : "after a while"} before`, async (_name, change) => {
      const record = new GrowingRecord(text);
      utimesSync(record.path, 1_000_000_000, 1_000_000_000);
      record.check({ aheadMs });
      // The next tick of the clock that files get their times from.
      if (aheadMs > 0) await untilTimesMove(record.folder);
      change(record.path);
      record.check({ aheadMs });
      record.check({ aheadMs });
      appendFileSync(record.path, other);
      record.check();
    });

  test("if another build wrote the cache", () => {
    const record = new GrowingRecord(large);
    record.check({ aheadMs: minute });
    expect(record.check({ cache: { ...record.cache, build: "two" } })).toBeGreaterThan(large.length);
  });

  test("if the cache is of another agent", () => {
    const record = new GrowingRecord(large);
    record.check({ aheadMs: minute });
    const place = { ...record.place, adapter: demo };
    expect(readCounts(place, record.cache)).toEqual(readCounts(place, null));
  });

  test("and nothing is kept if it became shorter during the count", () => {
    const record = new GrowingRecord(large);
    let reads = 0;
    const read: CountingTools["read"] = (fd, into, offset, length, position) => {
      reads += 1;
      return reads > 5 && position > 1_000_000 ? 0 : readSync(fd, into, offset, length, position);
    };
    readCounts(record.place, record.cache, { read, now: Date.now });
    expect(existsSync(record.cache.folder)).toBe(false);
    record.check();
  });
});

describe("a cache file", () => {
  test("is readable only by its owner", () => {
    const record = new GrowingRecord(large);
    record.check();
    const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);
    expect([mode(record.kept), mode(record.cache.folder)]).toEqual(["600", "700"]);
    expect(statSync(record.kept).size).toBeLessThan(400 * 6 + 1_000);
  });

  test("counts as absent if it is damaged in any byte, cut anywhere, or another file", () => {
    const record = new GrowingRecord(said("a", 1) + cost(3) + denied + said("b\ud800é", 2));
    record.check({ aheadMs: minute });
    const whole = readFileSync(record.kept);
    const isUsed = () => record.check({ aheadMs: minute }) === 0;
    expect(isUsed()).toBe(true);
    const damages = [
      ...whole.keys().flatMap((at) => [1, 0x80].map((bit) => whole.with(at, (whole[at] ?? 0) ^ bit))),
      ...whole.keys().map((length) => whole.subarray(0, length)),
      ...["", "null", "{}", "x".repeat(1000), `${whole}${whole}`].map((text) => Buffer.from(text)),
    ];
    for (const damaged of damages) {
      writeFileSync(record.kept, damaged);
      expect(isUsed()).toBe(false);
    }
    expect(isUsed()).toBe(true);
  });

  test("is not used for another record", () => {
    const [one, two] = [new GrowingRecord(said("a", 1)), new GrowingRecord(said("b", 22))];
    one.check({ aheadMs: minute });
    two.check({ aheadMs: minute });
    cpSync(one.kept, two.kept);
    expect(two.check({ aheadMs: minute })).toBeGreaterThan(0);
  });

  test("that cannot be written causes no message", () => {
    const record = new GrowingRecord(large);
    writeFileSync(join(record.folder, "cache"), "a file where the folder should be");
    record.check();
    record.check();
    const other = new GrowingRecord(large);
    mkdirSync(other.cache.folder, { recursive: true });
    chmodSync(other.cache.folder, 0o500);
    other.check();
  });

  test("is not written, and leaves no other file, if a folder is in its place", () => {
    const record = new GrowingRecord(large);
    record.check();
    const { kept } = record;
    rmSync(kept);
    mkdirSync(join(kept, "inside"), { recursive: true });
    record.check();
    expect(record.kept).toBe(kept);
  });

  test.each([5, 100])("gives the same cost to the last digit if keys reappear after %d", (different) => {
    const pi = (id: string, total: number): string =>
      `${JSON.stringify({ type: "message", id, message: { role: "assistant", usage: { input: 1, output: 1, cost: { total } } } })}\n`;
    // In another order the sum is another one.
    const costs = [0.1, 1e16, 0.3, -1e16, 0.7, 1e-9];
    const record = new GrowingRecord("");
    const place: RecordPlace = { ...record.place, adapter: piAdapter };
    for (const [index, total] of [...costs, ...costs].entries()) {
      appendFileSync(record.path, pi(`k${index % different}`, total));
      const { costUsd } = readTotals(place);
      expect(readCounts(place, record.cache).costUsd).toBe(costUsd);
    }
  });
});

test("several counts of a growing record each cover a beginning of it and agree in the end", async () => {
  const record = new GrowingRecord(said("first", 1));
  const source = join(import.meta.dir, "../../src");
  const program = `
    const { claudeCode } = await import("${source}/agents/claude-code/index.ts");
    const { readCounts } = await import("${source}/observe/usage/read-counts.ts");
    const place = { adapter: claudeCode, home: "/", file: { path: "${record.path}", subject: "x", set: claudeCode.records[0] } };
    const output = (cache) => readCounts(place, cache).tokens.output;
    for (let now = 0; now < 1000; ) {
      const before = output(null);
      now = output(${JSON.stringify(record.cache)});
      const after = output(null);
      if (now < before || now > after) throw new Error(before + " " + now + " " + after);
    }`;
  const counting = [1, 2, 3].map(() => Bun.spawn([process.execPath, "-e", program], { stderr: "pipe" }));
  const file = openSync(record.path, "a");
  for (let count = 2; count <= 1000; count += 1) {
    writeSync(file, said(`m${count}`, 1));
    if (count % 10 === 0) await Bun.sleep(1);
  }
  closeSync(file);
  for (const each of counting) expect([await each.exited, await each.stderr.text()]).toEqual([0, ""]);
  expect(record.count().tokens?.output).toBe(1000);
  expect(record.kept).toBeTruthy();
}, 60_000);

test("both forms of a refused call of Qwen are found", () => {
  const record = new GrowingRecord("");
  const answer = (output: string): string =>
    `${JSON.stringify({
      ...{ type: "tool_result", sessionId: "s", message: { parts: [{ functionResponse: { response: { output } } }] } },
    })}\n`;
  const texts = ['Qwen Code requires permission to use "edit", which was declined.', "User did not allow tool call"];
  for (const [index, text] of texts.entries()) {
    appendFileSync(record.path, answer("fine") + answer(text));
    expect(readCounts({ ...record.place, adapter: qwen }, null).denied).toBe(index + 1);
  }
});

describe("counts are not kept", () => {
  test("without a home, or if the environment forbids it", () => {
    expect(wantsCache({ HOME: "/home/user" })).toBe(true);
    expect(wantsCache({ XDG_CACHE_HOME: "/var/cache" })).toBe(true);
    expect(wantsCache({ HOME: "/home/user", AGENTCTL_NO_CACHE: "1" })).toBe(false);
    expect(wantsCache({ HOME: "/home/user", AGENTCTL_NO_CACHE: "" })).toBe(true);
    expect(wantsCache({})).toBe(false);
    expect(wantsCache({ HOME: "/home/user", XDG_CACHE_HOME: "cache" })).toBe(false);
  });

  test("by a run from source, because the source may change", () => {
    expect(openCountsFolder({ HOME: "/home/user" })).toBeNull();
  });
});

function replace(path: string, text: string): void {
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
}

function overwrite(path: string, text: string): void {
  const file = openSync(path, "r+");
  writeSync(file, text, 0);
  closeSync(file);
}

async function untilTimesMove(folder: string): Promise<void> {
  const path = join(folder, "tick");
  const touch = (): bigint => {
    writeFileSync(path, "");
    return statSync(path, { bigint: true }).mtimeNs;
  };
  const before = touch();
  while (touch() === before) await Bun.sleep(1);
}
