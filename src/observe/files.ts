// Finds and opens the files of a store. Never follows a pipe into a hang, never opens a device, never writes.
import { closeSync, constants, type Dirent, fstatSync, openSync, readdirSync, statSync } from "node:fs";
import { basename } from "node:path";
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

/**
 * Files of a set below a home, sorted. A folder that is not there holds none; an unreadable one costs its own files. There may be
 * ten thousand of them: what is done here for each is as little as possible.
 */
export function findFiles(home: string, { folder: pattern, name: wanted, inside }: FileSet): Found {
  const found: Found = { files: [], failures: [] };
  let folders = [home];
  for (const part of pattern.split("/"))
    folders =
      part === "*"
        ? folders.flatMap((folder) => subfolders(folder, found))
        : folders.map((folder) => below(folder, part));
  for (const folder of folders) {
    const around = inside?.exec(basename(folder))?.[1];
    if (inside !== undefined && around === undefined) continue;
    for (const name of namesIn(folder, found)) {
      const match = wanted.exec(name);
      const subject = match === null ? undefined : (match[1] ?? around);
      if (subject !== undefined) found.files.push({ path: below(folder, name), subject });
    }
  }
  return found;
}

const below = (folder: string, name: string): string =>
  name === "" ? folder : folder === "/" ? `/${name}` : `${folder}/${name}`;

function namesIn(folder: string, found: Found): string[] {
  try {
    return readdirSync(folder).sort();
  } catch (error) {
    if (!isGone(error)) found.failures.push({ path: folder, message: failureText(error) });
    return [];
  }
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
      (entry) => entry.isDirectory() || (entry.isSymbolicLink() && leadsToFolder(below(folder, entry.name), found)),
    )
    .map((entry) => below(folder, entry.name));

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
