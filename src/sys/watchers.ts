// Watches files and folders on systems without inotify, with the runtime's own watchers.
import { type FSWatcher, statSync, watch } from "node:fs";
import { isError, tryOr } from "../lib/errors.ts";

export interface Watchers {
  watch(path: string, wantsWritten: (name: string) => boolean): "watched" | "absent" | "refused";
  /** Waits for a change that counts, at most `maxMs`. true: there was one since the last call. */
  rung(maxMs: number): Promise<boolean>;
  close(): void;
}

export function openWatchers(): Watchers {
  const watchers = new Map<string, { identity: string; watcher: FSWatcher }>();
  let pending = false;
  let wake = (): void => {};
  const ring = (): void => {
    pending = true;
    wake();
  };
  const drop = (path: string): void => {
    watchers.get(path)?.watcher.close();
    watchers.delete(path);
  };
  return {
    watch(path, wantsWritten) {
      const { identity, isFolder } = statOf(path);
      if (identity === null) {
        drop(path);
        return "absent";
      }
      if (watchers.get(path)?.identity === identity) return "watched";
      drop(path);
      const onChange = (event: string, name: string | null): void => {
        if (event === "rename" || name === null || !isFolder || wantsWritten(name)) ring();
      };
      const watcher = tryOr(null, () => watch(path, onChange), isError);
      if (watcher === null) return "refused";
      watcher.on("error", () => drop(path));
      watchers.set(path, { identity, watcher });
      return "watched";
    },
    async rung(maxMs) {
      if (!pending)
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, maxMs);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      const rang = pending;
      pending = false;
      return rang;
    },
    close() {
      for (const path of [...watchers.keys()]) drop(path);
      ring();
    },
  };
}

/** The identity includes the birth time: file systems reuse the inode number of a removed folder. */
function statOf(path: string): { identity: string | null; isFolder: boolean } {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return { identity: null, isFolder: false };
  return { identity: `${stat.ino} ${stat.birthtimeMs}`, isFolder: stat.isDirectory() };
}
