// The cache of token counts changes no answer: present, missing, damaged or forged.
import { expect, test } from "bun:test";
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { binary, TestHome } from "./test-home.ts";

interface Status {
  tokens: { total: number } | null;
  denied: number | null;
}

const reply = (text: string, output: number) => ({ type: "reply", text, tokens: { output } });
const talk = [
  // Of short records nothing is kept.
  { type: "prompt", text: `paint it${" please".repeat(200_000)}` },
  reply("Blue.", 40),
  reply("Done.", 2),
  { type: "end", outcome: "completed" },
];

const folderOf = (world: TestHome): string => join(world.root, ".cache", "agentctl", "totals");
const recordOf = (world: TestHome, id: string): string => join(world.home, "sessions", `${id}.jsonl`);
const total = async (world: TestHome, id: string): Promise<number | undefined> =>
  (await world.json<Status>("status", id)).tokens?.total;
const keptIn = (world: TestHome): string => join(folderOf(world), readdirSync(folderOf(world))[0] ?? "");

/** Times of files are trusted two seconds after the last change. */
async function countedForGood(world: TestHome, id: string): Promise<void> {
  const end = Date.now() + 10_000;
  do expect(await total(world, id)).toBe(42);
  while (!readFileSync(keptIn(world), "utf8").includes('"isSettled":true') && Date.now() < end);
}

test("a record is counted once, and later only its new lines", async () => {
  await using world = new TestHome();
  const id = world.record(talk);
  await countedForGood(world, id);
  const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);
  expect([mode(folderOf(world)), mode(keptIn(world))]).toEqual(["700", "600"]);
  plant(keptIn(world), 1_000);
  expect(await total(world, id)).toBe(1_002);
  appendFileSync(recordOf(world, id), `${JSON.stringify(reply("More.", 5))}\n`);
  expect(await total(world, id)).toBe(1_007);
  // The cache can be switched off.
  const { out } = await world.run(["status", id, "--json"], { env: { AGENTCTL_NO_CACHE: "1" } });
  expect((JSON.parse(out) as Status).tokens?.total).toBe(47);
  // Another build may read records otherwise.
  copyFileSync(binary, join(world.root, "other"));
  const other = Bun.spawn([join(world.root, "other"), "status", id, "--json"], { env: world.env });
  expect(((await other.stdout.json()) as Status).tokens?.total).toBe(47);
});

/** Another count under a right checksum: seen in an answer, it shows that the record was not read. */
function plant(path: string, output: number): void {
  const text = readFileSync(path, "utf8").slice(16).replace(",40,", `,${output},`);
  writeFileSync(path, Bun.hash(text).toString(16).padStart(16, "0") + text);
}

test("without a usable cache the record is counted", async () => {
  await using world = new TestHome();
  const id = world.record(talk);
  await countedForGood(world, id);
  plant(keptIn(world), 1_000);
  const planted = readFileSync(keptIn(world));
  for (const damaged of [planted.subarray(0, 100), planted.with(60, 0), Buffer.alloc(0)]) {
    writeFileSync(keptIn(world), damaged);
    expect(await total(world, id)).toBe(42);
  }
  writeFileSync(join(world.folder("elsewhere"), "agentctl"), "no folder");
  for (const place of [join(world.root, "elsewhere"), "/proc/nowhere", "relative", "/dev/null"]) {
    const { code, out, err } = await world.run(["status", id, "--json"], { env: { XDG_CACHE_HOME: place } });
    expect([code, err, (JSON.parse(out) as Status).tokens?.total]).toEqual([0, "", 42]);
  }
  expect(existsSync(join(world.root, "relative"))).toBe(false);
});

test("several commands at once give the same answer", async () => {
  await using world = new TestHome();
  const ids = Array.from({ length: 8 }, (_, index) => world.record([...talk, reply("x", index)]));
  const lists = await Promise.all(
    Array.from(
      { length: 6 },
      async () => (await world.list("--tokens")).sessions as unknown as (Status & { id: string })[],
    ),
  );
  for (const sessions of lists)
    expect(sessions.map(({ id, tokens }) => [id, tokens?.total]).sort()).toEqual(
      ids.map((id, index) => [id, 42 + index]).sort(),
    );
  expect(readdirSync(folderOf(world))).toHaveLength(ids.length);
});

test("prune removes the cache", async () => {
  await using world = new TestHome();
  const id = world.record(talk);
  await total(world, id);
  expect((await world.run(["prune", "-y"])).code).toBe(0);
  expect(existsSync(folderOf(world))).toBe(false);
  chmodSync(world.folder(".cache"), 0o500);
  expect(await total(world, id)).toBe(42);
});
