// The short references that tables show: prefixes of ids that stay the same while other sessions start (docs/decisions).
import { likeness, referenceLength, type Session, type SessionList } from "../core/session.ts";

export function shortestRefs(sessions: readonly Session[], unopened: SessionList["unopened"]): string[] {
  const refOf = refsAmong(idsOf(sessions), unopened);
  return sessions.map(({ id, processes }) => (id === null ? `pid:${processes[0]?.identity.pid ?? 0}` : refOf(id)));
}

/** The reference of one session that was looked for by its id. */
export const shortestRef = (id: string, { sessions, unopened }: SessionList): string =>
  refsAmong([id, ...idsOf(sessions)], unopened)(id);

const idsOf = (sessions: readonly Session[]): string[] => sessions.flatMap(({ id }) => id ?? []);

/** A prefix grows where it is not unique. References are compared without regard to case. */
function refsAmong(ids: readonly string[], unopened: SessionList["unopened"]): (id: string) => string {
  const own = [...new Set(ids.map((id) => id.toLowerCase()))].sort();
  const lengths = new Map<string, number>();
  for (const [index, id] of own.entries()) {
    const shared = Math.max(sharedPrefix(id, own[index - 1]), sharedPrefix(id, own[index + 1]));
    lengths.set(id, Math.max(referenceLength(id), shared + 1));
  }
  // There may be many unopened ids: each is compared only with the few that begin alike.
  const alike = Map.groupBy(own, (id) => id.slice(0, likeness));
  for (const store of unopened)
    for (const other of store.ids)
      for (const id of alike.get(other.slice(0, likeness).toLowerCase()) ?? none)
        lengths.set(id, Math.max(lengths.get(id) ?? 0, sharedPrefix(id, other.toLowerCase()) + 1));
  return (id) => id.slice(0, lengths.get(id.toLowerCase()) ?? id.length).replace(/-$/, "");
}

const none: readonly string[] = [];

function sharedPrefix(a: string, b: string | undefined): number {
  let length = 0;
  while (b !== undefined && length < a.length && a[length] === b[length]) length += 1;
  return length;
}
