// Finds records of one home by their names. There may be ten thousand, and most questions are about a few: it searches one text of
// all file names, or lets the database search.
import type { Adapter, RecordSet } from "../agents/adapter.ts";
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
      const parts = filesIn(folders, set).map((file) => new DatabasePart(file, set, databases));
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
    return [new FilePart(home, folders, set)];
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

/** Every record of a home. `failures`: files and folders that could not be read, and may hide more records. */
export const findRecords = (adapter: Adapter, home: string): { visited: FoundRecord[]; failures: UnlistedFiles[] } =>
  visitNames(adapter, home, (names) => names.all());

export const visitRecords = <T>(
  adapter: Adapter,
  home: string,
  visit: (record: FoundRecord, read: ReadRecord) => T | null,
): { visited: T[]; failures: UnlistedFiles[] } =>
  visitNames(adapter, home, (names, databases) => visitFound(names.all(), visit, databases));

function visitNames<T>(
  adapter: Adapter,
  home: string,
  use: (names: RecordNames, databases: Databases) => T[],
): { visited: T[]; failures: UnlistedFiles[] } {
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

class FilePart implements Part {
  private searched: { text: string; bytes: Buffer } | null = null;

  constructor(
    readonly path: string,
    private readonly folders: readonly FoundFolder[],
    private readonly set: RecordSet,
  ) {}

  /** `//<number of the folder>/<name>/<name>…`: no name contains a slash. Searching bytes is many times as fast as searching text. */
  private search(): { text: string; bytes: Buffer } {
    if (this.searched !== null) return this.searched;
    const text = `${this.folders.map(({ names }, index) => `//${index}/${names.join("/")}`).join("")}/`;
    this.searched = { text, bytes: Buffer.from(text) };
    return this.searched;
  }

  all = (): FoundRecord[] => filesIn(this.folders, this.set).map((file) => ({ ...file, set: this.set }));

  like(ids: readonly string[], beginnings: readonly string[]): FoundRecord[] {
    const { text, bytes } = this.search();
    const isAscii = bytes.length === text.length;
    const isFew = ids.length + beginnings.length <= mostSought;
    if (!isFew || beginnings.some((start) => start.length < shortestSought || !isAscii)) return this.all();
    const places = new Set(ids.flatMap((id) => placesOf(id, bytes)));
    const small = beginnings.length === 0 ? text : text.toLowerCase();
    // Most names are in lower case already. Encoding the text again takes a millisecond.
    const lower = small === text ? bytes : Buffer.from(small);
    for (const start of beginnings) for (const place of placesOf(start, lower)) places.add(place);
    return [...places].flatMap((start) => this.recordAt(start, bytes) ?? []);
  }

  private recordAt(start: number, bytes: Buffer): FoundRecord | null {
    const upToSlash = (from: number): string => bytes.toString("utf8", from, bytes.indexOf(slash, from));
    const mark = bytes.lastIndexOf("//", start - 2);
    const folder = this.folders[Number(upToSlash(mark + 2))];
    const name = upToSlash(start);
    const subject = this.set.name.exec(name)?.[1];
    if (folder === undefined || subject === undefined || mark + 2 === start) return null;
    return { path: below(folder.path, name), subject, set: this.set };
  }
}

/** The positions at which names begin that contain this text. */
function placesOf(sought: string, bytes: Buffer): number[] {
  const places: number[] = [];
  const needle = Buffer.from(sought);
  for (let at = bytes.indexOf(needle); at !== -1; at = bytes.indexOf(needle, bytes.indexOf(slash, at + 1)))
    places.push(bytes.lastIndexOf(slash, at) + 1);
  return places;
}

class DatabasePart implements Part {
  readonly path: string;

  constructor(
    private readonly file: FoundFile,
    private readonly set: RecordSet,
    private readonly databases: Databases,
  ) {
    this.path = file.path;
  }

  all = (): FoundRecord[] => recordsInDatabase(this.file, this.set, this.databases, null);

  like = (ids: readonly string[], beginnings: readonly string[]): FoundRecord[] =>
    ids.length + beginnings.length > mostSought
      ? this.all()
      : recordsInDatabase(this.file, this.set, this.databases, { ids, beginnings, directories: [] });

  near = (directories: readonly string[]): FoundRecord[] =>
    directories.length > mostSought
      ? this.all()
      : recordsInDatabase(this.file, this.set, this.databases, { ids: [], beginnings: [], directories });
}
