// A launch opens no files of earlier launches, even if there were many.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { throwAwayFolder } from "../conformance/folder.ts";
import { workOf } from "./counting-fs.ts";

const { takeNarrowSnapshot } = await import("../../src/control/snapshot.ts");
const { cleanUpAfterLaunch } = await import("../../src/control/note-retention.ts");
const { liveOnly } = await import("../../src/observe/selection.ts");

const folder = throwAwayFolder();
const env = { HOME: folder.path, PATH: "/bin" };
const many = 200;

beforeAll(() => {
  const home = join(folder.path, ".demo-agent");
  const own = join(folder.path, ".agentctl");
  for (const path of [join(home, "sessions"), join(own, "launches"), join(own, "logs")])
    mkdirSync(path, { recursive: true });
  for (let number = 0; number < many; number += 1) {
    const [id, session] = [crypto.randomUUID(), crypto.randomUUID()];
    const at = "2026-10-01T00:00:00.000Z";
    const note = { schema: 1, id, agent: "demo", home, session, at, labels: {}, hooks: { start: null, exit: null } };
    writeFileSync(join(own, "launches", `${id}.json`), JSON.stringify(note));
    writeFileSync(join(own, "launches", `${id}.exit`), "0\n");
    writeFileSync(join(own, "logs", `${id}.out`), "");
    writeFileSync(
      join(home, "sessions", `${session}.jsonl`),
      `${JSON.stringify({ type: "session", at, id: session })}\n`,
    );
  }
});
afterAll(() => folder[Symbol.dispose]());

test("reading sessions before a start opens none of their files", async () => {
  const { opened, bytes, asked } = await workOf(() => takeNarrowSnapshot(env, liveOnly));
  expect({ opened, bytes }).toEqual({ opened: 0, bytes: 0 });
  expect(asked).toBeLessThan(60);
});

test("clean-up reads the age of each file, and opens none", async () => {
  const said: string[] = [];
  const { opened, asked } = await workOf(() =>
    cleanUpAfterLaunch([], { caller: { kind: "person" }, env, onNotice: ({ code }) => said.push(code) }),
  );
  expect({ opened, said }).toEqual({ opened: 0, said: [] });
  expect(asked).toBeGreaterThanOrEqual(3 * many);
  expect(asked).toBeLessThan(3 * many + 60);
});
