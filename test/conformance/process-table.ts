// Synthetic process tables, read completely: empty, or with exactly the processes of a captured moment.
import { join } from "node:path";
import type { Adapter } from "../../src/agents/adapter.ts";
import type { Announcement, Store } from "../../src/core/evidence.ts";
import type { ProcessRow, ProcessTable } from "../../src/core/process.ts";

export interface CapturedProcess {
  pid: number;
  name: string;
  argv: string[];
  cwd?: string;
  exe?: string | null;
  parent?: number;
  /** The kernel's session, and its one-letter state. */
  session?: number;
  state?: string;
  /** Start ticks; without them the process is the one that its announcement means. */
  start?: string;
  tty?: string | null;
  /** Without it: long before anything that is recorded. */
  startedAt?: number;
  /** What the adapter may look at, and our tag; HOME is that of the case. */
  env?: Record<string, string>;
  /** Below the agent's home. */
  lockedFiles?: string[];
}

const plainBoot = "00000000-0000-4000-8000-000000000000";
const initialNamespace = "pid:[4026531836]";

/** `userHome`: the HOME of all of them. */
export function tableOf(processes: readonly CapturedProcess[], store: Store, userHome: string): ProcessTable {
  const announcements = announcementsOf(store);
  const boot = announcements.find((announcement) => announcement.boot !== null)?.boot ?? plainBoot;
  const id = announcements.find((announcement) => announcement.namespace !== null)?.namespace ?? initialNamespace;
  const rows = processes.map((each) => rowOf(each, announcements, boot, store.home, userHome));
  return { boot, namespace: { id, initial: true }, rows, gaps: [], hidden: [], uid: process.getuid?.() ?? -1 };
}

/** Every process that announces itself in the files. */
export const claimedProcesses = (adapter: Adapter, store: Store): CapturedProcess[] =>
  announcementsOf(store).map(({ pid, cwd }) => ({
    pid,
    name: adapter.processNames[0] ?? adapter.command,
    argv: [adapter.command],
    cwd: cwd ?? "/",
  }));

const announcementsOf = (store: Store): Announcement[] =>
  store.announcements.flatMap(({ reading }) => (reading.ok ? [reading.value] : []));

function rowOf(
  seen: CapturedProcess,
  announcements: readonly Announcement[],
  boot: string,
  home: string,
  userHome: string,
): ProcessRow {
  const start = seen.start ?? announcements.find((announcement) => announcement.pid === seen.pid)?.start ?? "1";
  return {
    identity: { pid: seen.pid, start, boot },
    parent: seen.parent ?? 1,
    session: seen.session ?? seen.pid,
    state: seen.state ?? "S",
    name: seen.name,
    tty: seen.tty ?? null,
    startedAt: seen.startedAt ?? 0,
    detail: {
      uid: 0,
      ours: true,
      argv: seen.argv,
      exe: seen.exe ?? `/usr/bin/${seen.name}`,
      cwd: seen.cwd ?? null,
      // Every agent has its default home below it: no agent's own variables need to be known here.
      env: { ...placed(seen.env ?? {}, userHome), HOME: userHome },
      lockedFiles: (seen.lockedFiles ?? []).map((path) => join(home, path)),
      namespace: initialNamespace,
      innerPid: seen.pid,
      sameFiles: true,
      confinement: null,
      unread: [],
    },
  };
}

/** Captured below /home/user. */
const placed = (env: Record<string, string>, userHome: string): Record<string, string> =>
  Object.fromEntries(Object.entries(env).map(([key, value]) => [key, value.replaceAll("/home/user", userHome)]));
