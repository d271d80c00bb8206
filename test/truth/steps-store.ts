// Steps that spoil announcements and folders, drop what agentctl keeps, and bring in strangers.
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Claim, writeAnnouncement } from "./announcement.ts";
import { absentAsNull, bootId, pidNamespace } from "./proc.ts";
import type { Dice } from "./random.ts";
import { recordLine } from "./record.ts";
import type { Action } from "./schedule.ts";
import type { Twin } from "./twin.ts";
import type { Session, Store, World } from "./world.ts";

interface Folder {
  mark: "recordsBroken" | "claimsBroken";
  path(store: Store): string | null;
}

const records: Folder = { mark: "recordsBroken", path: ({ recordsFolder }) => recordsFolder };
const claims: Folder = { mark: "claimsBroken", path: ({ claimsFolder }) => claimsFolder };

export const storeSteps: Record<string, Action> = {
  "announcement-torn": spoilAnnouncement((path, dice) => {
    const text = readFileSync(path, "utf8");
    writeFileSync(path, text.slice(0, dice.below(text.length)));
  }),
  "announcement-garbage": spoilAnnouncement((path, dice) => writeFileSync(path, dice.bytes(60))),
  "announcement-removed": spoilAnnouncement((path) => rmSync(path)),
  "announcement-other-namespace": falseAnnouncement(
    (twin) => twin.format.claims?.hasNamespace(twin) === true,
    () => ({ namespace: "pid:[4026539999]" }),
  ),
  "announcement-other-boot": falseAnnouncement(
    (twin) => twin.format.claims?.hasBoot === true,
    (_twin, dice) => ({ boot: dice.uuid() }),
  ),
  "announcement-wrong-start": falseAnnouncement(
    () => true,
    (twin, dice) => ({ start: String(Number(twin.start) + dice.pick([-1, 1, -5000, 5000])) }),
  ),
  "announce-again": {
    weight: 3,
    targets: (world) => targetsOf(world, (twin) => world.canAnnounce(twin)),
    async run(world, target, dice) {
      await world.announce(pickOf(world, target, dice, (twin) => world.canAnnounce(twin)));
    },
  },

  // Locks among the records are lost with them.
  "break-sessions": breakFolder(
    records,
    (world, store) => store.format.lock?.isExclusive !== false || nobodyCleared(world, store),
  ),
  "mend-sessions": mendFolder(records),
  "break-live": breakFolder(claims, nobodyCleared),
  "mend-live": mendFolder(claims),
  // What SIGKILL leaves, without the process: a number in a file, or a lock that nobody holds.
  "stale-announcement": {
    weight: 2,
    targets: (world) => [...world.sessions.keys()],
    run: leaveStaleAnnouncement,
  },
  "foreign-files": {
    weight: 1,
    targets: (world) => (world.sessionsBroken || world.liveBroken ? [] : [0]),
    run: leaveForeignFiles,
  },
  forget: {
    weight: 1,
    targets: () => [0],
    async run(world) {
      for (const folder of [world.agentctlHome, world.cache]) rmSync(folder, { recursive: true, force: true });
    },
  },
  "spoil-cache": {
    weight: 1,
    targets: (world) => (filesBelow(world.cache).length > 0 ? [0] : []),
    async run(world, _target, dice) {
      for (const path of filesBelow(world.cache)) writeFileSync(path, dice.bytes(statSync(path).size));
    },
  },

  stranger: {
    weight: 1,
    targets: () => [0],
    run: async (world, _target, dice) => world.startStranger(["sleep", "1000000"], dice.pick(world.places)),
  },
  "stranger-with-id": {
    weight: 2,
    targets: (world) => [...world.sessions.keys()],
    async run(world, target, dice) {
      const { id, cwd, home, format } = world.session(target);
      const { command } = format;
      const talk = dice.pick([
        ["/bin/sh", "-c", "read word", command, "--session-id", id],
        ["/bin/sh", "-c", "read word", command, "exec", "--json", "resume", id],
        ["/bin/sh", "-c", `read word # ${command} --resume ${id}`],
        ["tail", "-f", "/dev/null", "--", home, id],
        ["grep", "--", `${command} --session-id ${id}`],
        ["bash", "-c", 'exec -a node bash -c "$1" /srv/app/server.js --session-id "$2"', "bash", anyNode, id],
        ...lockTalk(world, world.session(target)),
      ]);
      world.startStranger(talk, cwd);
    },
  },
};

/** Called as Node calls its main thread, as half of all agents are. */
const anyNode = "printf %s MainThread >/proc/self/comm; read word";

type Owned = (twin: Twin) => boolean;

/** For a twin whose announcement stands, dead or alive. */
function spoilAnnouncement(spoil: (path: string, dice: Dice) => void): Action {
  return {
    weight: 1,
    targets: (world) => targetsOf(world, (twin) => maySpoil(world, twin)),
    async run(world, target, dice) {
      const twin = pickOf(world, target, dice, (each) => maySpoil(world, each));
      spoil(world.claimPath(twin), dice);
    },
  };
}

