// Bare `agentctl`: what each line of the first screen says.
import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TestHome } from "./test-home.ts";
import { ServerTestHome, until } from "./test-home-servers.ts";

const ago = (ms: number): string => new Date(Date.now() - ms).toISOString();
const minute = 60_000;

const sectionOf = (text: string, id: string): string => {
  const lines = text.split("\n");
  const at = lines.findIndex((line) => line.includes(id.slice(0, 8)));
  return lines.slice(0, at + 1).findLast((line) => !line.startsWith(" ")) ?? "";
};

test("a line shows the latest prompt, not the first one", async () => {
  await using world = new TestHome();
  const agent = world.start(["prompt:paint it", "end", "prompt:now make it blue", "end", "idle"]);
  await world.until(agent.id, "idle");
  await until("the latest prompt", async () => (await world.run([])).out.includes("now make it blue"));
  expect((await world.run([])).out).not.toContain("paint it");
});

test("a failed session says why, one that died says its exit status", async () => {
  await using world = new ServerTestHome();
  const failed = world.record([
    { type: "prompt", text: "x" },
    { type: "end", outcome: "failed", text: "no such model" },
  ]);
  const died = await world.past("exit:3");
  const { out } = await world.run([]);
  expect([sectionOf(out, failed), sectionOf(out, died)]).toEqual(
    Array(2).fill("Failed or cut off in the last 24 hours (2)"),
  );
  expect(out).toContain("failed no such model · ");
  expect(out).toContain("exit status 3 · ");
});

test("a session that a person stopped is not a failure", async () => {
  await using world = new ServerTestHome();
  const id = await world.launch("work:60");
  await world.until(id, "working");
  expect((await world.run(["stop", id])).code).toBe(0);
  expect((await world.run([])).out).not.toContain("Failed or cut off");
});

test("finished sessions are shown until a person sends another message anywhere", async () => {
  await using world = new TestHome();
  const id = crypto.randomUUID();
  const lines = [
    { type: "session", version: 1, id, cwd: world.root, model: "demo-1", parent: null, at: ago(30 * minute) },
    { type: "prompt", text: "x", at: ago(30 * minute) },
    { type: "end", outcome: "completed", at: ago(10 * minute) },
  ];
  mkdirSync(join(world.home, "sessions"), { recursive: true });
  writeFileSync(join(world.home, "sessions", `${id}.jsonl`), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  expect(sectionOf((await world.run([])).out, id)).toBe("Finished since your last message (1)");
  const agent = world.start(["prompt:something else", "work:60"]);
  await world.until(agent.id, "working");
  expect((await world.run([])).out).not.toContain("Finished since");
});

test("at 80 columns the directory and the command to get there are still shown", async () => {
  await using world = new TestHome();
  const cwd = world.folder("a-long-name-of-a-folder", "and-another-long-name", "project");
  const agent = world.start(["prompt:x", "ask:permission:May I push?"], { cwd });
  const { ref } = await world.until(agent.id, "waiting");
  const { out } = await world.run([], { env: { COLUMNS: "80" } });
  const lines = out.split("\n");
  expect(lines.every((line) => line.length <= 80)).toBe(true);
  expect(out).toMatch(/…[^ ]*project/);
  expect(out).toContain(`[agentctl attach ${ref}]`);
});
