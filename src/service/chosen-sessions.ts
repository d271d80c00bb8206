// The sessions that a request means: by references, or all that match a filter.
import { Failure } from "../core/failure.ts";
import type { Selection } from "../observe/selection.ts";
import type { Call } from "./call.ts";
import type { Rows, SessionRow } from "./look.ts";
import { lookFor, type ReferenceContext, resolve } from "./reference.ts";
import { type SessionFilter, selectionOf, selectRows } from "./select.ts";

export interface SessionChoice {
  references: readonly string[];
  /** null: only the references. */
  filter: SessionFilter | null;
}

export interface ChosenSession {
  /** The reference in the request; for a session that a filter matched, its id. */
  reference: string;
  row: SessionRow;
  /** The name for answers: the given reference; for a filtered session its name, if no other one has the same. */
  called: string;
}

/** One session given by its reference is one JSON value. A filter is a list, even if one session matches. */
export const isOne = ({ references, filter }: SessionChoice): boolean => references.length === 1 && filter === null;

export async function lookForChoice<T extends Rows>(
  { references, filter }: SessionChoice,
  context: ReferenceContext,
  look: (context: ReferenceContext, wanted: Selection) => Promise<T>,
): Promise<{ all: T; wanted: Selection }> {
  return await lookFor(references, context, look, selectionOf(filter, context));
}

export function chooseRows({ references, filter }: SessionChoice, all: Rows, call: Call): ChosenSession[] {
  const named = references.map((reference) => ({
    ...{ reference, called: reference },
    row: resolve(reference, all, call),
  }));
  const { selected, unknown } = filter === null ? { selected: [], unknown: [] } : selectRows(filter, all.rows);
  if (unknown.length > 0) call.onNotice({ code: "unknown-left-out", facts: { refs: unknown.map(({ ref }) => ref) } });
  if (filter !== null && selected.length === 0) throw new Failure("no-match", {});
  const byName = Map.groupBy(selected, ({ launch }) => launch?.name ?? null);
  const members = selected.map((row) => {
    const reference = row.session.id ?? row.ref;
    const name = row.launch?.name ?? null;
    return { reference, row, called: name !== null && byName.get(name)?.length === 1 ? name : reference };
  });
  const chosen = [...named, ...members];
  return [...new Map(chosen.map((each) => [each.row, each] as const)).values()];
}
