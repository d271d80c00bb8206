// A store that is slow or hangs makes only its own rows unknown, and does not delay the list.
import { describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { demo } from "../../src/agents/demo/index.ts";
import { deadlineIn } from "../../src/lib/deadline.ts";
import { readDistantStore } from "../../src/observe/distant-store.ts";
import { isShared, mayHang } from "../../src/observe/mounts.ts";
import { observe } from "../../src/observe/observe.ts";
import { readStore } from "../../src/observe/stores.ts";

const mounts = [
  "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw",
  "30 22 0:40 / /home rw - nfs4 server:/home rw",
  "31 30 254:1 / /home/me/fast rw - ext4 /dev/vdb rw",
  "32 22 0:41 / /mnt/a\\040b rw - fuse.sshfs host: rw",
  "33 22 0:42 / /srv rw master:1 - 9p tag rw",
].join("\n");

test.each([
  ["/root/.agent", false],
  ["/home/me/.agent", true],
  ["/home", true],
  ["/homes/x", false],
  ["/home/me/fast/.agent", false],
  ["/mnt/a b/.agent", true],
  ["/srv/x", true],
  ["/", false],
])("a folder %s on the file system of its longest mount may hang: %p", (folder, expected) => {
  expect(mayHang(folder, mounts)).toBe(expected);
});

test.each([
  ["ext4", false],
  ["nfs4", true],
  ["fuse.sshfs", true],
  ["fuse.fuse-overlayfs", false],
  ["fuseblk", false],
])("processes of other hosts may write to a folder on %s: %p", (type, expected) => {
  const table = `${mounts}\n40 22 0:50 / /x rw - ${type} source rw`;
  expect([isShared("/x/home", table), isShared("/", table)]).toEqual([expected, true]);
});

test("a folder with a network mount below it is shared, one beside it is not", () => {
  expect(["/home/me", "/mnt", "/root", "/home/me/fast/.agent"].map((each) => isShared(each, mounts))).toEqual([
    true,
    true,
    false,
    false,
  ]);
});

describe("a store that a child process reads", () => {
  const home = "/nowhere";

  test("is unread at the deadline if the child hangs", async () => {
    const started = performance.now();
    const store = await readDistantStore(demo, home, deadlineIn(50), ["sleep", "60"]);
    expect(performance.now() - started).toBeLessThan(2_000);
    expect(store).toMatchObject({ rows: [], listing: { ok: false, problem: { code: "store-slow", source: home } } });
  });

  test.each([[["false"]], [["echo", "not json"]]])("is unread if the child fails: %p", async (command) => {
    const store = await readDistantStore(demo, home, deadlineIn(5_000), command);
    expect(store).toMatchObject({ listing: { ok: false, problem: { code: "store-unreadable" } } });
  });

  test("is the same as if it was read here", async () => {
    const root = mkdtempSync(join(tmpdir(), "agentctl-store-"));
    mkdirSync(join(root, "sessions"));
    const id = crypto.randomUUID();
    writeFileSync(join(root, "sessions", `${id}.jsonl`), `{"type":"prompt","at":"2026-01-01T00:00:00Z","text":"x"}\n`);
    const binary = join(import.meta.dir, "../../dist/agentctl");
    try {
      const distant = await readDistantStore(demo, root, deadlineIn(10_000), [binary, "read-store", "demo", root]);
      expect(distant).toEqual(readStore(demo, root, deadlineIn(10_000)));
      expect(distant?.rows).toHaveLength(1);
      expect(await readDistantStore(demo, home, deadlineIn(10_000), [binary, "read-store", "demo", home])).toBeNull();
    } finally {
      rmSync(root, { recursive: true });
    }
  });
});

test("records that were not read before the deadline are unread, not absent and not stopped", async () => {
  const root = mkdtempSync(join(tmpdir(), "agentctl-store-"));
  mkdirSync(join(root, "sessions"));
  for (let count = 0; count < 3; count += 1) writeFileSync(join(root, "sessions", `${crypto.randomUUID()}.jsonl`), "");
  try {
    const store = readStore(demo, root, deadlineIn(0));
    expect(store?.rows.map(({ reading }) => reading.ok)).toEqual([false, false, false]);
    const { evidence } = await observe({ adapters: [demo], env: { DEMO_AGENT_HOME: root }, patienceMs: 0 });
    expect(evidence.stores.flatMap(({ rows }) => rows.map(({ reading }) => reading.ok))).toEqual([false, false, false]);
  } finally {
    rmSync(root, { recursive: true });
  }
});
