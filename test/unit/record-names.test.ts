// Names of records: found by id and by their beginning, whatever else lies around.
import { afterAll, expect, test } from "bun:test";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, readdirSync, readlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { claudeCode } from "../../src/agents/claude-code/index.ts";
import { codex } from "../../src/agents/codex/index.ts";
import { opencode } from "../../src/agents/opencode/index.ts";
import { adapters } from "../../src/agents/registry.ts";
import { listSessions } from "../../src/observe/observe.ts";
import { RecordNames, visitRecords } from "../../src/observe/record-names.ts";
import { visitFound } from "../../src/observe/records.ts";
import { selectIds } from "../../src/observe/selection.ts";
import { Databases } from "../../src/sys/sqlite.ts";
import { throwAwayFolder } from "../conformance/folder.ts";
import { openElsewhere } from "../process/database-writer.ts";

const folder = throwAwayFolder();
afterAll(() => folder[Symbol.dispose]());

const ids = ["aaaaaaaa-1111-4000-8000-000000000001", "aaaaaaaa-1111-4000-8000-000000000002"] as const;
const other = "bbbbbbbb-1111-4000-8000-000000000003";
const claudeHome = join(folder.path, ".claude");
const codexHome = join(folder.path, ".codex");

function put(path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, "");
}

for (const id of ids) put(join(claudeHome, "projects/-one", `${id}.jsonl`));
put(join(claudeHome, "projects/-two", `${other}.jsonl`));
// The same session in another folder; names that only look like one; folders and files that are none of ours.
put(join(claudeHome, "projects/-two", `${ids[0]}.jsonl`));
put(join(claudeHome, "projects/-two", `x\n${ids[1]}.jsonl`));
put(join(claudeHome, "projects/-two", `${ids[1]}.jsonl.bak`));
mkdirSync(join(claudeHome, "projects/-empty"));
put(join(codexHome, "sessions/2026/01/02", `rollout-2026-01-02T03-04-05-${other}.jsonl`));

const names = (adapter: typeof claudeCode, home: string) => new RecordNames(adapter, home, new Databases());
const claude = names(claudeCode, claudeHome);
const paths = (found: { path: string }[]): string[] => found.map(({ path }) => path).sort();

test("all records are found", () => {
  expect(claude.all()).toHaveLength(4);
  expect(claude.failures).toEqual([]);
});

test("every record of an id is found", () => {
  const found = claude.like({ ids: [ids[0], other, "cccccccc-1111-4000-8000-000000000004"] });
  expect(paths(found)).toEqual(paths(claude.all().filter(({ subject }) => subject === ids[0] || subject === other)));
  expect(claude.like({ ids: [ids[1]] })).toHaveLength(1);
  expect(claude.like({})).toEqual([]);
});

test.each(["aaaaaaaa", "aaaaaaaa-1111", "aaa", "a"])("records are found by the start of their id: %s", (start) => {
  expect(paths(claude.like({ beginnings: [start] }))).toEqual(
    paths(claude.all().filter(({ subject }) => subject.startsWith("a"))),
  );
});

test("records are not found by the middle of their id or by their folder", () => {
  for (const middle of ["1111-4000", "8000-000000000001", "-two", "projects", "jsonl", "0"])
    expect(claude.like({ beginnings: [middle] })).toEqual([]);
});

test.each(["", "/", "/aaaaaaaa", "//0", "aaaaaaaa/", "//"])(
  "a text that cannot be an id finds nothing, without reading: %j",
  (text) => {
    for (const names of [claude, new RecordNames(claudeCode, join(folder.path, "nowhere"), new Databases())]) {
      expect(names.like({ ids: [text] })).toEqual([]);
      expect(names.like({ beginnings: [text] })).toEqual([]);
    }
  },
);

test("each of very many records is found", () => {
  const many = Array.from(
    { length: 600 },
    (_, number) => `cccccccc-1111-4000-8000-${String(number).padStart(12, "0")}`,
  );
  expect(claude.like({ ids: [...many, other] }).map(({ subject }) => subject)).toEqual([other]);
});

test("a record whose name holds more than its id is found", () => {
  const found = names(codex, codexHome);
  expect(found.like({ ids: [other] })).toHaveLength(1);
  expect(found.like({ beginnings: ["bbbbbbbb"] })).toHaveLength(1);
  expect(found.like({ beginnings: ["rollout"] })).toEqual([]);
});

