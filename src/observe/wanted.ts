// Which of the sessions that nobody has, or may have, a question is about. The records of the others are not opened.

export type Wanted = "all" | WantedSome;

/** What is not said wants none. */
export interface WantedSome {
  readonly ids?: ReadonlySet<string>;
  /** Ids that begin so; in small letters, whatever theirs are. */
  readonly beginnings?: readonly string[];
  /** Written since then, as the file system or a database says; where nobody can tell, too. */
  readonly since?: number;
}

/** Who asks only for what runs or may run. */
export const noneStopped: WantedSome = {};

export const withIds = (ids: readonly (string | null | undefined)[]): WantedSome => ({
  ids: new Set(ids.filter((id) => id != null)),
});

/** Clocks differ, and a database may tell of its sessions a little late. */
const slackMs = 3_600_000;

export const writtenSince = (time: number): WantedSome => ({ since: time - slackMs });

export function wantedOr(one: Wanted, other: Wanted): Wanted {
  if (one === "all" || other === "all") return "all";
  const since = [one.since, other.since].filter((time) => time !== undefined);
  return {
    ids: new Set([...(one.ids ?? []), ...(other.ids ?? [])]),
    beginnings: [...(one.beginnings ?? []), ...(other.beginnings ?? [])],
    ...(since.length === 0 ? {} : { since: Math.min(...since) }),
  };
}
