// Steps that damage announcements and folders, remove agentctl's files, and start unrelated processes.
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Announcement, writeAnnouncement } from "./announcement.ts";
import type { FakeAgent } from "./fake-agent.ts";
import { absentAsNull, bootId, pidNamespace } from "./proc.ts";
import type { Dice } from "./random.ts";
import { recordLine } from "./read-record.ts";
import type { Action } from "./schedule.ts";
import type { Session, SimulatedHost, Store } from "./simulated-host.ts";

interface Folder {
  mark: "recordsBroken" | "announcementsBroken";
  path(store: Store): string | null;
}

const records: Folder = { mark: "recordsBroken", path: ({ recordsFolder }) => recordsFolder };
const announcements: Folder = { mark: "announcementsBroken", path: ({ announcementsFolder }) => announcementsFolder };

export const storeSteps: Record<string, Action> = {
  "announcement-torn": spoilAnnouncement((path, dice) => {
    const text = readFileSync(path, "utf8");
    writeFileSync(path, text.slice(0, dice.below(text.length)));
  }),
  "announcement-garbage": spoilAnnouncement((path, dice) => writeFileSync(path, dice.bytes(60))),
  "announcement-removed": spoilAnnouncement((path) => rmSync(path)),
  "announcement-other-namespace": falseAnnouncement(
    (fake) => fake.format.announcements?.hasNamespace(fake) === true,
    () => ({ namespace: "pid:[4026539999]" }),
  ),
  "announcement-other-boot": falseAnnouncement(
    (fake) => fake.format.announcements?.hasBoot === true,
    (_fake, dice) => ({ boot: dice.uuid() }),
  ),
  "announcement-wrong-start": falseAnnouncement(
    () => true,
    (fake, dice) => ({ start: String(Number(fake.start) + dice.pick([-1, 1, -5000, 5000])) }),
  ),
  "announce-again": {
    weight: 3,
    targets: (host) => targetsOf(host, (fake) => host.canAnnounce(fake)),
    async run(host, target, dice) {
      await host.announce(pickOf(host, target, dice, (fake) => host.canAnnounce(fake)));
    },
  },

  // Locks among the records are lost with them.
  "break-sessions": breakFolder(
    records,
    (host, store) => store.format.lock?.isExclusive !== false || noneCleared(host, store),
  ),
  "mend-sessions": mendFolder(records),
  "break-live": breakFolder(announcements, noneCleared),
  "mend-live": mendFolder(announcements),
  // The files that SIGKILL leaves: a pid in a file, or a lock file without a holder.
  "stale-announcement": {
    weight: 2,
    targets: (host) => [...host.sessions.keys()],
    run: leaveStaleAnnouncement,
  },
  "foreign-files": {
    weight: 1,
    targets: (host) => (host.sessionsBroken || host.liveBroken ? [] : [0]),
    run: leaveForeignFiles,
  },
  forget: {
    weight: 1,
    targets: () => [0],
    async run(host) {
      for (const folder of [host.agentctlHome, host.cache]) rmSync(folder, { recursive: true, force: true });
    },
  },
  "spoil-cache": {
    weight: 1,
    targets: (host) => (filesBelow(host.cache).length > 0 ? [0] : []),
    async run(host, _target, dice) {
      for (const path of filesBelow(host.cache)) writeFileSync(path, dice.bytes(statSync(path).size));
    },
  },

  stranger: {
    weight: 1,
    targets: () => [0],
    run: async (host, _target, dice) => host.startStranger(["sleep", "1000000"], dice.pick(host.places)),
  },
  "stranger-with-id": {
    weight: 2,
    targets: (host) => [...host.sessions.keys()],
    async run(host, target, dice) {
      const { id, cwd, home, format } = host.session(target);
      const { command } = format;
      const talk = dice.pick([
        ["/bin/sh", "-c", "read word", command, "--session-id", id],
        ["/bin/sh", "-c", "read word", command, "exec", "--json", "resume", id],
        ["/bin/sh", "-c", `read word # ${command} --resume ${id}`],
        ["tail", "-f", "/dev/null", "--", home, id],
        ["grep", "--", `${command} --session-id ${id}`],
        ["bash", "-c", 'exec -a node bash -c "$1" /srv/app/server.js --session-id "$2"', "bash", anyNode, id],
        ...lockTalk(host, host.session(target)),
      ]);
      host.startStranger(talk, cwd);
    },
  },
};

/** Called as Node calls its main thread, as half of all agents are. */
const anyNode = "printf %s MainThread >/proc/self/comm; read word";

type Owned = (fake: FakeAgent) => boolean;

/** For a fake agent whose announcement stands, dead or alive. */
function spoilAnnouncement(spoil: (path: string, dice: Dice) => void): Action {
  return {
    weight: 1,
    targets: (host) => targetsOf(host, (fake) => maySpoil(host, fake)),
    async run(host, target, dice) {
      const fake = pickOf(host, target, dice, (each) => maySpoil(host, each));
      spoil(host.announcementPath(fake), dice);
    },
  };
}

function falseAnnouncement(fits: Owned, wrong: (fake: FakeAgent, dice: Dice) => Partial<Announcement>): Action {
  return {
    weight: 1,
    targets: (host) => targetsOf(host, (fake) => maySpoil(host, fake) && fits(fake)),
    async run(host, target, dice) {
      const fake = pickOf(host, target, dice, (each) => maySpoil(host, each) && fits(each));
      await host.announce(fake, wrong(fake, dice));
    },
  };
}

