// Steps that spoil announcements and folders, drop what agentctl keeps, and bring in strangers.
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Claim } from "./announcement.ts";
import { absentAsNull } from "./proc.ts";
import type { Dice } from "./random.ts";
import { recordLine } from "./record.ts";
import type { Action } from "./schedule.ts";
import type { Started, Twin } from "./twin.ts";
import { isAlive, isSuspended } from "./twin.ts";
import type { World } from "./world.ts";

export const storeSteps: Record<string, Action> = {
  "announcement-torn": spoilAnnouncement((path, dice) => {
    const text = readFileSync(path, "utf8");
    writeFileSync(path, text.slice(0, dice.below(text.length)));
  }),
  "announcement-garbage": spoilAnnouncement((path, dice) => writeFileSync(path, dice.bytes(60))),
  "announcement-removed": spoilAnnouncement((path) => rmSync(path)),
  "announcement-other-namespace": falseAnnouncement(() => ({ namespace: "pid:[4026539999]" })),
  "announcement-other-boot": falseAnnouncement((_twin, dice) => ({ boot: dice.uuid() })),
  "announcement-wrong-start": falseAnnouncement((twin, dice) => ({
    start: String(Number(twin.start) + dice.pick([-1, 1, -5000, 5000])),
  })),
  "announce-again": {
    weight: 3,
    targets: (world) => (world.liveBroken ? [] : targetsOf(world, (twin) => isUnannounced(world, twin))),
    async run(world, target, dice) {
      world.announce(pickOf(world, target, dice, (twin) => isUnannounced(world, twin)));
    },
  },

  "break-sessions": breakFolder("sessionsBroken", (world) => world.sessionsFolder),
  "mend-sessions": mendFolder("sessionsBroken", (world) => world.sessionsFolder),
  "break-live": {
    ...breakFolder("liveBroken", (world) => world.liveFolder),
    targets: (world) => (world.liveBroken || world.twins.some((twin) => world.isCleared(twin)) ? [] : [0]),
  },
  "mend-live": mendFolder("liveBroken", (world) => world.liveFolder),
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
      const { id, cwd } = world.session(target);
      const talk = dice.pick([
        ["/bin/sh", "-c", "read word", "demo-agent", "--session-id", id],
        ["/bin/sh", "-c", `read word # demo-agent --resume ${id}`],
        ["tail", "-f", "/dev/null", "--", join(world.liveFolder, ".."), id],
        ["grep", "--", `demo-agent --session-id ${id}`],
      ]);
      world.startStranger(talk, cwd);
    },
  },
};

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

function falseAnnouncement(wrong: (twin: Twin, dice: Dice) => Partial<Claim>): Action {
  return {
    weight: 1,
    targets: (world) => targetsOf(world, (twin) => maySpoil(world, twin)),
    async run(world, target, dice) {
      const twin = pickOf(world, target, dice, (each) => maySpoil(world, each));
      world.announce(twin, wrong(twin, dice));
    },
  };
}

// After /clear the announcement alone says which session a process serves: spoiled, nothing true can be known.
function maySpoil(world: World, twin: Twin): boolean {
  return world.isAnnounced(twin) && !world.isCleared(twin);
}

function isUnannounced(world: World, twin: Twin): boolean {
  return isAlive(twin) && !isSuspended(twin) && !world.isAnnounced(twin);
}

function targetsOf(world: World, fits: Owned): number[] {
  return [...world.sessions.values()]
    .filter((session) => world.writers(session).some(fits))
    .map((session) => session.number);
}

function pickOf(world: World, target: number, dice: Dice, fits: Owned): Twin {
  return dice.pick(world.writers(world.session(target)).filter(fits));
}

function breakFolder(mark: "sessionsBroken" | "liveBroken", folder: (world: World) => string): Action {
  return {
    weight: 1,
    targets: (world) => (world[mark] ? [] : [0]),
    async run(world) {
      renameSync(folder(world), putAside(world, mark));
      writeFileSync(folder(world), "not a folder\n");
      world[mark] = true;
    },
  };
}

function mendFolder(mark: "sessionsBroken" | "liveBroken", folder: (world: World) => string): Action {
  return {
    weight: 8,
    targets: (world) => (world[mark] ? [0] : []),
    async run(world) {
      rmSync(folder(world));
      renameSync(putAside(world, mark), folder(world));
      world[mark] = false;
    },
  };
}

function putAside(world: World, mark: string): string {
  return join(world.root, `aside-${mark}`);
}

async function leaveForeignFiles(world: World, _target: number, dice: Dice): Promise<void> {
  const header = recordLine("session", {
    version: 1,
    id: dice.uuid(),
    cwd: world.places[0],
    model: "demo-1",
    parent: null,
  });
  const none: Started = { pid: 4_000_000 + dice.below(9999), start: "1" };
  writeFileSync(join(world.sessionsFolder, "notes.txt"), "remember the milk\n");
  writeFileSync(join(world.sessionsFolder, "not-a-session.jsonl"), header);
  writeFileSync(join(world.sessionsFolder, `${dice.uuid()}.jsonl.bak`), header);
  mkdirSync(join(world.sessionsFolder, "old"), { recursive: true });
  writeFileSync(join(world.liveFolder, "notes.txt"), "");
  writeFileSync(join(world.liveFolder, `${none.pid}.json.tmp`), "{");
  await world.makeFifo(join(world.sessionsFolder, "x.jsonl"));
}

function filesBelow(folder: string): string[] {
  const entries = absentAsNull(() => readdirSync(folder, { recursive: true, withFileTypes: true })) ?? [];
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}
