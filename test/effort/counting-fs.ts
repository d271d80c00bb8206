// Counts the calls of node:fs that a command makes. For use in a separate process, because the mock stays.
import { mock } from "bun:test";
import type * as Fs from "node:fs";

export interface Work {
  /** Files of agents that were opened, and bytes read from them. */
  opened: number;
  bytes: number;
  /** Folders listed, and files asked about without being opened. */
  listed: number;
  asked: number;
  /** Processes whose stat line was read, and those of which more was read. */
  processes: number;
  detailed: number;
  /** How often the table of mounts was read, and a directory's own name asked for. */
  mountTables: number;
  located: number;
}

// A copy, because a mock replaces the module for all importers.
const real: typeof Fs = { ...process.getBuiltinModule("node:fs") };

const nothing: Work = {
  ...{ opened: 0, bytes: 0, listed: 0, asked: 0 },
  ...{ processes: 0, detailed: 0, mountTables: 0, located: 0 },
};
let work: Work = { ...nothing };
const ofKernel = new Set<number>();

const isKernels = (path: unknown): boolean => String(path).startsWith("/proc/");

mock.module("node:fs", () => ({
  ...real,
  openSync: (...args: Parameters<typeof real.openSync>): number => {
    const fd = real.openSync(...args);
    if (isKernels(args[0])) ofKernel.add(fd);
    else work.opened += 1;
    return fd;
  },
  readFileSync: (...args: Parameters<typeof real.readFileSync>) => {
    const [path] = args;
    if (/^\/proc\/\d+\/stat$/.test(String(path))) work.processes += 1;
    if (/^\/proc\/\d+\/cmdline$/.test(String(path))) work.detailed += 1;
    if (path === "/proc/self/mountinfo") work.mountTables += 1;
    const content = real.readFileSync(...args);
    if (isKernels(path)) return content;
    work.opened += 1;
    work.bytes += content.length;
    return content;
  },
  closeSync: (fd: number): void => {
    ofKernel.delete(fd);
    real.closeSync(fd);
  },
  readSync: (...args: Parameters<typeof real.readSync>): number => {
    const count = real.readSync(...args);
    if (!ofKernel.has(args[0])) work.bytes += count;
    return count;
  },
  readdirSync: (...args: Parameters<typeof real.readdirSync>) => {
    if (!isKernels(args[0])) work.listed += 1;
    return real.readdirSync(...args);
  },
  statSync: (...args: Parameters<typeof real.statSync>) => {
    if (!isKernels(args[0])) work.asked += 1;
    return real.statSync(...args);
  },
  realpathSync: (path: string): string => {
    work.located += 1;
    return real.realpathSync(path);
  },
}));

export async function workOf(action: () => Promise<unknown>): Promise<Work> {
  work = { ...nothing };
  await action();
  return work;
}
