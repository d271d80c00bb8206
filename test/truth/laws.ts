// Laws: what must hold of every answer, whatever is true. Checked in a world at rest, after a step.
//
// 1. Without our state, the same states: an empty AGENTCTL_HOME changes no row but for `launch`.
// 2. list = status (compare.ts).
// 3. Asking changes nothing on disk outside the cache.
// 4. Nor does any other command that only reads, least of all in an agent's home.
// 5. Memory and time are bounded, see `judgeCost`.
// 6. Two lists in a row are equal but for the time of asking.
import { lstatSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isSharedMemory, type Reply } from "./ask.ts";
import { judgeCost, listWords, tell } from "./product.ts";
import { Dice } from "./random.ts";
import { judge } from "./side.ts";
import type { World } from "./world.ts";

export async function checkLaws(world: World, listed: Reply, seed: number): Promise<void> {
  // Not the dice of the step: its own choices stay what they were.
  const dice = new Dice(seed ^ 0x1a35);
  if (listed.exit !== 0) return;
  if (dice.chance(0.5)) await listAgain(world, listed);
  else await listWithoutState(world, listed);
  if (dice.chance(0.15)) await readEverything(world, dice);
}

/** Laws 3, 5 and 6. */
async function listAgain(world: World, listed: Reply): Promise<void> {
  const before = footprint(world);
  const again = await tell(world, listWords);
  judgeFootprint(world, before, again.command);
  await judgeCost(world, again, listWords);
  judge(world, firstDifference(listed.stdout, again.stdout, "asked again", []));
}

/** Laws 1 and 3. */
async function listWithoutState(world: World, listed: Reply): Promise<void> {
  const nowhere = join(world.root, "no-state");
  mkdirSync(nowhere, { recursive: true });
  const before = footprint(world);
  const again = await tell(world, listWords, { env: { AGENTCTL_HOME: nowhere } });
  judgeFootprint(world, before, `${again.command} without our state`);
  judge(world, firstDifference(listed.stdout, again.stdout, "without our state", ["launch"]));
  rmSync(nowhere, { recursive: true });
}

/** Laws 4 and 5, for every command that only reads. */
async function readEverything(world: World, dice: Dice): Promise<void> {
  const ids = [...world.sessions.values()].map(({ id }) => id);
  const id = ids.length === 0 ? dice.uuid() : dice.pick(ids);
  for (const words of [1, 2, 3].map(() => dice.pick(readingWords(id)))) {
    const before = footprint(world);
    const told = await tell(world, words);
    judgeFootprint(world, before, told.command);
    await judgeCost(world, told, words);
    const failed = told.exit === 1 || told.exit === 2 || told.exit > 100;
    judge(world, failed ? `${told.command}: exit ${told.exit}: ${told.stderr.trim().slice(0, 300)}` : null);
  }
}

export function readingWords(id: string): string[][] {
  const ofOne = [
    ["status", id],
    ["why", id],
    ["peek", id],
    ["logs", id],
    ["logs", id, "--raw"],
    ["logs", id, "--output"],
    ["result", id, "--json"],
  ];
  return [[], ["list"], ["doctor"], ["adapters"], ["list", "-a", "--tokens"], ...ofOne];
}

type Footprint = Map<string, string>;

/**
 * Of everything but the cache. The time of change tells of every write, also of one that put the other times back. SQLite, run
 * by root, gives a database's log the owner that it has already, which counts as a change.
 */
function footprint(world: World): Footprint {
  const marks: Footprint = new Map();
  const walk = (path: string): void => {
    if (path === world.cache) return;
    const stat = lstatSync(path, { bigint: true });
    // Whoever makes the cache anew changes the folder around it; all else in that folder is seen by its name.
    const times = isSharedMemory(path) ? [] : [stat.mtimeNs, path.endsWith("-wal") ? "" : stat.ctimeNs];
    if (path !== world.root) marks.set(path, `${stat.mode} ${stat.size} ${times} ${stat.ino}`);
    if (stat.isDirectory()) for (const name of readdirSync(path)) walk(join(path, name));
  };
  walk(world.root);
  return marks;
}

function judgeFootprint(world: World, before: Footprint, command: string): void {
  const after = footprint(world);
  const changed = [...new Set([...before.keys(), ...after.keys()])].filter(
    (path) => before.get(path) !== after.get(path),
  );
  judge(world, changed.length === 0 ? null : `${command} changed ${changed.join(", ")}`);
}

type Fields = Record<string, unknown>;

function firstDifference(first: string, second: string, when: string, apart: string[]): string | null {
  const [before, after] = [plain(first, apart), plain(second, apart)];
  for (const key of new Set([...before.keys(), ...after.keys()])) {
    const [old, now] = [before.get(key) ?? {}, after.get(key) ?? {}];
    const name = [...new Set([...Object.keys(old), ...Object.keys(now)])].find((each) => !isSame(each, old, now));
    if (name === undefined) continue;
    return `${when}: ${name} of ${key} was ${JSON.stringify(old[name])}, and is ${JSON.stringify(now[name])}`;
  }
  return null;
}

/** The start of a process is known by ticks of 10 ms, and by two clocks that are not read in one instant. */
const tickMs = 10;

function isSame(name: string, old: Fields, now: Fields): boolean {
  if (Bun.deepEquals(old[name], now[name])) return true;
  const apartMs = Math.abs(Date.parse(String(old[name])) - Date.parse(String(now[name])));
  return name === "startedAt" && apartMs <= tickMs;
}

/** Every row by its name, and the whole under "list"; without what follows the clock. */
function plain(text: string, apart: string[]): Map<string, Fields> {
  const { at, sessions, problems, ...list } = JSON.parse(text) as Fields & { sessions: Fields[] };
  const rows = sessions.map((row, index): [string, Fields] => {
    const kept = Object.entries(row).filter(([name]) => !apart.includes(name));
    const reason = typeof row["reason"] === "string" ? row["reason"].replace(/quiet \S+/, "quiet") : row["reason"];
    return [`${index}: ${row["id"] ?? "a process"}`, { ...Object.fromEntries(kept), reason }];
  });
  // Without our state there is nothing in it that could be broken.
  const whole = apart.length === 0 ? { ...list, problems } : list;
  return new Map([["list", whole], ...rows]);
}
