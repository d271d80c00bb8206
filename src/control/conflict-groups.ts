// Sessions in each other's way, as groups: all that work in one worktree, all that have changed the same files. No pairs are made:
// five hundred sessions in one worktree are one conflict.
import { isBusy, type Session } from "../core/session.ts";

export interface Conflict {
  /** "index": they work in one worktree. "file": all of them have changed these files. */
  kind: "index" | "file";
  /** Two or more. */
  sessions: Session[];
  files: string[];
}

export interface Neighbour {
  session: Session;
  place: string;
  /** What it has changed by its own record, from the place's root. */
  edited: ReadonlySet<string>;
}

/** Groups of files are told apart by who has changed them; there may be one for each file. */
const mostFileConflicts = 100;

/** `dirty`: what git calls changed, by place. The neighbours are those of one repository. */
export function conflictsAmong(
  neighbours: readonly Neighbour[],
  dirty: ReadonlyMap<string, readonly string[]>,
): { conflicts: Conflict[]; omitted: number } {
  const places = Map.groupBy(neighbours, ({ place }) => place);
  const shared = [...places.values()].flatMap((inside): Conflict[] => {
    const busy = inside.filter(({ session }) => isBusy(session));
    const sessions = strangers(busy, new Set(busy)).map(({ session }) => session);
    return sessions.length < 2 ? [] : [{ kind: "index", sessions, files: [] }];
  });
  const { conflicts, omitted } = fileConflicts(neighbours, places, dirty);
  return { conflicts: [...shared, ...conflicts], omitted };
}

/** Who has changed a file. */
interface Traces {
  editors: Neighbour[];
  /** Where git calls it changed. In one worktree nobody can tell whose change that is. */
  dirtyPlaces: string[];
}

function fileConflicts(
  neighbours: readonly Neighbour[],
  places: ReadonlyMap<string, readonly Neighbour[]>,
  dirty: ReadonlyMap<string, readonly string[]>,
): { conflicts: Conflict[]; omitted: number } {
  const numbers = new Map([...neighbours, ...places.keys()].map((each, number) => [each, number]));
  const keyOf = ({ editors, dirtyPlaces }: Traces): string =>
    [...editors, "", ...dirtyPlaces].map((each) => numbers.get(each) ?? "").join(" ");
  const traces = [...tracesOf(neighbours, places, dirty)].filter(([, each]) => mayConflict(each));
  const alike = [...Map.groupBy(traces, ([, each]) => keyOf(each)).values()];
  const groups = new Map<string, Conflict>();
  for (const files of alike.slice(0, mostFileConflicts)) {
    const [first] = files;
    const members = first === undefined ? [] : membersOf(first[1], places);
    members.sort((a, b) => (numbers.get(a) ?? 0) - (numbers.get(b) ?? 0));
    if (members.length < 2) continue;
    const key = members.map((each) => numbers.get(each)).join(" ");
    const group = groups.get(key) ?? { kind: "file", sessions: members.map(({ session }) => session), files: [] };
    group.files.push(...files.map(([file]) => file));
    groups.set(key, group);
  }
  const conflicts = [...groups.values()].map((group) => ({ ...group, files: group.files.sort() }));
  return { conflicts, omitted: Math.max(0, alike.length - mostFileConflicts) };
}

function tracesOf(
  neighbours: readonly Neighbour[],
  places: ReadonlyMap<string, readonly Neighbour[]>,
  dirty: ReadonlyMap<string, readonly string[]>,
): Map<string, Traces> {
  const traces = new Map<string, Traces>();
  const of = (file: string): Traces => {
    const known = traces.get(file) ?? { editors: [], dirtyPlaces: [] };
    traces.set(file, known);
    return known;
  };
  for (const each of neighbours) for (const file of each.edited) of(file).editors.push(each);
  for (const place of places.keys()) for (const file of new Set(dirty.get(place))) of(file).dirtyPlaces.push(place);
  return traces;
}

const mayConflict = ({ editors, dirtyPlaces }: Traces): boolean =>
  editors.length > 1 || new Set([...dirtyPlaces, ...editors.map(({ place }) => place)]).size > 1;

function membersOf({ editors, dirtyPlaces }: Traces, places: ReadonlyMap<string, readonly Neighbour[]>): Neighbour[] {
  const members = new Set([...editors, ...dirtyPlaces.flatMap((place) => places.get(place) ?? [])]);
  return strangers([...members], new Set(editors));
}

/**
 * Those who meet somebody other than the session that they were started from, or that they have started: these share on purpose.
 * Two meet if they are in different places, or if both are `known` to have done it. Counted, so that many members cost no pairs.
 */
function strangers(members: readonly Neighbour[], known: ReadonlySet<Neighbour>): Neighbour[] {
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
