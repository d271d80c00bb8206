// Tokens, cost and refused calls of a record: of its lines only those that can hold them are parsed.
import type { Adapter } from "../adapters/adapter.ts";
import { eachLineWith, type Needle, needleOf } from "../lib/jsonl.ts";
import { entryOf, type RecordPlace } from "./conversation.ts";
import { closeFile, findFiles } from "./files.ts";
import { type FoundRecord, openRecord } from "./records.ts";
import { addLine, type Counts, countsOf, newTally, type Tally } from "./tally.ts";

/** The same as `readTotals` says. Throws where a record cannot be read. */
export function readCounts(place: RecordPlace): Counts {
  const { adapter, file } = place;
  const own = tallyOf(adapter, file);
  const counts = countsOf(
    own,
    subagentFiles(place).map((each) => tallyOf(adapter, each)),
  );
  return adapter.countsDenied ? counts : { ...counts, denied: null };
}

/** Subagents keep records of their own, whose tokens are the session's. */
export function subagentFiles({ adapter, file }: RecordPlace): FoundRecord[] {
  if (adapter.subagentRecords === null) return [];
  const folder = file.path.replace(/\.jsonl$/, "");
  return findFiles(folder, adapter.subagentRecords).files.map((found) => ({ ...found, set: file.set }));
}

function tallyOf(adapter: Adapter, file: FoundRecord): Tally {
  const open = openRecord(file);
  try {
    const tally = newTally();
    eachLineWith(needlesOf(adapter), [open.bytes, 0, open.size], (line) => add(tally, adapter, line));
    return tally;
  } finally {
    closeFile(open);
  }
}

function add(tally: Tally, adapter: Adapter, line: Buffer): void {
  const entry = entryOf(adapter, line);
  if (entry.kind === "known") addLine(tally, entry.facts);
}

/** Every line that can be parsed has a brace. */
const needlesOf = ({ countedIn = ["{"] }: Adapter): Needle[] => countedIn.map(needleOf);
