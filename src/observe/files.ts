// Finds and opens the files of a store. Never follows a pipe into a hang, never opens a device, never writes.
import { closeSync, constants, type Dirent, fstatSync, openSync, readdirSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import type { FileSet } from "../adapters/adapter.ts";
import { type Bytes, readChunk } from "../lib/jsonl.ts";
import { failureText, isGone } from "./failure.ts";

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

/** Files of a set below a home, sorted. A folder that is not there holds none; an unreadable one costs its own files. */
export function findFiles(home: string, set: FileSet): Found {
  const found: Found = { files: [], failures: [] };
  let folders = [home];
  for (const part of set.folder.split("/"))
    folders =
      part === "*"
        ? folders.flatMap((folder) => subfolders(folder, found))
        : folders.map((folder) => join(folder, part));
  for (const folder of folders)
    for (const { name } of entriesOf(folder, found)) {
      const subject = subjectOf(set, folder, name);
      if (subject !== undefined) found.files.push({ path: join(folder, name), subject });
    }
  return found;
}

/** What a file's name identifies, or its folder's; undefined: the file is not meant. */
function subjectOf(set: FileSet, folder: string, name: string): string | undefined {
  const groups = set.name.exec(name)?.groups;
  const around = set.inside?.exec(basename(folder))?.groups;
  if (groups === undefined && !(set.inside !== undefined && set.name.test(name))) return undefined;
  if (set.inside !== undefined && around === undefined) return undefined;
  return groups?.["pid"] ?? groups?.["id"] ?? around?.["id"];
}

function entriesOf(folder: string, found: Found): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    if (!isGone(error)) found.failures.push({ path: folder, message: failureText(error) });
    return [];
  }
}

/** Plain files beside the folders are none of ours; a link counts if it leads to a folder. */
const subfolders = (folder: string, found: Found): string[] =>
  entriesOf(folder, found)
    .filter(
      (entry) => entry.isDirectory() || (entry.isSymbolicLink() && leadsToFolder(join(folder, entry.name), found)),
    )
    .map((entry) => join(folder, entry.name));

function leadsToFolder(path: string, found: Found): boolean {
  try {
    return statSync(path).isDirectory();
  } catch (error) {
    if (!isGone(error)) found.failures.push({ path, message: failureText(error) });
    return false;
  }
}

export interface OpenFile {
  /** The open file, or what was assembled in its place. */
  bytes: Bytes;
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
