// Finds and opens the files of a store. Never follows a pipe into a hang, never opens a device, never writes.
import { closeSync, constants, type Dirent, fstatSync, openSync, readdirSync, statSync } from "node:fs";
import { basename } from "node:path";
import type { FileSet } from "../adapters/adapter.ts";
import { type Bytes, readChunk } from "../lib/jsonl.ts";
import { failureText, isGone } from "./failure.ts";

export const ownUid = process.getuid?.() ?? -1;

export interface FoundFile {
  path: string;
  /** What the name identifies: a session id or a pid. */
  subject: string;
}

export interface Found {
  files: FoundFile[];
  /** Folders that are there but could not be listed: there may be more files. */
  failures: { path: string; message: string }[];
}

/** With everything in it, whatever it is called. */
export interface FoundFolder {
  path: string;
  names: readonly string[];
}

/** Files of a set below a home, sorted. A folder that is not there holds none; an unreadable one costs its own files. */
export function findFiles(home: string, set: FileSet): Found {
  const { folders, failures } = listFolders(home, set);
  return { files: filesIn(folders, set), failures };
}

/** The folders of a set, those without anything left out. There may be ten thousand names in them: nothing is done here for each. */
export function listFolders(
  home: string,
  { folder: pattern, inside }: FileSet,
): { folders: FoundFolder[]; failures: Found["failures"] } {
  const failures: Found["failures"] = [];
  let paths = [home];
  for (const part of pattern.split("/"))
    paths = part === "*" ? paths.flatMap((path) => subfolders(path, failures)) : paths.map((path) => below(path, part));
  const meant = inside === undefined ? paths : paths.filter((path) => inside.test(basename(path)));
  const folders = meant.map((path) => ({ path, names: namesIn(path, failures) }));
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

function namesIn(folder: string, failures: Found["failures"]): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (!isGone(error)) failures.push({ path: folder, message: failureText(error) });
    return [];
  }
}

function entriesOf(folder: string, failures: Found["failures"]): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    if (!isGone(error)) failures.push({ path: folder, message: failureText(error) });
    return [];
  }
}

/** Plain files beside the folders are none of ours; a link counts if it leads to a folder. */
const subfolders = (folder: string, failures: Found["failures"]): string[] =>
  entriesOf(folder, failures)
    .filter(
      (entry) => entry.isDirectory() || (entry.isSymbolicLink() && leadsToFolder(below(folder, entry.name), failures)),
    )
    .map((entry) => below(folder, entry.name));

function leadsToFolder(path: string, failures: Found["failures"]): boolean {
  try {
    return statSync(path).isDirectory();
  } catch (error) {
    if (!isGone(error)) failures.push({ path, message: failureText(error) });
    return false;
  }
}

export interface OpenFile extends FileFacts {
  /** The open file, or what was assembled in its place. */
  bytes: Bytes;
}

export interface FileFacts {
  size: number;
  writtenAt: number;
  uid: number;
}

/** Hands an open regular file to `use`. */
export function withFile<T>(path: string, use: (file: OpenFile) => T): T {
  const file = openFile(path);
  try {
    return use(file);
  } finally {
    closeFile(file);
  }
}

export function closeFile({ bytes }: OpenFile): void {
  if (typeof bytes === "number") closeSync(bytes);
}

/** For readers that take their time; who opens it closes it. O_NONBLOCK: opening a pipe must not wait for its writer. */
export function openFile(path: string): OpenFile {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    const stat = fstatSync(fd);
    if (stat.isDirectory()) throw Object.assign(new Error("a folder where a file should be"), { code: "EISDIR" });
    if (!stat.isFile()) throw Object.assign(new Error("not a regular file"), { code: "ENXIO" });
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

/** A small file of another program's, as text. Its failures have codes, also that of a file that is too large. */
export const readText = (path: string, encoding: "utf8" | "latin1" = "utf8"): string =>
  withFile(path, (file) => {
    if (file.size > mostTextBytes) throw Object.assign(new Error("the file is too large"), { code: "EFBIG" });
    return readWhole(file, mostTextBytes).toString(encoding);
  });
