// Two live sessions in each other's way: derived from git, from their records and from where they are; never stored.
import { relative, resolve } from "node:path";
import { adapterNamed } from "../adapters/registry.ts";
import type { Session } from "../core/session.ts";
import { deadlineIn, within } from "../lib/deadline.ts";
import { entriesBackward, readHistory } from "../observe/conversation.ts";
import { repositoryOf } from "../observe/dialogs.ts";
import { errorCode } from "../observe/failure.ts";
import type { Environment } from "../observe/homes.ts";
import { mayHang, mountTable } from "../observe/mounts.ts";
import { placeOf } from "../observe/place.ts";
import { recordAt } from "../observe/records.ts";
import { isBusy } from "./places.ts";
import { dirtyFiles } from "./worktrees.ts";

export interface Conflict {
  /** "index": they work in one worktree. "file": both have changed the same files. */
  kind: "index" | "file";
  sessions: [Session, Session];
  files: string[];
}

interface Live {
  session: Session;
  place: string;
  /** The repository that its place belongs to. */
  main: string;
}

/** A repository that takes longer to look at is passed over: a list must not wait for it. */
const patienceMs = 400;

export async function conflictsOf(sessions: readonly Session[], env: Environment): Promise<Conflict[]> {
  const mounts = mountTable();
  const live = sessions.flatMap((session): Live[] => {
    // Nobody waits here for a server that does not answer.
    if (mayHang(session.cwd ?? "/", mounts) || mayHang(session.home, mounts)) return [];
    const place = session.status.state === "running" ? placeOf(session.cwd) : null;
    const main = place === null ? null : (repositoryOf(place)?.main ?? null);
    return place === null || main === null ? [] : [{ session, place, main }];
  });
  const pairs = live.flatMap((a, index) =>
    live.slice(index + 1).flatMap((b) => (a.main === b.main && !isKin(a.session, b.session) ? [[a, b] as const] : [])),
  );
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

/** A session and the one that it was started from share their place on purpose. */
const isKin = (a: Session, b: Session): boolean =>
  (a.parent !== null && a.parent === b.id) || (b.parent !== null && b.parent === a.id);

async function changedFiles(places: ReadonlySet<string>, env: Environment): Promise<Map<string, string[]>> {
  const deadline = deadlineIn(patienceMs);
  const found = await Promise.all(
    [...places].map(
      async (place) =>
        [
          place,
          (await within(
            deadline,
            dirtyFiles(place, env).catch(() => []),
          )) ?? [],
        ] as const,
    ),
  );
  return new Map(found);
}

const lookedAt = 300;
const editing = /write|edit|patch|create|replace|insert/i;

/** Of its last calls those of tools that change files, by the path that they are about; from the place's root. */
function editedFiles({ session: { agent, home, id, record, cwd }, place }: Live): string[] {
  const adapter = adapterNamed(agent);
  if (adapter === null || record === null || id === null) return [];
  try {
    const { own } = readHistory({ adapter, home, file: recordAt(adapter, record.source, id) });
    const paths = entriesBackward(adapter, [own])
      .take(lookedAt)
      .toArray()
      .flatMap((entry) => (entry.kind === "known" ? entry.facts.messages : []))
      .filter(({ role, tool }) => role === "tool" && tool !== null && editing.test(tool))
      .map(({ text }) => relative(place, resolve(cwd ?? place, text)));
    return paths.filter((path) => path !== "" && !path.startsWith("..") && !/[\n\0]/.test(path));
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return [];
  }
}
