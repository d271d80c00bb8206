// Counts the files that a command opens: a command that reads more than it needs fails here, without measuring time.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { throwAwayFolder } from "../conformance/folder.ts";
import { workOf } from "./counting-fs.ts";

const { adapters } = await import("../../src/agents/registry.ts");
const { listSessions } = await import("../../src/observe/observe.ts");
const { lookFor, resolve } = await import("../../src/service/reference.ts");
const { lookAtRows } = await import("../../src/service/look.ts");
const { liveOnly } = await import("../../src/observe/selection.ts");

const folder = throwAwayFolder();
const many = 300;
/** What was written just now is looked at twice. */
const longAgo = Date.parse("2026-10-01T00:00:00Z") / 1000;
const idOf = (number: number): string => `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
const look = (selection: Parameters<typeof listSessions>[0]["selection"]) => () =>
  listSessions({
    adapters,
    env: { HOME: folder.path, PATH: "/bin" },
    ...(selection === undefined ? {} : { selection }),
  });

beforeAll(() => {
  const fixtures = join(import.meta.dir, "..", "fixtures");
  const claude = recordBelow(join(fixtures, "claude-code/197-headless-completed"));
  const codex = recordBelow(join(fixtures, "codex/headless-completed"));
  for (let number = 0; number < many; number += 1) {
    const id = idOf(number);
    const day = String((number % 28) + 1).padStart(2, "0");
    put(join(folder.path, ".claude/projects", `-work-${number % 10}`, `${id}.jsonl`), claude, id);
    put(join(folder.path, `.codex/sessions/2026/10/${day}`, `rollout-2026-10-${day}T00-00-00-${id}.jsonl`), codex, id);
  }
});
afterAll(() => folder[Symbol.dispose]());

function put(path: string, text: string, id: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text.replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, id));
  utimesSync(path, longAgo, longAgo);
}

function recordBelow(root: string): string {
  const found = readdirSync(root, { recursive: true, encoding: "utf8" })
    .sort()
    .find((name) => /(projects|sessions\/\d{4})\/.*\.jsonl$/.test(name));
  if (found === undefined || !statSync(join(root, found)).isFile()) throw new Error(`no record below ${root}`);
  return readFileSync(join(root, found), "utf8");
}

describe("with six hundred sessions that are not running", () => {
  test("list opens no record, calls stat on none, and reads each folder once", async () => {
    const { opened, bytes, asked, listed, processes, detailed } = await workOf(look(liveOnly));
    expect({ opened, bytes }).toEqual({ opened: 0, bytes: 0 });
    // The processes that run the tests; a process without an agent's name is not read further.
    expect(processes).toBeGreaterThan(1);
    expect(detailed).toBeLessThanOrEqual(1);
    expect(asked).toBeLessThan(60);
    expect(listed).toBeLessThan(120);
  });

  test("status opens only the record of its session", async () => {
    const { opened } = await workOf(look({ ids: new Set([idOf(7)]) }));
    expect(opened).toBe(2);
  });

  test("`.` calls stat once per directory, and reads the mount table once", async () => {
    const quiet = () => {};
    const env = { HOME: folder.path, PATH: "/bin" };
    const context = { env, cwd: folder.path, out: quiet, err: quiet };
    const { all } = await lookFor(["."], context, lookAtRows);
    const directories = new Set(all.rows.map(({ session }) => session.cwd));
    const { mountTables, located } = await workOf(async () => expect(() => resolve(".", all, context)).toThrow());
    expect(all.rows.length).toBe(2 * many);
    expect(mountTables).toBe(1);
    expect(located).toBeLessThanOrEqual(directories.size + 1);
    expect(directories.size).toBeLessThan(20);
  });

  test("list -a opens each record once", async () => {
    const { opened } = await workOf(look("all"));
    expect(opened).toBeGreaterThanOrEqual(2 * many);
    expect(opened).toBeLessThan(2 * many + 20);
  });
});
