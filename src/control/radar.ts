// Two live sessions in each other's way: derived from git, from their records and from where they are; never stored.
import type { Session } from "../core/session.ts";
import { repositoryOf } from "../observe/dialogs.ts";
import type { Environment } from "../observe/homes.ts";
import { mayHang, mountTable } from "../observe/mounts.ts";
import { placeOf } from "../observe/place.ts";
import type { Conflict } from "./conflict-groups.ts";
import { hasLetGo, notLiveIn } from "./leaving.ts";
import { readNotes } from "./notes.ts";

export interface Live {
  session: Session;
  place: string;
  /** The repository that its place belongs to. */
  main: string;
}

export interface Conflicts {
  conflicts: Conflict[];
  /** Groups of files that are not among them: there were too many. */
  omitted: number;
  /** Places whose changed files git did not tell in time, or could not. */
  unseen: string[];
}

const none: Conflicts = { conflicts: [], omitted: 0, unseen: [] };

export async function conflictsOf(sessions: readonly Session[], env: Environment): Promise<Conflicts> {
  const running = sessions.filter(({ status }) => status.state === "running");
  if (running.length < 2) return none;
  const mounts = mountTable();
  const directories = new Set(running.map(({ cwd }) => cwd));
  const places = new Map([...directories].map((cwd) => [cwd, whereIs(cwd, mounts)]));
  const live = running.flatMap((session): Live[] => {
    const found = places.get(session.cwd) ?? null;
    return found === null || mayHang(session.home, mounts) ? [] : [{ session, ...found }];
  });
  const near = repositoriesOf(live).filter(haveStrangers);
  if (near.length === 0) return none;
  const gone = goneOf(near.flat(), sessions, env);
  const repositories = near.map((all) => all.filter((each) => !gone.has(each))).filter(haveStrangers);
  if (repositories.length === 0) return none;
  const { changedFiles, editedFiles } = await import("./changed-files.ts");
  const { conflictsAmong } = await import("./conflict-groups.ts");
  const { files, unseen } = await changedFiles(new Set(repositories.flatMap(severalPlaces)), env);
  const found = repositories.map((all) =>
    conflictsAmong(
      all.map(({ session, place, main }) => ({
        ...{ session, place },
        edited: new Set(editedFiles({ session, place, main })),
      })),
      files,
    ),
  );
  const omitted = found.reduce((sum, each) => sum + each.omitted, 0);
  return { conflicts: found.flatMap(({ conflicts }) => conflicts), omitted, unseen };
}

const repositoriesOf = (live: readonly Live[]): Live[][] => [...Map.groupBy(live, ({ main }) => main).values()];

/** A session and the one that it was started from share their place on purpose. */
function haveStrangers(live: readonly Live[]): boolean {
  const [first, ...others] = live;
  if (first === undefined || others.length !== 1) return others.length > 1;
  return others.every(({ session }) => !isKin(first.session, session));
}

/** In one worktree nobody can tell whose change it is, so git is asked only where there are several. */
function severalPlaces(live: readonly Live[]): string[] {
  const places = [...new Set(live.map(({ place }) => place))];
  return places.length > 1 ? places : [];
}

/** null: in no repository, or in none that we could look at without waiting for a server that does not answer. */
function whereIs(cwd: string | null, mounts: string): Omit<Live, "session"> | null {
  if (mayHang(cwd ?? "/", mounts)) return null;
  const place = placeOf(cwd, mounts);
  const repository = place === null ? null : repositoryOf(place);
  return place === null || repository === null ? null : { place, main: repository.main };
}

/** Those that are done, and only take their time to end. The notes are read only where somebody has no session. */
function goneOf(live: readonly Live[], sessions: readonly Session[], env: Environment): Set<Live> {
  const nameless = live.filter(({ session }) => session.id === null);
  if (nameless.length === 0) return new Set();
  const { notes } = readNotes(env);
  const isOver = notLiveIn(sessions);
  return new Set(nameless.filter(({ session }) => hasLetGo(session, notes, isOver)));
}

const isKin = (a: Session, b: Session): boolean =>
  (a.parent !== null && a.parent === b.id) || (b.parent !== null && b.parent === a.id);
