// Counts a whole record: tokens, denied tool calls, cost. A plain `list` does not count, because it would read every record.
import { Failure } from "../core/failure.ts";
import type { Environment } from "../observe/homes.ts";
import { type Counted, withCost } from "../observe/usage/cost.ts";
import { readCounts, readTotals } from "../observe/usage/read-counts.ts";
import { openCountsFolder } from "../observe/usage/saved-counts.ts";
import type { SessionRow } from "./look.ts";
import { readingOf, recordOf } from "./session-record.ts";

const noCounts: Counted = { tokens: null, denied: null, costUsd: null, costSource: null };

interface CountContext {
  env: Environment;
  /** Called for a record that cannot be read; its totals stay unknown. */
  onUnreadable(message: string): void;
}

/** The row with its totals. A session without a record has none. */
export async function count(row: SessionRow, context: CountContext): Promise<SessionRow> {
  if (row.session.record === null) return { ...row, counted: noCounts };
  try {
    const totals = readingOf(row, () => readCounts(recordOf(row), openCountsFolder(context.env)));
    return { ...row, counted: await withCost(totals, modelOf(row)) };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const { failureMessage } = await import("../words/failures.ts");
    context.onUnreadable(failureMessage(error));
    return { ...row, counted: noCounts };
  }
}

/** For repeated lists: counts only records that were written since the last list. */
export function createCachedCount(): typeof count {
  const known = new Map<string, { writtenAt: number | null; counted: Counted }>();
  return async (row, context) => {
    const { source = "", writtenAt = null } = row.session.record ?? {};
    const before = known.get(source);
    if (before !== undefined && before.writtenAt === writtenAt) return { ...row, counted: before.counted };
    const { counted = noCounts } = await count(row, context);
    known.set(source, { writtenAt, counted });
    return { ...row, counted };
  };
}

/** The final answer of a session, with its totals. */
export async function readAnswer(
  row: SessionRow,
): Promise<{ answer: string | null; broken: number; counted: Counted }> {
  const totals = readingOf(row, () => readTotals(recordOf(row)));
  return { answer: totals.answer, broken: totals.broken, counted: await withCost(totals, modelOf(row)) };
}

const modelOf = ({ session }: SessionRow): string | null => session.record?.facts.model ?? null;
