// Finds conflicts between live sessions. Derived from git, from the sessions' records and from their directories; never stored.
import type { Session } from "../../core/session.ts";
import { repositoryOf } from "../../observe/dialogs.ts";
import type { Environment } from "../../observe/homes.ts";
import { mayHang, mountTable } from "../../observe/mounts.ts";
import { placeOf } from "../../observe/place.ts";
import { hasReleasedSession, notLiveIn, readNotes } from "../notes.ts";
import type { Conflict } from "./conflict-groups.ts";

export interface Live {
  session: Session;
  place: string;
  main: string;
}

export interface Conflicts {
  conflicts: Conflict[];
  /** The number of groups that were left out because there were too many. */
  omitted: number;
  /** Places where git failed or did not answer in time. */
  unseen: string[];
}

const none: Conflicts = { conflicts: [], omitted: 0, unseen: [] };

export async function conflictsOf(sessions: readonly Session[], env: Environment): Promise<Conflicts> {
  const running = sessions.filter(({ status }) => status.state === "running");
  if (running.length < 2) return none;
  const mounts = mountTable();
  const directories = new Set(running.map(({ cwd }) => cwd));
  const places = new Map([...directories].map((cwd) => [cwd, findPlace(cwd, mounts)]));
  const live = running.flatMap((session): Live[] => {
    const found = places.get(session.cwd) ?? null;
    return found === null || mayHang(session.home, mounts) ? [] : [{ session, ...found }];
  });
  const near = [...Map.groupBy(live, ({ main }) => main).values()].filter(areUnrelated);
  if (near.length === 0) return none;
  const exiting = findExiting(near.flat(), sessions, env);
  const repositories = near.map((all) => all.filter((each) => !exiting.has(each))).filter(areUnrelated);
  if (repositories.length === 0) return none;
  const { changedFiles, editedFiles } = await import("./changed-files.ts");
  const { conflictsAmong } = await import("./conflict-groups.ts");
  const { files, unseen } = await changedFiles(new Set(repositories.flatMap(severalPlaces)), env);
  const found = repositories.map((all) => {
    const neighbours = all.map((live) => ({ ...live, edited: new Set(editedFiles(live)) }));
    return conflictsAmong(neighbours, files);
  });
  const omitted = found.reduce((sum, each) => sum + each.omitted, 0);
  return { conflicts: found.flatMap(({ conflicts }) => conflicts), omitted, unseen };
}

/** A session and its parent share their place on purpose. */
function areUnrelated(live: readonly Live[]): boolean {
  const [first, ...others] = live;
  if (first === undefined || others.length !== 1) return others.length > 1;
  return others.every(({ session }) => !isKin(first.session, session));
}

/** In a single worktree git cannot tell whose change it is, so git runs only if a repository has several. */
function severalPlaces(live: readonly Live[]): string[] {
  const places = [...new Set(live.map(({ place }) => place))];
  return places.length > 1 ? places : [];
}

/** null: not in a repository, or on a network disk that may not answer. */
function findPlace(cwd: string | null, mounts: string): Omit<Live, "session"> | null {
  if (mayHang(cwd ?? "/", mounts)) return null;
  const place = placeOf(cwd, mounts);
  const repository = place === null ? null : repositoryOf(place);
  return place === null || repository === null ? null : { place, main: repository.main };
}

/** Processes that are done and about to exit. The notes are read only if a process has no session. */
function findExiting(live: readonly Live[], sessions: readonly Session[], env: Environment): Set<Live> {
  const nameless = live.filter(({ session }) => session.id === null);
  if (nameless.length === 0) return new Set();
  const { notes } = readNotes(env);
  const isOver = notLiveIn(sessions);
  return new Set(nameless.filter(({ session }) => hasReleasedSession(session, notes, isOver)));
}

const isKin = (a: Session, b: Session): boolean =>
  (a.parent !== null && a.parent === b.id) || (b.parent !== null && b.parent === a.id);
