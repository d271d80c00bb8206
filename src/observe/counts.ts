// Tokens, cost and refused calls of a record: of its lines only those that can hold them are parsed, of a record that was
// counted before only what was added.
import { fstatSync, readSync } from "node:fs";
import type { Adapter } from "../adapters/adapter.ts";
import { type Bytes, eachLineWith, endOfLines, type Needle, needleOf, type Read, readChunk } from "../lib/jsonl.ts";
import { compileSoon } from "../sys/compiler.ts";
import { hashOf } from "../sys/hash.ts";
import type { RecordPlace } from "./conversation.ts";
import { closeFile, findFiles } from "./files.ts";
import { type FoundRecord, openRecord, parseJson } from "./records.ts";
import { addLine, type Counts, countsOf, isPast, newTally, type Tally } from "./tally.ts";
import { type Counting, type Kept, keep, readKept, type TotalsCache } from "./totals-cache.ts";

/** For tests: how bytes are read, and what time it is. */
export interface Means {
  read: Read;
  now(): number;
}

const ownMeans: Means = { read: readSync, now: Date.now };

/** The same as `readTotals` says. Throws where a record cannot be read. */
export function readCounts(place: RecordPlace, cache: TotalsCache | null, means = ownMeans): Counts {
  const { adapter, file } = place;
  const own = tallyOf(adapter, file, cache, means, "newest");
  const subagents = subagentFiles(place).map((each) => tallyOf(adapter, each, cache, means, "all"));
  const isAgain = subagents.some(({ usage }) => usage.keys().some((key) => isPast(own, key)));
  const counts = countsOf(isAgain ? tallyOf(adapter, file, cache, means, "all") : own, subagents);
  return adapter.countsDenied ? counts : { ...counts, denied: null };
}

/** Subagents keep records of their own, whose tokens are the session's. */
export function subagentFiles({ adapter, file }: RecordPlace): FoundRecord[] {
  if (adapter.subagentRecords === null) return [];
  const folder = file.path.replace(/\.jsonl$/, "");
  return findFiles(folder, adapter.subagentRecords).files.map((found) => ({ ...found, set: file.set }));
}

/** Which keys the tally must have: old ones are worth their room only if they come again. */
type Keys = "all" | "newest";

function tallyOf(adapter: Adapter, file: FoundRecord, cache: TotalsCache | null, means: Means, keys: Keys): Tally {
  const open = openRecord(file);
  try {
    // What was put together in memory is read already.
    if (cache !== null && typeof open.bytes === "number" && open.size >= cache.leastBytes)
      return keptTally(adapter, { agent: adapter.agent, path: file.path }, open.bytes, cache, means, keys);
    const tally = newTally();
    addLines(tally, adapter, [open.bytes, 0, open.size], means.read);
    return tally;
  } finally {
    closeFile(open);
  }
}

/** Goes on where the last count of this record ended, if the record still is what it was up to there. */
function keptTally(
  adapter: Adapter,
  counting: Counting,
  fd: number,
  cache: TotalsCache,
  { read, now: clock }: Means,
  keys: Keys,
): Tally {
  const now = stateOf(fd, clock());
  const known = readKept(cache, counting);
  const isSame = known?.identity === now.identity && (keys === "newest" || known.tally.past === null);
  // Times are only trusted where any later change must have moved them.
  if (isSame && known.isSettled && known.size === now.size && known.changed === now.changed) return known.tally;
  const markAfter = (from: number) => {
    const offset = endOfLines(fd, from, now.size, read);
    return { offset, around: around(fd, offset, read) };
  };
  let base: Counted = isSame && known.size < now.size ? known : nothingCounted(keys);
  let mark = markAfter(base.offset);
  // After the mark: who writes the file anew while we count is found out by a hash that does not fit, now or next time.
  if (around(fd, base.offset, read) !== base.around) {
    base = nothingCounted(keys);
    mark = markAfter(0);
  }
  let counted = addLines(base.tally, adapter, [fd, base.offset, mark.offset], read);
  if (counted.isAgain) {
    base = nothingCounted("all");
    mark = markAfter(0);
    counted = addLines(base.tally, adapter, [fd, 0, mark.offset], read);
  }
  if (counted.end === mark.offset) keep(cache, counting, { ...now, ...mark, tally: base.tally });
  return base.tally;
}

/** How far it came; and whether a key was among them that is past: then the tally is good for nothing. */
function addLines(
  tally: Tally,
  adapter: Adapter,
  part: [bytes: Bytes, from: number, to: number],
  read: Read,
): { end: number; isAgain: boolean } {
  const [, from, to] = part;
  if (to - from > manyBytes) compileSoon();
  let isAgain = false;
  const add = (block: Buffer, start: number, end: number): void => {
    const parsed = parseJson(block, start, end);
    const facts = parsed.ok ? adapter.parseLine(parsed.value, "counts") : null;
    if (facts === null) return;
    isAgain ||= facts.usage !== null && isPast(tally, facts.usage.key);
    addLine(tally, facts);
  };
  return { end: eachLineWith(needlesOf(adapter), part, add, read), isAgain };
}

/** Counting them takes more than twenty milliseconds. */
const manyBytes = 8 * 1024 * 1024;

type Counted = Pick<Kept, "offset" | "around" | "tally">;

const nothingCounted = (keys: Keys): Counted => ({ offset: 0, around: hashOf(""), tally: newTally(keys) });

/** Times are coarse: so soon after a change another one may leave them as they are. */
const settledMs = 2000;

function stateOf(fd: number, now: number): Omit<Kept, keyof Counted> {
  const { dev, ino, birthtimeNs, size, mtimeNs, ctimeNs } = fstatSync(fd, { bigint: true });
  const changedAt = Number((mtimeNs > ctimeNs ? mtimeNs : ctimeNs) / 1_000_000n);
  return {
    identity: `${dev} ${ino} ${birthtimeNs}`,
    size: Number(size),
    changed: `${mtimeNs} ${ctimeNs}`,
    isSettled: now - changedAt >= settledMs,
  };
}

const aroundBytes = 4096;

/** The beginning of the file and what stands before this place, as a hash. */
function around(fd: number, offset: number, read: Read): string {
  const length = Math.min(offset, aroundBytes);
  return hashOf(Buffer.concat([readChunk(fd, 0, length, read), readChunk(fd, offset - length, length, read)]));
}

/** Every line that can be parsed has a brace. */
const needlesOf = ({ countedIn = ["{"] }: Adapter): Needle[] => countedIn.map(needleOf);
