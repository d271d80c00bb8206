// Finds records of one home by their names. There may be ten thousand, and most questions are about a few: it searches one text of
// all file names, or lets the database search.
import type { Adapter, LikeNames, RecordSet } from "../agents/adapter.ts";
import { errorCode, isGone } from "../lib/errors.ts";
import { Databases } from "../sys/sqlite.ts";
import { failureOf } from "./failure.ts";
import { below, type FoundFile, type FoundFolder, filesIn, listFolders } from "./files.ts";
import {
  type FoundRecord,
  isDatabase,
  type ReadRecord,
  recordIn,
  recordsInDatabase,
  type UnlistedFiles,
  visitFound,
} from "./records.ts";

/** Ids, and prefixes of ids in lower case. */
export interface Like {
  ids?: Iterable<string>;
  beginnings?: Iterable<string>;
}

interface Part {
  path: string;
  all(): FoundRecord[];
  /** At least the matching records. */
  like(ids: readonly string[], beginnings: readonly string[]): FoundRecord[];
  /** At least the records of these directories. Absent: the names do not tell directories. */
  near?(directories: readonly string[]): FoundRecord[];
}

export class RecordNames {
  /** Files and folders that could not be read, and may hide more records. */
  readonly failures: UnlistedFiles[] = [];
  private readonly parts: Part[];
  private known: FoundRecord[] | null = null;

  constructor(
    private readonly adapter: Adapter,
    home: string,
    databases: Databases,
  ) {
    const sets = adapter.records.toSorted((a, b) => Number(a.isOld ?? false) - Number(b.isOld ?? false));
    this.parts = sets.flatMap((set) => this.partsOf(set, home, databases));
  }

  all(): FoundRecord[] {
    this.known ??= this.chosen((part) => part.all());
    return this.known;
  }

  /** The records with one of these ids, or with an id that begins like one of `beginnings`. */
  like({ ids = [], beginnings = [] }: Like): FoundRecord[] {
    // The ids come from arguments and notes, so they may be any text.
    const wanted = new Set([...ids].filter((id) => this.adapter.isId(id)));
    const starts = [...beginnings].filter((start) => start !== "" && !start.includes("/"));
    if (wanted.size === 0 && starts.length === 0) return [];
    const isLike = ({ subject }: FoundRecord): boolean =>
      wanted.has(subject) || starts.some((start) => subject.toLowerCase().startsWith(start));
    return this.chosen((part) => part.like([...wanted], starts)).filter(isLike);
  }

  /** At least the records of these directories; null: all records. */
  near(directories: ReadonlySet<string> | null): FoundRecord[] {
    // A record of an old set counts only if no newer set has it, so every set must know its directories.
    const isTold = this.parts.every((part) => part.near !== undefined || part.all().length === 0);
    if (directories === null || !isTold) return this.all();
    return this.chosen((part) => part.near?.([...directories]) ?? []);
  }

  private partsOf(set: RecordSet, home: string, databases: Databases): Part[] {
    const { folders, failures } = listFolders(home, set);
    this.failures.push(...failures.map((failure) => ({ ...failure, begins: null })));
    if (isDatabase(set)) {
      const parts = filesIn(folders, set).map((file) => databasePart(file, set, databases));
      // One query each, to notice now if a database cannot be read.
      for (const part of parts) this.attempted(part.path, () => part.like([], []));
      return parts;
    }
    // The id is inside the file, or is the name of its folder.
    if (set.idIn !== undefined || set.inside !== undefined) {
      const records = filesIn(folders, set).flatMap((file) =>
        this.attempted(file.path, () => [recordIn(file, set)], set.idBegins?.(file.subject)),
      );
      return [{ path: home, all: () => records, like: () => records }];
    }
    return [filePart(home, folders, set)];
  }

  /** The record of a session in a newer set replaces the one in an older set. */
  private chosen(recordsOf: (part: Part) => FoundRecord[]): FoundRecord[] {
    const newer = new Set<string>();
    return this.parts.flatMap((part) => {
      const found = this.attempted(part.path, () => recordsOf(part)).filter(
        ({ subject, set }) => this.adapter.isId(subject) && !(set.isOld === true && newer.has(subject)),
      );
      if (this.parts.length > 1) for (const { subject } of found) newer.add(subject);
      return found;
    });
  }

