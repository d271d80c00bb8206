// Tokens, cost and refused calls of a record: of its lines only those that can hold them are parsed, of a record that was
// counted before only what was added.
import { fstatSync, readSync } from "node:fs";
import type { Adapter } from "../adapters/adapter.ts";
import { eachLineWith, endOfLines, type Needle, needleOf, type Read, readChunk } from "../lib/jsonl.ts";
import { hashOf } from "../sys/hash.ts";
import { entryOf, type RecordPlace } from "./conversation.ts";
import { closeFile, findFiles } from "./files.ts";
import { type FoundRecord, openRecord } from "./records.ts";
import { addLine, type Counts, countsOf, newTally, type Tally } from "./tally.ts";
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
  const own = tallyOf(adapter, file, cache, means);
  const counts = countsOf(
    own,
    subagentFiles(place).map((each) => tallyOf(adapter, each, cache, means)),
  );
  return adapter.countsDenied ? counts : { ...counts, denied: null };
}

/** Subagents keep records of their own, whose tokens are the session's. */
export function subagentFiles({ adapter, file }: RecordPlace): FoundRecord[] {
  if (adapter.subagentRecords === null) return [];
  const folder = file.path.replace(/\.jsonl$/, "");
  return findFiles(folder, adapter.subagentRecords).files.map((found) => ({ ...found, set: file.set }));
}

function tallyOf(adapter: Adapter, file: FoundRecord, cache: TotalsCache | null, means: Means): Tally {
  const open = openRecord(file);
  try {
    // What was put together in memory is read already.
    if (cache !== null && typeof open.bytes === "number" && open.size >= cache.leastBytes)
      return keptTally(adapter, { agent: adapter.agent, path: file.path }, open.bytes, cache, means);
    const tally = newTally();
    eachLineWith(needlesOf(adapter), [open.bytes, 0, open.size], (line) => add(tally, adapter, line), means.read);
    return tally;
  } finally {
    closeFile(open);
  }
}

/** Goes on where the last count of this record ended, if the record still is what it was up to there. */
function keptTally(adapter: Adapter, counting: Counting, fd: number, cache: TotalsCache, means: Means): Tally {
  const now = stateOf(fd, means.now());
  const known = readKept(cache, counting);
  const isSame = known?.identity === now.identity;
  // Times are only trusted where any later change must have moved them.
  if (isSame && known.isSettled && known.size === now.size && known.changed === now.changed) return known.tally;
  const markAfter = (from: number) => {
    const offset = endOfLines(fd, from, now.size, means.read);
    return { offset, around: around(fd, offset, means.read) };
  };
  let base: Counted = isSame && known.size < now.size ? known : nothingCounted();
  let mark = markAfter(base.offset);
  // After the mark: who writes the file anew while we count is found out by a hash that does not fit, now or next time.
  if (around(fd, base.offset, means.read) !== base.around) {
    base = nothingCounted();
    mark = markAfter(0);
  }
  const { offset: from, tally } = base;
  const end = eachLineWith(
    needlesOf(adapter),
    [fd, from, mark.offset],
    (line) => add(tally, adapter, line),
    means.read,
  );
  if (end === mark.offset) keep(cache, counting, { ...now, ...mark, tally });
  return tally;
}

type Counted = Pick<Kept, "offset" | "around" | "tally">;

const nothingCounted = (): Counted => ({ offset: 0, around: hashOf(""), tally: newTally() });

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

function add(tally: Tally, adapter: Adapter, line: Buffer): void {
  const entry = entryOf(adapter, line);
  if (entry.kind === "known") addLine(tally, entry.facts);
}

/** Every line that can be parsed has a brace. */
const needlesOf = ({ countedIn = ["{"] }: Adapter): Needle[] => countedIn.map(needleOf);
