// Finds and opens the files of a store. Never waits for a pipe, never opens a device, never writes.
import { closeSync, constants, type Dirent, fstatSync, openSync, readdirSync, statSync } from "node:fs";
import { basename } from "node:path";
import type { FileSet } from "../agents/adapter.ts";
import type { ProblemDetail } from "../core/problem.ts";
import { errorWith, isGone, requireRegularFile } from "../lib/errors.ts";
import { type Bytes, readChunk } from "../lib/jsonl.ts";
import { failureOf } from "./failure.ts";

export const ownUid = process.getuid?.() ?? -1;

export interface FoundFile {
  path: string;
  /** The session id or pid in the name of the file. */
  subject: string;
}

/** Folders that exist but could not be listed: they may contain more files. */
type Unlisted = { path: string; detail: ProblemDetail }[];

export interface FileSearch {
  files: FoundFile[];
  failures: Unlisted;
}

export interface FoundFolder {
  path: string;
  names: readonly string[];
}

/** Finds the files of a set below a home, sorted. A missing folder is empty. */
export function findFiles(home: string, set: FileSet): FileSearch {
  const { folders, failures } = listFolders(home, set);
  return { files: filesIn(folders, set), failures };
}

/** The folders of a set that are not empty. There may be ten thousand names, so no name is examined here. */
export function listFolders(home: string, { folder, inside }: FileSet): { folders: FoundFolder[]; failures: Unlisted } {
  const failures: Unlisted = [];
  let paths = [home];
  for (const part of folder.split("/"))
    paths = part === "*" ? paths.flatMap((path) => subfolders(path, failures)) : paths.map((path) => below(path, part));
  const meant = inside === undefined ? paths : paths.filter((path) => inside.test(basename(path)));
  const folders = meant.map((path) => ({ path, names: noted(path, failures, [], () => readdirSync(path)) }));
  return { folders: folders.filter(({ names }) => names.length > 0), failures };
}

export function filesIn(folders: readonly FoundFolder[], { name: wanted, inside }: FileSet): FoundFile[] {
  const files: FoundFile[] = [];
  for (const { path, names } of folders) {
    const around = inside?.exec(basename(path))?.[1];
    for (const name of names.toSorted()) {
      const match = wanted.exec(name);
      const subject = match === null ? undefined : (match[1] ?? around);
      if (subject !== undefined) files.push({ path: below(path, name), subject });
    }
  }
  return files;
}

export const below = (folder: string, name: string): string =>
  name === "" ? folder : folder === "/" ? `/${name}` : `${folder}/${name}`;

/** Adds a failure of the call to `failures`, unless the path does not exist, and returns `otherwise`. */
function noted<T>(path: string, failures: Unlisted, otherwise: T, call: () => T): T {
  try {
    return call();
  } catch (error) {
    if (!isGone(error)) failures.push({ path, detail: failureOf(error) });
    return otherwise;
  }
}

/** Skips files. A link counts if it leads to a folder. */
function subfolders(folder: string, failures: Unlisted): string[] {
  const isFolder = (entry: Dirent): boolean => {
    const path = below(folder, entry.name);
    if (!entry.isSymbolicLink()) return entry.isDirectory();
    return noted(path, failures, false, () => statSync(path).isDirectory());
  };
  const entries = noted(folder, failures, [], () => readdirSync(folder, { withFileTypes: true }));
  const sorted = entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  return sorted.filter(isFolder).map(({ name }) => below(folder, name));
}

export interface OpenFile extends FileFacts {
  /** The open file, or the content that an adapter assembled. */
  bytes: Bytes;
}

export interface FileFacts {
  size: number;
  writtenAt: number;
  uid: number;
}

export const withFile = <T>(path: string, use: (file: OpenFile) => T): T => closedAfter(openFile(path), use);

export function closedAfter<T>(file: OpenFile, use: (file: OpenFile) => T): T {
  try {
    return use(file);
  } finally {
    closeFile(file);
  }
}

export function closeFile({ bytes }: OpenFile): void {
  if (typeof bytes === "number") closeSync(bytes);
}

/** The caller closes the file. O_NONBLOCK: opening a pipe must not wait for its writer. */
export function openFile(path: string): OpenFile {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    const stat = fstatSync(fd);
    requireRegularFile(stat);
    return { bytes: fd, size: stat.size, writtenAt: stat.mtimeMs, uid: stat.uid };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

export function readWhole(file: OpenFile, most: number): Buffer {
  if (file.size > most) throw new Error(`larger than ${most} bytes`);
  return readChunk(file.bytes, 0, file.size);
}

const mostTextBytes = 16 * 1024 * 1024;

/** Reads a small file of another program. Every failure has a code, also that of a file that is too large. */
export const readText = (path: string, encoding: "utf8" | "latin1" = "utf8"): string =>
  withFile(path, (file) => {
    if (file.size > mostTextBytes) throw errorWith("EFBIG", "the file is too large");
    return readWhole(file, mostTextBytes).toString(encoding);
  });
