// Groups of conflicting sessions: all that work in one worktree, and all that have changed the same files. Groups, not pairs: five
// hundred sessions in one worktree are one conflict.
import { isBusy, type Session } from "../../core/session.ts";

export interface Conflict {
  /** "index": all work in one worktree. "file": all have changed these files. */
  kind: "index" | "file";
  sessions: Session[];
  files: string[];
}

export interface Neighbour {
  session: Session;
  place: string;
  /** The files that it has changed by its record, relative to the place. */
  edited: ReadonlySet<string>;
}

/** Files with the same set of sessions form one group; there may be a group for each file. */
const maxFileConflicts = 100;

/** `dirty`: the changed files by git, by place. The neighbors are the sessions of one repository. */
export function conflictsAmong(
  neighbours: readonly Neighbour[],
  dirty: ReadonlyMap<string, readonly string[]>,
): { conflicts: Conflict[]; omitted: number } {
  const places = Map.groupBy(neighbours, ({ place }) => place);
  const shared = [...places.values()].flatMap((inside): Conflict[] => {
    const busy = inside.filter(({ session }) => isBusy(session));
    const sessions = unrelated(busy, new Set(busy)).map(({ session }) => session);
    return sessions.length < 2 ? [] : [{ kind: "index", sessions, files: [] }];
  });
  const { conflicts, omitted } = fileConflicts(neighbours, places, dirty);
  return { conflicts: [...shared, ...conflicts], omitted };
}

interface Traces {
  editors: Neighbour[];
  /** The places where git shows the file as changed. In a shared worktree any session may have changed it. */
  dirtyPlaces: string[];
}

function fileConflicts(
  neighbours: readonly Neighbour[],
  places: ReadonlyMap<string, readonly Neighbour[]>,
  dirty: ReadonlyMap<string, readonly string[]>,
): { conflicts: Conflict[]; omitted: number } {
  const traces = new Map<string, Traces>();
  const tracesOf = (file: string): Traces => {
    const known = traces.get(file) ?? { editors: [], dirtyPlaces: [] };
    traces.set(file, known);
    return known;
  };
  for (const each of neighbours) for (const file of each.edited) tracesOf(file).editors.push(each);
  for (const place of places.keys())
    for (const file of new Set(dirty.get(place))) tracesOf(file).dirtyPlaces.push(place);
  const numbers = new Map([...neighbours, ...places.keys()].map((each, number) => [each, number]));
  const keyOf = ({ editors, dirtyPlaces }: Traces): string =>
    [...editors, "", ...dirtyPlaces].map((each) => numbers.get(each) ?? "").join(" ");
  const shared = [...traces].filter(([, each]) => mayConflict(each));
  const alike = [...Map.groupBy(shared, ([, each]) => keyOf(each)).values()];
  const groups = new Map<string, Conflict>();
  for (const files of alike.slice(0, maxFileConflicts)) {
    const { editors, dirtyPlaces } = files[0]?.[1] ?? { editors: [], dirtyPlaces: [] };
    const involved = new Set([...editors, ...dirtyPlaces.flatMap((place) => places.get(place) ?? [])]);
    const members = unrelated([...involved], new Set(editors));
    members.sort((a, b) => (numbers.get(a) ?? 0) - (numbers.get(b) ?? 0));
    if (members.length < 2) continue;
    const key = members.map((each) => numbers.get(each)).join(" ");
    const group = groups.get(key) ?? { kind: "file", sessions: members.map(({ session }) => session), files: [] };
    group.files.push(...files.map(([file]) => file));
    groups.set(key, group);
  }
  const conflicts = [...groups.values()].map((group) => ({ ...group, files: group.files.sort() }));
  return { conflicts, omitted: Math.max(0, alike.length - maxFileConflicts) };
}

const mayConflict = ({ editors, dirtyPlaces }: Traces): boolean =>
  editors.length > 1 || new Set([...dirtyPlaces, ...editors.map(({ place }) => place)]).size > 1;

/**
 * The members that conflict with a session other than their parent and their children, which share on purpose. Two members
 * conflict if they are in different places, or if both are `known` to have changed the file. Counting avoids comparing pairs.
 */
function unrelated(members: readonly Neighbour[], known: ReadonlySet<Neighbour>): Neighbour[] {
  const inPlace = Map.groupBy(members, ({ place }) => place);
  const knownIn = Map.groupBy(known, ({ place }) => place);
  const byId = Map.groupBy(members, ({ session }) => session.id);
  const byParent = Map.groupBy(members, ({ session }) => session.parent);
  return members.filter((each) => {
    const { place, session } = each;
    const elsewhere = members.length - (inPlace.get(place)?.length ?? 0);
    const beside = known.has(each) ? (knownIn.get(place)?.length ?? 0) - 1 : 0;
    const kin = new Set([
      ...(session.parent === null ? [] : (byId.get(session.parent) ?? [])),
      ...(session.id === null ? [] : (byParent.get(session.id) ?? [])),
    ]);
    kin.delete(each);
    const met = [...kin].filter((other) => other.place !== place || (known.has(each) && known.has(other)));
    return elsewhere + beside - met.length > 0;
  });
}
