// inotify(7): the kernel reports changes of files and folders.
import { readSync } from "node:fs";
import { callLinux, type LinuxLibc } from "./libc.ts";
import { poll } from "./poll.ts";

export interface Inotify {
  fd: number;
  /** Writes to files in a folder count only for names that `wantsWritten` accepts. */
  watch(path: string, wantsWritten: (name: string) => boolean): "watched" | "absent" | "refused";
  /** Reads all pending events. true: at least one of them counts. */
  drain(): boolean;
  close(): void;
}

/** Counts only created and removed entries. Another watch of the same folder may also count writes. */
export const noWriting = (): boolean => false;

interface Watch {
  number: number;
  wantsWritten: (name: string) => boolean;
}

/** Unused instances, kept for the next watch: closing one that was just used takes the kernel 10 to 20 ms. */
const spare: number[] = [];

/** null: this system has no inotify, or no instance is left (128 per user by default). */
export function openInotify(): Inotify | null {
  const fd = spare.pop() ?? call((libc) => libc.inotify_init1(IN_NONBLOCK | IN_CLOEXEC)).result;
  if (fd < 0) return null;
  const watches = new Map<string, Watch>();

  /** An event without a name is about the watched path itself, or says that the queue overflowed. */
  const isWanted = (number: number, mask: number, name: string): boolean =>
    name === "" ||
    (mask & ~WRITTEN) !== 0 ||
    watches.values().some((watch) => watch.number === number && watch.wantsWritten(name));

  return {
    fd,
    watch(path, wantsWritten) {
      const name = Buffer.alloc(8192);
      name.write(path, 0, name.length - 1);
      const { result: number, code } = call((libc) => libc.inotify_add_watch(fd, name, WANTED));
      const { number: before, wantsWritten: known } = watches.get(path) ?? {};
      if (number < 0) watches.delete(path);
      else
        watches.set(path, { number, wantsWritten: wantsWritten === noWriting ? (known ?? noWriting) : wantsWritten });
      // Two paths may share one watch. Removing it fails if the kernel dropped it together with its file; that does no harm.
      const isUsed = watches.values().some((used) => used.number === before);
      if (before !== undefined && !isUsed) call((libc) => libc.inotify_rm_watch(fd, before));
      if (number >= 0) return "watched";
      return code === "ENOENT" || code === "ENOTDIR" ? "absent" : "refused";
    },
    drain() {
      let news = false;
      const buffer = Buffer.alloc(64 * 1024);
      while (poll([fd], 0).length > 0) {
        const length = readSync(fd, buffer);
        // struct inotify_event: int wd; u32 mask, cookie, len; char name[len]. IN_IGNORED only says that a watch was removed.
        for (let at = 0, size = 0; at < length; at += 16 + size) {
          size = buffer.readUInt32LE(at + 12);
          const mask = buffer.readUInt32LE(at + 4);
          if (news || (mask & IN_IGNORED) !== 0) continue;
          const [name = ""] = buffer.toString("utf8", at + 16, at + 16 + size).split("\0");
          news = isWanted(buffer.readInt32LE(at), mask, name);
        }
      }
      return news;
    },
    close() {
      for (const number of new Set(watches.values().map((watch) => watch.number)))
        call((libc) => libc.inotify_rm_watch(fd, number));
      watches.clear();
      this.drain();
      spare.push(fd);
    },
  };
}

const IN_CLOEXEC = 0o2000000;
const IN_NONBLOCK = 0o4000;
const IN_IGNORED = 0x8000;
/** MODIFY, ATTRIB, CLOSE_WRITE */
const WRITTEN = 0x2 | 0x4 | 0x8;
/** MOVED_FROM, MOVED_TO, CREATE, DELETE, DELETE_SELF, MOVE_SELF; an overflow comes anyway. */
const WANTED = WRITTEN | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800;

/** ENOSYS: macOS has no inotify. */
const call = (what: (libc: LinuxLibc) => number) => callLinux(what) ?? { result: -1, code: "ENOSYS" };