function falseAnnouncement(fits: Owned, wrong: (twin: Twin, dice: Dice) => Partial<Claim>): Action {
  return {
    weight: 1,
    targets: (world) => targetsOf(world, (twin) => maySpoil(world, twin) && fits(twin)),
    async run(world, target, dice) {
      const twin = pickOf(world, target, dice, (each) => maySpoil(world, each) && fits(each));
      await world.announce(twin, wrong(twin, dice));
    },
  };
}

// After /clear the announcement alone says which session a process serves: spoiled, nothing true can be known.
function maySpoil(world: World, twin: Twin): boolean {
  return twin.format.claims !== null && twin.also === null && world.isAnnounced(twin) && !world.isCleared(twin);
}

function targetsOf(world: World, fits: Owned): number[] {
  return [...world.sessions.values()]
    .filter((session) => world.writers(session).some(fits))
    .map((session) => session.number);
}

function pickOf(world: World, target: number, dice: Dice, fits: Owned): Twin {
  return dice.pick(world.writers(world.session(target)).filter(fits));
}

function nobodyCleared(world: World, { format }: Store): boolean {
  return !world.twins.some((twin) => twin.format === format && world.isCleared(twin));
}

function breakFolder(folder: Folder, mayBreak: (world: World, store: Store) => boolean): Action {
  const whole = (world: World) =>
    world.stores.filter(
      (store) =>
        store.format.database === null && !store[folder.mark] && folder.path(store) !== null && mayBreak(world, store),
    );
  return {
    weight: 1,
    targets: (world) => (whole(world).length > 0 ? [0] : []),
    async run(world, _target, dice) {
      const store = dice.pick(whole(world));
      const path = folder.path(store) ?? "";
      renameSync(path, putAside(world, store, folder));
      writeFileSync(path, "not a folder\n");
      store[folder.mark] = true;
    },
  };
}

function mendFolder(folder: Folder): Action {
  const broken = (world: World) =>
    world.stores.filter((store) => store.format.database === null && store[folder.mark] && folder.path(store) !== null);
  return {
    weight: 8,
    targets: (world) => (broken(world).length > 0 ? [0] : []),
    async run(world, _target, dice) {
      const store = dice.pick(broken(world));
      const path = folder.path(store) ?? "";
      rmSync(path);
      renameSync(putAside(world, store, folder), path);
      store[folder.mark] = false;
    },
  };
}

function putAside(world: World, { format }: Store, { mark }: Folder): string {
  return join(world.root, `aside-${format.agent}-${mark}`);
}

/** Processes that are no agents and have the lock's file open, or even hold its lock. */
function lockTalk(world: World, session: Session): string[][] {
  const { lock } = session.format;
  if (lock === null || world.storeOf(session).recordsBroken) return [];
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

async function leaveStaleAnnouncement(world: World, target: number, dice: Dice): Promise<void> {
  const session = world.session(target);
  const { format, id, cwd } = session;
  const store = world.storeOf(session);
  if (format.lock !== null) {
    if (!store.recordsBroken) makeLockFile(session, 3_500_000 + dice.below(9999));
    return;
  }
  if (format.claims === null || store.claimsFolder === null || store.claimsBroken) return;
  const pid = 3_500_000 + dice.below(9999);
  const status = format.agent === "demo" ? null : dice.pick(["busy", "idle", "waiting", null]);
  const argv = format.argv("announced", id, dice);
  const namespace = format.claims.hasBoot ? pidNamespace : null;
  const claim: Claim = { pid, start: "4711", boot: bootId, namespace, session: id, status, waitingFor: null };
  writeAnnouncement(store.claimsFolder, format.claims, claim, { cwd, argv, bornMs: Date.now() });
}

async function leaveForeignFiles(world: World, _target: number, dice: Dice): Promise<void> {
  const id = dice.uuid();
  const header = recordLine("session", { version: 1, id, cwd: world.places[0], model: "demo-1", parent: null });
  for (const { recordsFolder, claimsFolder, format } of world.stores) {
    if (format.database !== null) continue;
    writeFileSync(join(recordsFolder, "notes.txt"), "remember the milk\n");
    writeFileSync(join(recordsFolder, "not-a-session.jsonl"), header);
    writeFileSync(join(recordsFolder, `${dice.uuid()}.jsonl.bak`), header);
    mkdirSync(join(recordsFolder, "old"), { recursive: true });
    writeFileSync(join(recordsFolder, "old", "rollout-2026-11-16T00-00-00.jsonl"), header);
    await world.makeFifo(join(recordsFolder, "x.jsonl"));
    if (claimsFolder === null) continue;
    writeFileSync(join(claimsFolder, "notes.txt"), "");
    writeFileSync(join(claimsFolder, `${4_000_000 + dice.below(9999)}.json.tmp`), "{");
    writeFileSync(join(claimsFolder, `4711.${id}.key`), "{}");
  }
}

function filesBelow(folder: string): string[] {
  const entries = absentAsNull(() => readdirSync(folder, { recursive: true, withFileTypes: true })) ?? [];
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}
