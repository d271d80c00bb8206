// The cache of parsed records changes no answer: empty, full, broken, and written by several commands at once.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  appendFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { adapters } from "../../src/agents/registry.ts";
import { findRecords } from "../../src/observe/record-names.ts";
import { casesOf, placeCase } from "../conformance/cases.ts";
import { waitFor } from "../conformance/wait.ts";
import { TestHome } from "./test-home.ts";

setDefaultTimeout(60_000);

const everything = ["list", "-a", "--since", "9999d", "--json"];

let world: TestHome;
let cold = "";
const cache = (): string => join(world.root, ".cache", "agentctl", "records");

/** The answer without the moment of asking. */
async function ask(env: Record<string, string> = {}): Promise<string> {
  const { code, out } = await world.run(everything, { env });
  expect(code).toBe(0);
  return out.replace(/"at":"[^"]*"/, '"at":null');
}

const firstRecord = (): string => {
  const claude = adapters.find(({ agent }) => agent === "claude-code");
  const [first] = claude === undefined ? [] : findRecords(claude, claude.home({ HOME: world.root }) ?? "").visited;
  if (first === undefined) throw new Error("there must be a record");
  return first.path;
};

/** Files that changed within the last two seconds are not cached: waits until all below the folder are older. */
async function untilCached(folder: string): Promise<void> {
  const changes = readdirSync(folder, { recursive: true, encoding: "utf8" }).map(
    (name) => lstatSync(join(folder, name)).ctimeMs,
  );
  const newest = Math.max(...changes);
  await waitFor("the files to be two seconds old", () => Date.now() > newest + 2_000);
}

beforeAll(async () => {
  world = new TestHome();
  for (const adapter of adapters)
    for (const captured of casesOf(adapter)) if (captured.moment === "dead") placeCase(adapter, captured, world.root);
  await untilCached(world.root);
  cold = await ask({ AGENTCTL_NO_CACHE: "1" });
});

afterAll(() => world[Symbol.asyncDispose]());

describe("the answer is the same", () => {
  test("without a cache, with a new one, and with a full one", async () => {
    expect(existsSync(cache())).toBe(false);
    expect(JSON.parse(cold).sessions.length).toBeGreaterThan(100);
    expect(await ask()).toBe(cold);
    expect(statSync(cache()).mode & 0o777).toBe(0o600);
    expect(await ask()).toBe(cold);
  });

  test("with a cache that is broken at any byte", async () => {
    const whole = readFileSync(cache());
    for (let part = 0; part < 12; part += 1) {
      const broken = Buffer.from(whole);
      const at = Math.floor((whole.length * part) / 12);
      broken[at] = (broken[at] ?? 0) ^ 1;
      writeFileSync(cache(), part % 4 === 3 ? whole.subarray(0, at) : broken);
      expect(await ask()).toBe(cold);
    }
  });

  test("with a folder instead of the cache, and in a folder that cannot be written", async () => {
    rmSync(cache(), { force: true });
    mkdirSync(cache());
    expect(await ask()).toBe(cold);
    rmSync(cache(), { recursive: true });
    writeFileSync(join(world.root, "no-folder"), "");
    expect(await ask({ XDG_CACHE_HOME: join(world.root, "no-folder") })).toBe(cold);
  });

  test("for several commands that write the cache at once", async () => {
    rmSync(cache(), { force: true });
    const answers = await Promise.all(Array.from({ length: 8 }, () => ask()));
    expect(new Set(answers)).toEqual(new Set([cold]));
    expect(await ask()).toBe(cold);
  });

  test("after a record was appended to, replaced with the same size and time, or removed", async () => {
    const path = firstRecord();
    const [before, { atime, mtime }] = [readFileSync(path), statSync(path)];
    const fresh = () => ask({ AGENTCTL_NO_CACHE: "1" });
    await ask();
    appendFileSync(
      path,
      '{"type":"user","message":{"role":"user","content":"more"},"timestamp":"2026-12-01T00:00:00Z"}\n',
    );
    expect(await ask()).toBe(await fresh());
    writeFileSync(`${path}.new`, Buffer.from(before.toString("latin1").replace(/"user"/g, '"usar"'), "latin1"));
    utimesSync(`${path}.new`, atime, mtime);
    renameSync(`${path}.new`, path);
    expect(await ask()).toBe(await fresh());
    expect(await ask()).not.toBe(cold);
    rmSync(path);
    expect(await ask()).toBe(await fresh());
    writeFileSync(path, before);
    utimesSync(path, atime, mtime);
    expect(await ask()).toBe(cold);
  });
});

describe("the cache of running sessions", () => {
  let live: TestHome;
  const kept = (): string => join(live.root, ".cache", "agentctl", "live");
  const shown = async (env: Record<string, string> = {}, ...args: string[]): Promise<string> => {
    const { code, out } = await live.run([...(args.length === 0 ? ["list"] : args), "--json"], { env });
    expect(code).toBe(0);
    return out.replace(/"at":"[^"]*"/g, '"at":null');
  };
  const uncached = (...args: string[]) => shown({ AGENTCTL_NO_CACHE: "1" }, ...args);
  const ids: string[] = [];

  beforeAll(async () => {
    live = new TestHome();
    for (const steps of [
      ["work:300"],
      ["ask:permission:May I?"],
      ["say:done", "end", "idle"],
      ["say:more", "end", "idle"],
    ]) {
      const { id } = live.start(["prompt:go", ...steps], { cwd: live.folder(`place-${ids.length}`) });
      ids.push(id);
    }
    await live.until(ids[0] ?? "", "working");
    await live.until(ids[1] ?? "", "waiting");
    await live.until(ids[2] ?? "", "idle");
    await live.until(ids[3] ?? "", "idle");
    await untilCached(live.home);
  });

  afterAll(() => live[Symbol.asyncDispose]());

  test("changes no answer when it is missing, new, full or broken", async () => {
    const expected = await uncached();
    expect(JSON.parse(expected).sessions).toHaveLength(4);
    rmSync(kept(), { force: true });
    expect(await shown()).toBe(expected);
    const whole = readFileSync(kept());
    for (const id of ids) expect(whole.includes(id)).toBe(true);
    expect(await shown()).toBe(expected);
    for (let part = 0; part < 6; part += 1) {
      const broken = Buffer.from(whole);
      const at = Math.floor((whole.length * part) / 6);
      broken[at] = (broken[at] ?? 0) ^ 1;
      writeFileSync(kept(), broken);
      expect(await shown()).toBe(expected);
    }
    expect(new Set(await Promise.all(Array.from({ length: 4 }, () => shown())))).toEqual(new Set([expected]));
    expect(await shown({}, "status", ids[1] ?? "")).toBe(await uncached("status", ids[1] ?? ""));
  });

  test("does not hide changes of a record", async () => {
    await shown();
    const path = join(live.home, "sessions", `${ids[2]}.jsonl`);
    appendFileSync(path, `${JSON.stringify({ type: "user", text: "go on", at: new Date().toISOString() })}\n`);
    const now = await shown();
    expect(now).toBe(await uncached());
    await untilCached(live.home);
    expect(await shown()).toBe(now);
  });
});
