// Two live sessions in each other's way: derived from git, from their records and from where they are; never stored.
import { isBusy, type Session } from "../core/session.ts";
import { repositoryOf } from "../observe/dialogs.ts";
import type { Environment } from "../observe/homes.ts";
import { mayHang, mountTable } from "../observe/mounts.ts";
import { placeOf } from "../observe/place.ts";
import { hasLetGo, notLiveIn } from "./leaving.ts";
import { readNotes } from "./notes.ts";

export interface Conflict {
  /** "index": they work in one worktree. "file": both have changed the same files. */
  kind: "index" | "file";
  sessions: [Session, Session];
  files: string[];
}

export interface Live {
  session: Session;
  place: string;
  /** The repository that its place belongs to. */
  main: string;
}

export async function conflictsOf(sessions: readonly Session[], env: Environment): Promise<Conflict[]> {
  const running = sessions.filter(({ status }) => status.state === "running");
  if (running.length < 2) return [];
  const mounts = mountTable();
  const directories = new Set(running.map(({ cwd }) => cwd));
  const places = new Map([...directories].map((cwd) => [cwd, whereIs(cwd, mounts)]));
  const live = running.flatMap((session): Live[] => {
    const found = places.get(session.cwd) ?? null;
    return found === null || mayHang(session.home, mounts) ? [] : [{ session, ...found }];
  });
  const neighbours = Map.groupBy(live, ({ main }) => main);
  const near = live.filter(({ main }) => neighbours.get(main)?.length !== 1);
  const meeting = near.flatMap((a, index) =>
    near.slice(index + 1).flatMap((b) => (a.main === b.main && !isKin(a.session, b.session) ? [[a, b] as const] : [])),
  );
  const gone = goneOf(meeting.flat(), sessions, env);
  const pairs = meeting.filter((pair) => !pair.some((each) => gone.has(each)));
  if (pairs.length === 0) return [];
  const { changedFiles, editedFiles } = await import("./changed-files.ts");
  const apart = pairs.filter(([a, b]) => a.place !== b.place);
  const dirty = await changedFiles(new Set(apart.flat().map(({ place }) => place)), env);
  const edited = new Map([...new Set(pairs.flat())].map((each) => [each, editedFiles(each)]));
  return pairs.flatMap(([a, b]): Conflict[] => {
    const both: [Session, Session] = [a.session, b.session];
    const isShared = a.place === b.place;
    const filesOf = (each: Live): string[] => [
      ...(edited.get(each) ?? []),
      // In one worktree nobody can tell whose change it is.
      ...(isShared ? [] : (dirty.get(each.place) ?? [])),
    ];
    const theirs = new Set(filesOf(b));
    const files = [...new Set(filesOf(a))].filter((file) => theirs.has(file)).sort();
    return [
      ...(isShared && both.every(isBusy) ? [{ kind: "index" as const, sessions: both, files: [] }] : []),
      ...(files.length > 0 ? [{ kind: "file" as const, sessions: both, files }] : []),
    ];
  });
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
  return new Set(nameless.filter(({ session }) => hasLetGo(session, notes, notLiveIn(sessions))));
}

/** A session and the one that it was started from share their place on purpose. */
const isKin = (a: Session, b: Session): boolean =>
  (a.parent !== null && a.parent === b.id) || (b.parent !== null && b.parent === a.id);