  /** Returns no records if the file cannot be read, and adds the failure to `failures`. */
  private attempted(path: string, records: () => FoundRecord[], begins: string | null = null): FoundRecord[] {
    try {
      return records();
    } catch (error) {
      if (isGone(error)) return [];
      if (errorCode(error) === "") throw error;
      if (!this.failures.some((failure) => failure.path === path))
        this.failures.push({ path, detail: failureOf(error), begins });
      return [];
    }
  }
}

export const findRecords = (adapter: Adapter, home: string): Visited<FoundRecord> =>
  visitNames(adapter, home, (names) => names.all());

interface Visited<T> {
  visited: T[];
  failures: UnlistedFiles[];
}

export const visitRecords = <T>(
  adapter: Adapter,
  home: string,
  visit: (record: FoundRecord, read: ReadRecord) => T | null,
): Visited<T> => visitNames(adapter, home, (names, databases) => visitFound(names.all(), visit, databases));

function visitNames<T>(
  adapter: Adapter,
  home: string,
  use: (names: RecordNames, databases: Databases) => T[],
): Visited<T> {
  const databases = new Databases();
  try {
    const names = new RecordNames(adapter, home, databases);
    return { visited: use(names, databases), failures: names.failures };
  } finally {
    databases.close();
  }
}

/** A shorter text would match nearly every name. */
const shortestSought = 4;

/** For more texts, one pass over all names is faster, and the number of values in a query is limited. */
const mostSought = 500;

const slash = 47;

function filePart(path: string, folders: readonly FoundFolder[], set: RecordSet): Part {
  const all = (): FoundRecord[] => filesIn(folders, set).map((file) => ({ ...file, set }));
  let searched: { text: string; bytes: Buffer } | null = null;

  /** `//<number of the folder>/<name>/<name>…`: no name contains a slash. Searching bytes is many times as fast as searching text. */
  function search(): { text: string; bytes: Buffer } {
    if (searched !== null) return searched;
    const text = `${folders.map(({ names }, index) => `//${index}/${names.join("/")}`).join("")}/`;
    searched = { text, bytes: Buffer.from(text) };
    return searched;
  }

  function like(ids: readonly string[], beginnings: readonly string[]): FoundRecord[] {
    const { text, bytes } = search();
    const isAscii = bytes.length === text.length;
    const isFew = ids.length + beginnings.length <= mostSought;
    if (!isFew || beginnings.some((start) => start.length < shortestSought || !isAscii)) return all();
    const places = new Set(ids.flatMap((id) => placesOf(id, bytes)));
    const small = beginnings.length === 0 ? text : text.toLowerCase();
    // Most names are in lower case already. Encoding the text again takes a millisecond.
    const lower = small === text ? bytes : Buffer.from(small);
    for (const start of beginnings) for (const place of placesOf(start, lower)) places.add(place);
    return [...places].flatMap((start) => recordFrom(start, bytes) ?? []);
  }

  function recordFrom(start: number, bytes: Buffer): FoundRecord | null {
    const upToSlash = (from: number): string => bytes.toString("utf8", from, bytes.indexOf(slash, from));
    const mark = bytes.lastIndexOf("//", start - 2);
    const folder = folders[Number(upToSlash(mark + 2))];
    const name = upToSlash(start);
    const subject = set.name.exec(name)?.[1];
    if (folder === undefined || subject === undefined || mark + 2 === start) return null;
    return { path: below(folder.path, name), subject, set };
  }

  return { path, all, like };
}

/** The positions at which names begin that contain this text. */
function placesOf(sought: string, bytes: Buffer): number[] {
  const places: number[] = [];
  const needle = Buffer.from(sought);
  for (let at = bytes.indexOf(needle); at !== -1; at = bytes.indexOf(needle, bytes.indexOf(slash, at + 1)))
    places.push(bytes.lastIndexOf(slash, at) + 1);
  return places;
}

function databasePart({ path }: FoundFile, set: RecordSet, databases: Databases): Part {
  const all = (): FoundRecord[] => recordsInDatabase(path, set, databases, null);
  const search = ({ ids = [], beginnings = [], directories = [] }: Partial<LikeNames>): FoundRecord[] =>
    ids.length + beginnings.length + directories.length > mostSought
      ? all()
      : recordsInDatabase(path, set, databases, { ids, beginnings, directories });
  return {
    ...{ path, all },
    like: (ids, beginnings) => search({ ids, beginnings }),
    near: (directories) => search({ directories }),
  };
}