test("upper and lower case do not matter", () => {
  const id = "ses_0123456789abABCDEFGHIJKLMN";
  const home = join(folder.path, "opencode");
  put(join(home, "storage/session/project", `${id}.json`));
  const found = names(opencode, home).like({ beginnings: [id.slice(0, 20).toLowerCase()] });
  expect(found.map(({ subject }) => subject)).toEqual([id]);
});

test("sessions of a database are found by directory, by id and by the start of their id", () => {
  const home = join(folder.path, "database");
  cpSync(join(import.meta.dir, "../fixtures/opencode/headless-completed/home"), home, { recursive: true });
  const found = names(opencode, home);
  const [only, ...more] = found.all();
  expect(more).toEqual([]);
  if (only?.cwd == null) throw new Error("a session with a directory");
  expect(found.near(new Set(["/elsewhere", only.cwd]))).toEqual([only]);
  expect(found.near(new Set(["/elsewhere"]))).toEqual([]);
  expect(found.near(null)).toEqual([only]);
  expect(found.like({ ids: [only.subject] })).toEqual([only]);
  expect(found.like({ beginnings: [only.subject.slice(0, 9).toLowerCase()] })).toEqual([only]);
  expect(found.like({ ids: [only.subject], beginnings: [only.subject.slice(0, 9).toLowerCase(), "ses_"] })).toEqual([
    only,
  ]);
  expect(found.like({ ids: ["ses_0000000000000"], beginnings: ["ses_zz"] })).toEqual([]);
  // What an older set has counts only where the newer one does not have it: that takes all of them.
  put(join(home, "storage/session/project", `${only.subject}.json`));
  expect(names(opencode, home).near(new Set(["/elsewhere"]))).toEqual([only]);
});

const openTimes = (path: string): number =>
  readdirSync("/proc/self/fd").filter((fd) => {
    const link = `/proc/self/fd/${fd}`;
    return existsSync(link) && readlinkSync(link) === path;
  }).length;

test("a database is closed before other files are read, so that an exiting writer can remove its log", async () => {
  const home = join(folder.path, "held");
  cpSync(join(import.meta.dir, "../fixtures/opencode/headless-completed/home"), home, { recursive: true });
  put(join(home, "storage/session/project/ses_0123456789abABCDEFGHIJKLMN.json"));
  const path = join(home, "opencode.db");
  const writer = await openElsewhere(path);
  const { visited } = visitRecords(opencode, home, (record) => [record.path === path, openTimes(path)]);
  writer.stdin.end();
  await once(writer, "exit");
  expect(visited).toEqual([
    [true, 1],
    [false, 0],
  ]);
});

test("a database without a wanted session is closed, too", async () => {
  const home = join(folder.path, "unwanted");
  cpSync(join(import.meta.dir, "../fixtures/opencode/headless-completed/home"), home, { recursive: true });
  const path = join(home, "opencode.db");
  put(join(home, "storage/session/project/ses_0123456789abABCDEFGHIJKLMN.json"));
  const writer = await openElsewhere(path);
  const databases = new Databases();
  const files = new RecordNames(opencode, home, databases).all().filter((record) => record.path !== path);
  const visited = visitFound(files, () => openTimes(path), databases);
  writer.stdin.end();
  await once(writer, "exit");
  expect(visited).toEqual([0]);
});

test("records whose names have other letters are all read", () => {
  put(join(claudeHome, "projects/-drei", "größe.txt"));
  expect(names(claudeCode, claudeHome).like({ beginnings: ["bbbbbbbb"] })).toHaveLength(1);
});

test("a request for one session names the sessions with the same beginning", async () => {
  const { sessions, unopened } = await listSessions({
    ...{ adapters, env: { HOME: folder.path }, selection: selectIds([ids[0]]) },
    isMadeUp: true,
    processes: () => ({
      ok: true,
      value: {
        boot: "b",
        namespace: { id: null, initial: true },
        rows: [],
        gaps: [],
        hidden: [],
        uid: process.getuid?.() ?? -1,
      },
    }),
  });
  expect(sessions.map(({ id }) => id)).toEqual([ids[0]]);
  expect(unopened).toEqual([{ agent: "claude-code", ids: [ids[1]] }]);
});