// After /clear the announcement alone says which session a process serves: spoiled, nothing true can be known.
function maySpoil(host: SimulatedHost, fake: FakeAgent): boolean {
  return fake.format.announcements !== null && fake.also === null && host.isAnnounced(fake) && !host.isCleared(fake);
}

function targetsOf(host: SimulatedHost, fits: Owned): number[] {
  return [...host.sessions.values()]
    .filter((session) => host.writers(session).some(fits))
    .map((session) => session.number);
}

function pickOf(host: SimulatedHost, target: number, dice: Dice, fits: Owned): FakeAgent {
  return dice.pick(host.writers(host.session(target)).filter(fits));
}

function noneCleared(host: SimulatedHost, { format }: Store): boolean {
  return !host.fakes.some((fake) => fake.format === format && host.isCleared(fake));
}

function breakFolder(folder: Folder, mayBreak: (host: SimulatedHost, store: Store) => boolean): Action {
  const whole = (host: SimulatedHost) =>
    host.stores.filter(
      (store) =>
        store.format.database === null && !store[folder.mark] && folder.path(store) !== null && mayBreak(host, store),
    );
  return {
    weight: 1,
    targets: (host) => (whole(host).length > 0 ? [0] : []),
    async run(host, _target, dice) {
      const store = dice.pick(whole(host));
      const path = folder.path(store) ?? "";
      renameSync(path, putAside(host, store, folder));
      writeFileSync(path, "not a folder\n");
      store[folder.mark] = true;
    },
  };
}

function mendFolder(folder: Folder): Action {
  const broken = (host: SimulatedHost) =>
    host.stores.filter((store) => store.format.database === null && store[folder.mark] && folder.path(store) !== null);
  return {
    weight: 8,
    targets: (host) => (broken(host).length > 0 ? [0] : []),
    async run(host, _target, dice) {
      const store = dice.pick(broken(host));
      const path = folder.path(store) ?? "";
      rmSync(path);
      renameSync(putAside(host, store, folder), path);
      store[folder.mark] = false;
    },
  };
}

function putAside(host: SimulatedHost, { format }: Store, { mark }: Folder): string {
  return join(host.root, `aside-${format.agent}-${mark}`);
}

/** Processes that are no agents and have the lock's file open, or even hold its lock. */
function lockTalk(host: SimulatedHost, session: Session): string[][] {
  const { lock } = session.format;
  if (lock === null || host.storeOf(session).recordsBroken) return [];
  const path = makeLockFile(session, 1);
  return [
    ["tail", "-f", path],
    ["/bin/sh", "-c", 'exec 9<>"$1"; read word', "sh", path],
  ];
}

/** Made here: what a stranger makes itself, it makes while agentctl is being asked. */
function makeLockFile({ format, home, id }: Session, pid: number): string {
  const path = join(home, format.lock?.path(id, pid) ?? "");
  mkdirSync(dirname(path), { recursive: true });
  if (!existsSync(path)) writeFileSync(path, "");
  return path;
}

async function leaveStaleAnnouncement(host: SimulatedHost, target: number, dice: Dice): Promise<void> {
  const session = host.session(target);
  const { format, id, cwd } = session;
  const store = host.storeOf(session);
  if (format.lock !== null) {
    if (!store.recordsBroken) makeLockFile(session, 3_500_000 + dice.below(9999));
    return;
  }
  if (format.announcements === null || store.announcementsFolder === null || store.announcementsBroken) return;
  const pid = 3_500_000 + dice.below(9999);
  const status = format.agent === "demo" ? null : dice.pick(["busy", "idle", "waiting", null]);
  const argv = format.argv("announced", id, dice);
  const namespace = format.announcements.hasBoot ? pidNamespace : null;
  const announcement: Announcement = {
    pid,
    start: "4711",
    boot: bootId,
    namespace,
    session: id,
    status,
    waitingFor: null,
  };
  writeAnnouncement(store.announcementsFolder, format.announcements, announcement, { cwd, argv, bornMs: Date.now() });
}

async function leaveForeignFiles(host: SimulatedHost, _target: number, dice: Dice): Promise<void> {
  const id = dice.uuid();
  const header = recordLine("session", { version: 1, id, cwd: host.places[0], model: "demo-1", parent: null });
  for (const { recordsFolder, announcementsFolder, format } of host.stores) {
    if (format.database !== null) continue;
    writeFileSync(join(recordsFolder, "notes.txt"), "remember the milk\n");
    writeFileSync(join(recordsFolder, "not-a-session.jsonl"), header);
    writeFileSync(join(recordsFolder, `${dice.uuid()}.jsonl.bak`), header);
    mkdirSync(join(recordsFolder, "old"), { recursive: true });
    writeFileSync(join(recordsFolder, "old", "rollout-2026-11-16T00-00-00.jsonl"), header);
    await host.makeFifo(join(recordsFolder, "x.jsonl"));
    if (announcementsFolder === null) continue;
    writeFileSync(join(announcementsFolder, "notes.txt"), "");
    writeFileSync(join(announcementsFolder, `${4_000_000 + dice.below(9999)}.json.tmp`), "{");
    writeFileSync(join(announcementsFolder, `4711.${id}.key`), "{}");
  }
}

function filesBelow(folder: string): string[] {
  const entries = absentAsNull(() => readdirSync(folder, { recursive: true, withFileTypes: true })) ?? [];
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}
