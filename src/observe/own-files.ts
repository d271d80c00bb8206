// Opens agentctl's own files: notes, locks, captured output, caches. It refuses files that another user may have written.
import { fstatSync, statSync } from "node:fs";
import type { ProblemDetail } from "../core/problem.ts";
import { tryOr } from "../lib/errors.ts";
import { DetailError } from "./failure.ts";
import { type OpenFile, readWhole, withFile } from "./files.ts";

const ownUid = process.geteuid?.() ?? 0;

/** By the group or by others. agentctl creates its folders with mode 0700. */
const writableByOthers = 0o022;

/** In a sticky folder such as /tmp other users can add files, which agentctl refuses, but cannot replace ours. */
const sticky = 0o1000;

/** The reason why a folder of agentctl must not be used; null: only we can write there, or it cannot be read. */
export function distrustOf(folder: string): ProblemDetail | null {
  const stat = tryOr(undefined, () => statSync(folder, { throwIfNoEntry: false }));
  if (stat?.isDirectory() !== true) return null;
  if (stat.uid !== ownUid) return { code: "of-other-user", uid: stat.uid };
  if ((stat.mode & writableByOthers) === 0 || (stat.mode & sticky) !== 0) return null;
  return { code: "writable-by-others" };
}

/** Opens a file of agentctl. Throws if it belongs to another user. */
export const withOwnFile = <T>(path: string, use: (file: OpenFile) => T, owners: readonly number[] = [ownUid]): T =>
  withFile(path, (file) => {
    if (!owners.includes(file.uid)) throw ownershipError({ code: "of-other-user", uid: file.uid });
    return use(file);
  });

/** Opens config.json. It may belong to root, as on systems that generate home directories (NixOS). */
export const withSettingsFile = <T>(path: string, use: (file: OpenFile) => T): T => {
  const useUnshared = (file: OpenFile): T => {
    const { mode, gid } = fstatSync(Number(file.bytes));
    // On systems with a group per user, files are often writable by this group.
    const isShared = (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && gid !== process.getegid?.());
    if (isShared) throw ownershipError({ code: "writable-by-others" });
    return use(file);
  };
  return withOwnFile(path, useUnshared, [ownUid, 0]);
};

const ownershipError = (detail: ProblemDetail): Error => Object.assign(new DetailError(detail), { code: "EOWNER" });

/** Reads a file of agentctl. Throws if it belongs to another user, is too large, or is not JSON. */
export const readOwnJson = (path: string, maxBytes: number): unknown =>
  JSON.parse(withOwnFile(path, (file) => readWhole(file, maxBytes).toString("utf8")));
