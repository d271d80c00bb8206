// Counts a session's whole record: tokens, refused calls, cost. `list` alone does not do this: it would read every record.
import type { Tokens } from "../core/evidence.ts";
import { AgentctlError } from "../core/problem.ts";
import { oneLine } from "../lib/width.ts";
import { estimateUsd, readPrices } from "../observe/cost.ts";
import { readCounts } from "../observe/counts.ts";
import type { Counts } from "../observe/tally.ts";
import { totalsCache } from "../observe/totals-cache.ts";
import type { Context } from "./command.ts";
import { readingOf, recordOf } from "./record-of.ts";
import type { Counted, Row } from "./sessions.ts";

const nothing: Counted = { tokens: null, denied: null, costUsd: null, costSource: null };

/** The row with its totals. A session without a record has none; a record that cannot be read is said and leaves them open. */
export async function count(row: Row, context: Context): Promise<Row> {
  if (row.session.record === null) return { ...row, counted: nothing };
  try {
    const totals = readingOf(row, () => readCounts(recordOf(row), totalsCache(context.env)));
    return { ...row, counted: await countedFrom(totals, row) };
  } catch (error) {
    if (!(error instanceof AgentctlError)) throw error;
    context.err(`agentctl: ${oneLine(error.message)}\n`);
    return { ...row, counted: nothing };
  }
}

/** For whoever looks again and again: a record that was not written to in between is not read again. */
export function countAgain(): typeof count {
  const known = new Map<string, { writtenAt: number | null; counted: Counted }>();
  return async (row, context) => {
    const { source = "", writtenAt = null } = row.session.record ?? {};
    const before = known.get(source);
    if (before !== undefined && before.writtenAt === writtenAt) return { ...row, counted: before.counted };
    const { counted = nothing } = await count(row, context);
    known.set(source, { writtenAt, counted });
    return { ...row, counted };
  };
}

export async function countedFrom({ tokens, denied, costUsd, byModel }: Counts, row: Row): Promise<Counted> {
  if (costUsd !== null) return { tokens, denied, costUsd, costSource: "agent" };
  if (tokens === null) return { ...nothing, denied };
  const estimate = estimateUsd(named(byModel, row.session.record?.facts.model ?? null), await readPrices());
  return { tokens, denied, costUsd: estimate, costSource: estimate === null ? null : "estimated" };
}

/** Lines that name no model are the session's. */
function named(byModel: ReadonlyMap<string, Tokens>, model: string | null): [string, Tokens][] {
  return [...byModel].map(([name, tokens]) => [name === "" ? (model ?? "") : name, tokens]);
}
