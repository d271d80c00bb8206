// Selects stopped sessions. Their records are opened in addition to those of sessions that are or may be running.

export type Selection = "all" | SelectionCriteria;

/** A session is selected if it meets any criterion. Omitted criteria select nothing. */
export interface SelectionCriteria {
  readonly ids?: ReadonlySet<string>;
  /** Prefixes of ids, in lower case; ids are compared without regard to case. */
  readonly beginnings?: readonly string[];
  /** Selects records written at or after this time, and records whose time is unknown. */
  readonly since?: number;
}

/** Selects only sessions that are or may be running. */
export const liveOnly: SelectionCriteria = {};

export const selectIds = (ids: readonly (string | null | undefined)[]): SelectionCriteria => ({
  ids: new Set(ids.filter((id) => id != null)),
});

/** Clocks differ, and a database may update a session's time late. */
const slackMs = 3_600_000;

export const selectWrittenSince = (time: number): SelectionCriteria => ({ since: time - slackMs });

export function joinSelections(one: Selection, other: Selection): Selection {
  if (one === "all" || other === "all") return "all";
  const since = [one.since, other.since].filter((time) => time !== undefined);
  return {
    ids: new Set([...(one.ids ?? []), ...(other.ids ?? [])]),
    beginnings: [...(one.beginnings ?? []), ...(other.beginnings ?? [])],
    ...(since.length === 0 ? {} : { since: Math.min(...since) }),
  };
}
