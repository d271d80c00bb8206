// Every adapter with other things instead of its files and folders, and with files that appear and vanish.
import { afterAll, describe, expect, test } from "bun:test";
import { cpSync, mkdirSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Adapter } from "../../src/agents/adapter.ts";
import { adapters } from "../../src/agents/registry.ts";
import { read } from "../../src/core/problem.ts";
import type { ProcessTable } from "../../src/core/process.ts";
import type { SessionList } from "../../src/core/session.ts";
import { listSessions } from "../../src/observe/observe.ts";
import {
  hasAnnouncementFiles,
  hasRecordFiles,
  inventionFaults,
  isNameless,
  lookAt,
  mend,
  neighbourFaults,
  type Victim,
  victims,
} from "./damaged-case.ts";
import { throwAwayFolder } from "./folder.ts";
import { isPlain } from "./invariants.ts";
import { linesOf, parsed, textOf } from "./mutations.ts";
import { oddFolders, oddRecords, removeOdd } from "./odd-files.ts";
import { share } from "./share-of-cases.ts";

const binary = join(import.meta.dir, "..", "..", "dist", "agentctl");
const patienceMs = 5_000;

const folder = throwAwayFolder();
afterAll(() => folder[Symbol.dispose]());

for (const adapter of adapters)
  describe(`odd files in the store of ${adapter.agent}`, () => {
    const records = victims(adapter, "record", folder.path);
    const announcements = hasAnnouncementFiles(adapter) ? victims(adapter, "announcement", folder.path) : [];

    for (const odd of oddRecords) {
      test(`${odd.name} instead of a record makes only its own session unknown`, async () => {
        for (const victim of records.slice(0, 5)) {
          await inPlaceOf(victim, odd.make, () => {
            const look = lookAt(victim);
            expect([...look.faults, ...neighbourFaults(victim, look), ...inventionFaults(victim, look)]).toEqual([]);
            const state = stateOf(look.dead, victim.id);
            expect(state ?? (isNameless(victim, look) ? "unknown" : null)).toBe("unknown");
            expect(look.dead.complete).toBe(false);
            expect(look.dead.problems.map(({ source }) => source)).toContain(victim.path);
          });
        }
      });

      test(`${odd.name} instead of an announcement proves nothing`, async () => {
        for (const victim of announcements.slice(0, 5))
          await inPlaceOf(victim, odd.make, () => {
            const look = lookAt(victim);
            expect([look.faults, stateOf(look.dead, victim.id)]).toEqual([[], stateOf(victim.dead, victim.id)]);
            expect(look.dead.complete).toBe(true);
            const ran = stateOf(victim.live, victim.id) === "running";
            if (ran) expect([look.live.complete, stateOf(look.live, victim.id)]).toEqual([false, "unknown"]);
          });
      });
    }

    for (const odd of oddFolders)
      for (const part of storeFolders(adapter))
        test(`${odd.name} in place of ${part === "" ? "the home" : `its folder ${part}`}`, async () => {
          for (const victim of records.slice(0, 3)) {
            const path = join(victim.home, part);
            mkdirSync(path, { recursive: true });
            renameSync(path, `${victim.home}-aside`);
            odd.make(path);
            try {
              await expectNoHang(victim);
              const { complete, problems, sessions } = await look(victim, victim.table);
              const agents = [...new Set(problems.map(({ agent }) => agent))];
              expect([complete, agents]).toEqual([false, [adapter.agent]]);
              const stopped = sessions.filter(({ status }) => status.state === "stopped").map(({ id }) => id);
              expect(part === serverFolder(adapter) ? [] : stopped).toEqual([]);
            } finally {
              removeOdd(path);
              renameSync(`${victim.home}-aside`, path);
            }
          }
        });

    test("a missing store is not a problem", async () => {
      const env = { HOME: join(folder.path, "nobody") };
      const processes = () => read(emptyTable(records));
      const { complete, problems, sessions } = await listSessions({ adapters: [adapter], env, processes });
      expect({ complete, problems, sessions }).toEqual({ complete: true, problems: [], sessions: [] });
    });

    test("an empty store is not a problem", async () => {
      const env = { HOME: join(folder.path, "empty") };
      mkdirSync(adapter.home(env) ?? "", { recursive: true });
      const processes = () => read(emptyTable(records));
      const { complete, problems, sessions } = await listSessions({ adapters: [adapter], env, processes });
      expect({ complete, problems, sessions }).toEqual({ complete: true, problems: [], sessions: [] });
    });

    test("unrelated files do not become sessions", async () => {
      for (const victim of [...records.slice(0, 3), ...announcements.slice(0, 3)]) {
        const before = await look(victim, victim.table);
        const place = dirname(victim.path);
        const foreign = [
          "not-a-session.jsonl",
          "notes.txt",
          ".DS_Store",
          "..jsonl",
          "a\nb.json",
          `${"-".repeat(36)}.jsonl`,
        ];
        for (const name of foreign) writeFileSync(join(place, name), "\0 not yours");
        mkdirSync(join(place, "folder.jsonl"));
        expect(await look(victim, victim.table)).toEqual(before);
        for (const name of [...foreign, "folder.jsonl"]) rmSync(join(place, name), { recursive: true });
      }
    });

    test("records may vanish or shrink during the read", async () => {
      for (const victim of records.slice(0, 3)) {
        for (const change of [
          (path: string) => rmSync(path, { force: true }),
          (path: string) => truncateSync(path, 0),
        ]) {
          const meddling: Adapter = {
            ...adapter,
            parseRecord(file) {
              if (file.path === victim.path) change(file.path);
              return adapter.parseRecord(file);
            },
          };
          const list = await look({ ...victim, adapter: meddling }, victim.noProcesses);
          const others = (all: SessionList) =>
            all.sessions.filter(({ id }) => id !== victim.id).map(({ status }) => status);
          expect(others(list)).toEqual(others(victim.dead));
          mend(victim);
        }
        const others = victim.store.rows.slice(0, -1).map(({ id }) => id);
        const gone = victim.store.rows.at(-1)?.reading;
        if (others.length === 0) continue;
        if (!gone?.ok) throw new Error("a captured record must be readable");
        const aside = `${victim.home}-gone`;
        cpSync(gone.value.source, aside, { preserveTimestamps: true });
        const removing: Adapter = {
          ...adapter,
          parseRecord(file) {
            rmSync(gone.value.source, { force: true });
            return adapter.parseRecord(file);
          },
        };
        const list = await look({ ...victim, adapter: removing }, victim.noProcesses);
        expect([list.complete, list.sessions.map(({ id }) => id).sort()]).toEqual([true, others.sort()]);
        renameSync(aside, gone.value.source);
      }
    });

    test("a line that is written during the read counts", async () => {
      // A document is replaced whole.
      for (const victim of hasRecordFiles(adapter) ? records : []) {
        const earlier = linesOf(victim.bytes).slice(0, -1);
        writeFileSync(victim.path, earlier.length === 0 ? "" : textOf(earlier));
        const processes = () => {
          mend(victim);
          return read(victim.noProcesses);
        };
        const list = await listSessions({ adapters: [adapter], env: { HOME: victim.userHome }, processes });
        const status = (all: SessionList) => all.sessions.find(({ id }) => id === victim.id)?.status;
        expect([victim.name, status(list)]).toEqual([victim.name, status(victim.dead)]);
      }
    });

    test("a wrong clock changes no status", async () => {
      for (const victim of share(records, 0))
        for (const now of [0, Date.parse("9999-12-31T00:00:00Z"), -1, 8.64e15])
          for (const table of [victim.table, victim.noProcesses]) {
            const statuses = (list: SessionList) => list.sessions.map(({ id, status }) => [id, status]);
            expect(statuses(await look(victim, table, now))).toEqual(statuses(await look(victim, table)));
          }
    });

    test("no escape sequence reaches a terminal or the JSON output", async () => {
      const evil = (value: unknown): unknown => {
        // Words between which a parser chooses stay as they are; texts and paths are what gets shown.
        if (typeof value === "string") return /[ /]/.test(value) ? `\x1b[31m${value}\x1b]0;t\x07\u009b1m\u202e` : value;
        if (Array.isArray(value)) return value.map(evil);
        if (typeof value !== "object" || value === null) return value;
        return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, evil(inner)]));
      };
      const sessions = records.filter(({ dead, id }) => stateOf(dead, id) !== undefined);
      for (const victim of share(sessions, 0)) {
        const lines = linesOf(victim.bytes).map((line) => JSON.stringify(evil(parsed(line))));
        writeFileSync(victim.path, textOf(lines));
        const commands = [
          ["list", "-a", "--since", "9999d"],
          ["status", victim.id],
          ["why", victim.id],
        ];
        const asked = commands.flatMap((command) => [command, [...command, "--json"]]);
        const answers = await Promise.all(asked.map((command) => askBinary(victim, command)));
        for (const [index, { exit, text }] of answers.entries())
          expect([asked[index], exit, isPlain(text)]).toEqual([asked[index], 0, true]);
        mend(victim);
      }
    });
  });

