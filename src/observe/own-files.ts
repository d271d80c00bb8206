// agentctl's own files: notes, locks, captured output, caches. They are believed only if no other user can have written them.
import { fstatSync, statSync } from "node:fs";
import { errorCode } from "./failure.ts";
import { type OpenFile, withFile } from "./files.ts";

const ownUid = process.geteuid?.() ?? 0;

/** Group and others. agentctl makes its folders 0700. */
const writableByOthers = 0o022;

/** In such a folder (/tmp, the root of a tmpfs) others can add files, which are not believed, but not touch ours. */
const sticky = 0o1000;

/** Why a folder of our own is not used; null: it is ours alone, or there is none. Why it cannot be read shows when it is read. */
export function distrustOf(folder: string): string | null {
  try {
    const stat = statSync(folder, { throwIfNoEntry: false });
    if (stat?.isDirectory() !== true) return null;
    if (stat.uid !== ownUid) return `it belongs to another user (uid ${stat.uid}), so it is not used`;
    if ((stat.mode & writableByOthers) === 0 || (stat.mode & sticky) !== 0) return null;
    return "other users can write to it, so it is not used; chmod 700 it";
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return null;
  }
}

/** Hands a person's settings to `use`. They may also be root's, as on systems that make a home from a description. */
export const withSettingsFile = <T>(path: string, use: (file: OpenFile) => T): T =>
  withFile(path, (file) => {
    if (file.uid !== ownUid && file.uid !== 0) throw foreign(file.uid);
    const { mode, gid } = fstatSync(Number(file.bytes));
    // Where every user has a group of their own, files are often writable by that group.
    const isShared = (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && gid !== process.getegid?.());
    if (isShared) throw Object.assign(new Error("other users can write to it; chmod go-w it"), { code: "EOWNER" });
    return use(file);
  });

const foreign = (uid: number): Error =>
  Object.assign(new Error(`it belongs to another user (uid ${uid})`), { code: "EOWNER" });

/** Hands a file of our own to `use`. That of another user is an error, wherever it lies. */
export const withOwnFile = <T>(path: string, use: (file: OpenFile) => T): T =>
  withFile(path, (file) => {
    if (file.uid !== ownUid) throw foreign(file.uid);
    return use(file);
  });
