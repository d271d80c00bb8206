// Invariants of every answer, independent of the truth. They are checked after a step, while nothing changes.
//
// 1. Without our state, the same states: an empty AGENTCTL_HOME changes no row but for `launch`.
// 2. list = status (compare.ts).
// 3. Asking changes nothing on disk outside the cache.
// 4. Nor does any other command that only reads, least of all in an agent's home.
// 5. Memory and time are bounded, see `judgeCost`.
// 6. Two lists in a row are equal but for the time of asking.
import { lstatSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isSharedMemory, type Reply } from "./ask-agentctl.ts";
import { Dice } from "./random.ts";
import { judgeCost, listWords, tell } from "./run-agentctl.ts";
import type { SimulatedHost } from "./simulated-host.ts";
import { judge } from "./step-findings.ts";

export async function checkLaws(host: SimulatedHost, listed: Reply, seed: number): Promise<void> {
  // Not the dice of the step: its own choices stay what they were.
  const dice = new Dice(seed ^ 0x1a35);
  if (listed.exit !== 0) return;
  if (dice.chance(0.5)) await listAgain(host, listed);
  else await listWithoutState(host, listed);
  if (dice.chance(0.15)) await readEverything(host, dice);
}

/** Laws 3, 5 and 6. */
async function listAgain(host: SimulatedHost, listed: Reply): Promise<void> {
  const before = footprint(host);
  const again = await tell(host, listWords);
  judgeFootprint(host, before, again.command);
  await judgeCost(host, again, listWords);
  judge(host, firstDifference(listed.stdout, again.stdout, "asked again", []));
}

/** Laws 1 and 3. */
async function listWithoutState(host: SimulatedHost, listed: Reply): Promise<void> {
  const nowhere = join(host.root, "no-state");
  mkdirSync(nowhere, { recursive: true });
  const before = footprint(host);
  const again = await tell(host, listWords, { env: { AGENTCTL_HOME: nowhere } });
  judgeFootprint(host, before, `${again.command} without our state`);
  judge(host, firstDifference(listed.stdout, again.stdout, "without our state", ["launch"]));
  rmSync(nowhere, { recursive: true });
}

/** Laws 4 and 5, for every command that only reads. */
async function readEverything(host: SimulatedHost, dice: Dice): Promise<void> {
  const ids = [...host.sessions.values()].map(({ id }) => id);
  const id = ids.length === 0 ? dice.uuid() : dice.pick(ids);
  for (const words of [1, 2, 3].map(() => dice.pick(readingWords(id)))) {
    const before = footprint(host);
    const told = await tell(host, words);
    judgeFootprint(host, before, told.command);
    await judgeCost(host, told, words);
    const failed = told.exit === 1 || told.exit === 2 || told.exit > 100;
    judge(host, failed ? `${told.command}: exit ${told.exit}: ${told.stderr.trim().slice(0, 300)}` : null);
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
function footprint(host: SimulatedHost): Footprint {
  const marks: Footprint = new Map();
  const walk = (path: string): void => {
    if (path === host.cache) return;
    const stat = lstatSync(path, { bigint: true });
    // Recreating the cache changes the folder around it; other changes in that folder show in its names.
    const times = isSharedMemory(path) ? [] : [stat.mtimeNs, path.endsWith("-wal") ? "" : stat.ctimeNs];
    if (path !== host.root) marks.set(path, `${stat.mode} ${stat.size} ${times} ${stat.ino}`);
    if (stat.isDirectory()) for (const name of readdirSync(path)) walk(join(path, name));
  };
  walk(host.root);
  return marks;
}

function judgeFootprint(host: SimulatedHost, before: Footprint, command: string): void {
  const after = footprint(host);
  const changed = [...new Set([...before.keys(), ...after.keys()])].filter(
    (path) => before.get(path) !== after.get(path),
  );
  judge(host, changed.length === 0 ? null : `${command} changed ${changed.join(", ")}`);
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
    // In the first seconds of a process "unclear" is called "starting": that word follows the clock, too.
    const clocked = row["activity"] === "unclear" ? ["status", "reason", "reasonCode"] : [];
    const kept = Object.entries(row).filter(([name]) => ![...apart, ...clocked].includes(name));
    return [`${index}: ${row["id"] ?? "a process"}`, Object.fromEntries(kept)];
  });
  // Without our state there is nothing in it that could be broken.
  const whole = apart.length === 0 ? { ...list, problems } : list;
  return new Map([["list", whole], ...rows]);
}