const serverFolder = (adapter: Adapter): string | null => topOf(socketsOf(adapter)?.folder ?? null);

const socketsOf = ({ server }: Adapter) => (server !== undefined && "folder" in server.at ? server.at : null);

const topOf = (pattern: string | null): string | null => pattern?.split("/")[0] ?? null;

/** The home itself, and each folder in it that the adapter reads. */
function storeFolders(adapter: Adapter): string[] {
  const sets = [...adapter.records, adapter.announcements ?? null, socketsOf(adapter)];
  const folders = sets.map((set) => topOf(set?.folder ?? null)).filter((part) => part !== null);
  return [...new Set(["", ...folders])];
}

const stateOf = (list: SessionList, id: string): string | undefined =>
  list.sessions.find((session) => session.id === id)?.status.state;

function emptyTable(all: readonly Victim[]): ProcessTable {
  const [any] = all;
  if (any !== undefined) return any.noProcesses;
  return {
    boot: "boot",
    namespace: { id: null, initial: true },
    rows: [],
    gaps: [],
    hidden: [],
    uid: process.getuid?.() ?? -1,
  };
}

async function inPlaceOf(victim: Victim, make: (path: string) => void, examine: () => void): Promise<void> {
  rmSync(victim.path);
  make(victim.path);
  try {
    await expectNoHang(victim);
    examine();
  } finally {
    removeOdd(victim.path);
    mend(victim);
  }
}

/** The whole look, as a command takes it, with the processes of the case. */
const look = async ({ adapter, userHome }: Victim, table: ProcessTable, now = Date.parse("2027-01-01T00:00:00Z")) =>
  await listSessions({
    adapters: [adapter],
    env: { HOME: userHome },
    processes: () => read(table),
    isMadeUp: true,
    now: () => now,
  });

/** First in a process that can be killed: a read that hangs would hang this test, too. */
async function expectNoHang(victim: Victim): Promise<void> {
  const { exit } = await askBinary(victim, ["read-store", victim.adapter.agent, victim.home]);
  expect(exit).toBe(0);
}

async function askBinary({ userHome }: Victim, args: string[]): Promise<{ exit: number; text: string }> {
  const child = Bun.spawn([binary, ...args], {
    cwd: userHome,
    env: { HOME: userHome, PATH: "/usr/bin:/bin" },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: patienceMs,
    killSignal: "SIGKILL",
  });
  const [stdout, stderr, exit] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { exit, text: stdout + stderr };
}
