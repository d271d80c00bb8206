// Counts the tokens, the cost and the refused calls of a whole record. `readCounts` is the fast way: it parses only lines that can
// hold them and, in a record that was counted before, only what was added. `readTotals` parses every line, for the final answer.
import { fstatSync, readSync } from "node:fs";
import type { Adapter, Message } from "../../agents/adapter.ts";
import { type Bytes, eachLineWith, endOfLines, type Needle, needleOf, type Read, readChunk } from "../../lib/jsonl.ts";
import { compileSoon } from "../../sys/compiler.ts";
import { hashOf } from "../../sys/hash.ts";
import { type ConversationEntry, entriesForward, type RecordPlace, readHistory } from "../conversation.ts";
import { closedAfter, findFiles } from "../files.ts";
import { type FoundRecord, openRecord, parseJson } from "../records.ts";
import { type CountsFolder, type RecordKey, readSaved, type SavedCounts, save } from "./saved-counts.ts";
import { addLine, type Counts, countsOf, isOlder, newTally, type Tally } from "./tally.ts";

/** Replaced by tests. */
export interface CountingTools {
  read: Read;
  now(): number;
}

const realTools: CountingTools = { read: readSync, now: Date.now };

/** The same counts as those of `readTotals`. Throws if a record cannot be read. */
export function readCounts(place: RecordPlace, cache: CountsFolder | null, tools = realTools): Counts {
  const { adapter, file } = place;
  const own = tallyOf(adapter, file, cache, tools, "newest");
  const subagents = subagentFiles(place).map((each) => tallyOf(adapter, each, cache, tools, "all"));
  const isAgain = subagents.some(({ usage }) => usage.keys().some((key) => isOlder(own, key)));
  const counts = countsOf(isAgain ? tallyOf(adapter, file, cache, tools, "all") : own, subagents);
  return adapter.countsDenied ? counts : { ...counts, denied: null };
}

/** Records of subagents, whose tokens count for the session. */
export function subagentFiles({ adapter, file }: RecordPlace): FoundRecord[] {
  if (adapter.subagentRecords === undefined) return [];
  const folder = file.path.replace(/\.jsonl$/, "");
  return findFiles(folder, adapter.subagentRecords).files.map((found) => ({ ...found, set: file.set }));
}

export interface Totals extends Counts {
  /** The last text of the agent in its last turn. */
  answer: string | null;
  broken: number;
  unknown: number;
}

/** Reads only the session's own record: if the totals of a fork contain those of its parent, the agent wrote them so. May throw. */
export function readTotals(place: RecordPlace): Totals {
  const { own } = readHistory(place);
  const totals = sumUp(entriesForward(place.adapter, [own]), subagentEntries(place));
  return place.adapter.countsDenied ? totals : { ...totals, denied: null };
}

function* subagentEntries(place: RecordPlace): Generator<ConversationEntry> {
  for (const file of subagentFiles(place)) yield* entriesForward(place.adapter, [readHistory({ ...place, file }).own]);
}

export function sumUp(entries: Iterable<ConversationEntry>, subagents: Iterable<ConversationEntry> = []): Totals {
  const own = newTally();
  const subagent = newTally();
  let answer: LastAnswer = { text: null, at: null };
  const passed = { broken: 0, unknown: 0 };
  for (const entry of entries) {
    if (entry.kind !== "known") {
      passed[entry.kind] += 1;
      continue;
    }
    addLine(own, entry.facts);
    for (const message of entry.facts.messages) answer = answerAfter(answer, message);
  }
  for (const entry of subagents) if (entry.kind === "known") addLine(subagent, entry.facts);
  return { ...countsOf(own, [subagent]), answer: answer.text, ...passed };
}

interface LastAnswer {
  text: string | null;
  at: number | null;
}

/** A prompt begins a turn without an answer, unless the answer before it is newer: some agents write an answer before its prompt. */
function answerAfter(before: LastAnswer, { role, text, at }: Message): LastAnswer {
  if (role === "agent" && text.trim() !== "") return { text, at };
  const isAnswered = at !== null && before.at !== null && before.at > at;
  return role === "user" && !isAnswered ? { text: null, at: null } : before;
}

/** "newest": old keys may be kept as sums, which saves space. */
type Keys = "all" | "newest";

function tallyOf(
  adapter: Adapter,
  file: FoundRecord,
  cache: CountsFolder | null,
  tools: CountingTools,
  keys: Keys,
): Tally {
  return closedAfter(openRecord(file), ({ bytes, size }) => {
    // An assembled record is in memory already.
    if (cache !== null && typeof bytes === "number" && size >= cache.leastBytes)
      return continuedTally(adapter, { agent: adapter.agent, path: file.path }, bytes, cache, tools, keys);
    const tally = newTally();
    addLines(tally, adapter, [bytes, 0, size], tools.read);
    return tally;
  });
}

/** Continues where the last count of this record ended, if the record is unchanged up to there. */
function continuedTally(
  adapter: Adapter,
  record: RecordKey,
  fd: number,
  cache: CountsFolder,
  { read, now: clock }: CountingTools,
  keys: Keys,
): Tally {
  const now = stateOf(fd, clock());
  const known = readSaved(cache, record);
  const isSame = known?.identity === now.identity && (keys === "newest" || known.tally.older === null);
  // Times prove something only if any later change must have changed them.
  if (isSame && known.isSettled && known.size === now.size && known.changed === now.changed) return known.tally;
  const markAfter = (from: number) => {
    const offset = endOfLines(fd, from, now.size, read);
    return { offset, around: around(fd, offset, read) };
  };
  let base: CountedPart = isSame && known.size < now.size ? known : nothingCounted(keys);
  let mark = markAfter(base.offset);
  // Compared after the mark was made: if the file is rewritten while we count, a hash differs, now or next time.
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
  if (counted.end === mark.offset) save(cache, record, { ...now, ...mark, tally: base.tally });
  return base.tally;
}

/** `end`: how far it read. `isAgain`: a line had an old key, so the tally is wrong. */
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
    isAgain ||= facts.usage !== null && isOlder(tally, facts.usage.key);
    addLine(tally, facts);
  };
  return { end: eachLineWith(needlesOf(adapter), part, add, read), isAgain };
}

/** Counting so many takes more than 20 ms. */
const manyBytes = 8 * 1024 * 1024;

type CountedPart = Pick<SavedCounts, "offset" | "around" | "tally">;

const nothingCounted = (keys: Keys): CountedPart => ({ offset: 0, around: hashOf(""), tally: newTally(keys) });

/** Times are coarse: another change within this time may leave them unchanged. */
const settledMs = 2000;

function stateOf(fd: number, now: number): Omit<SavedCounts, keyof CountedPart> {
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

/** A hash of the file's first bytes and of those before this offset. */
function around(fd: number, offset: number, read: Read): string {
  const length = Math.min(offset, aroundBytes);
  return hashOf(Buffer.concat([readChunk(fd, 0, length, read), readChunk(fd, offset - length, length, read)]));
}

/** Every line that can be parsed has a brace. */
const needlesOf = ({ countedIn = ["{"] }: Adapter): Needle[] => countedIn.map(needleOf);
