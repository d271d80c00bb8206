// agentctl name and agentctl label: for sessions that agentctl did not launch, too.
import { expect, test } from "bun:test";
import { readdirSync, rmSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { binary, type Listed, TestHome } from "./test-home.ts";
import { ServerTestHome } from "./test-home-servers.ts";

interface Annotated extends Listed {
  name: string | null;
  labels: Record<string, string>;
}

const working = ["prompt:x", "work:60"];

test("a session started by hand gets a name and labels, and stays a session that was not launched", async () => {
  await using world = new TestHome();
  const agent = world.start(working);
  const { ref } = await world.until(agent.id, "working");
  expect((await world.run(["name", ref, "painter"])).out).toBe(`${ref}: name painter\n`);
  expect((await world.run(["label", "painter", "team=web", "ticket=4 2"])).out).toBe(
    `${ref}: name painter, team=web, ticket=4 2\n`,
  );
  const named = { id: agent.id, name: "painter", labels: { team: "web", ticket: "4 2" }, launch: null };
  expect(await world.json<Annotated>("status", "painter")).toMatchObject(named);
  expect((await world.list("--label", "team=web")).sessions.map(({ id }) => id)).toEqual([agent.id]);
  expect((await world.run(["list"])).out).toContain(`${ref} painter`);
  expect((await world.run(["status", "@last"])).code).toBe(3);
  expect((await world.run(["logs", "painter", "--output"])).code).toBe(3);
});

test("removing the name and the labels removes the note", async () => {
  await using world = new TestHome();
  const id = world.record([{ type: "prompt", text: "x" }]);
  await world.run(["name", id, "painter"]);
  await world.run(["label", id, "a=1"]);
  const notes = () => readdirSync(join(world.root, ".agentctl", "launches"));
  expect(notes()).toHaveLength(1);
  expect((await world.json<Annotated>("name", id, "--remove")).name).toBeNull();
  expect((await world.json<Annotated>("label", id, "a-")).labels).toEqual({});
  expect(notes()).toEqual([]);
});

test("a launched session keeps its launch; its name is replaced", async () => {
  await using world = new ServerTestHome();
  const id = await world.past("done", "--name", "old", "--label", "a=1");
  expect(await world.json<Annotated>("name", "old", "new")).toMatchObject({ id, name: "new", labels: { a: "1" } });
  const { launch, labels } = await world.json<Annotated>("label", "new", "a-", "b=2");
  expect([launch?.name, labels]).toEqual(["new", { b: "2" }]);
  expect((await world.run(["status", "old"])).code).toBe(3);
  expect((await world.json<Annotated>("status", "@last")).id).toBe(id);
});

test("the old name of a live session is free, also if an earlier launch of it had this name", async () => {
  await using world = new ServerTestHome();
  const id = await world.past("done", "--name", "old");
  expect((await world.run(["send", id, "work:60"])).code).toBe(0);
  expect(await world.json<Annotated>("name", "old", "new")).toMatchObject({ id, state: "running", name: "new" });
  const other = await world.launch("done", "--name", "old", "--share");
  expect((await world.json<Annotated>("status", "old")).id).toBe(other);
});

test("a name is kept until thirty days after the session stopped, however old it is", async () => {
  await using world = new ServerTestHome();
  const id = world.record([
    { type: "prompt", text: "x" },
    { type: "end", outcome: "completed" },
  ]);
  await world.run(["name", id, "painter"]);
  const folder = join(world.root, ".agentctl", "launches");
  const [note = ""] = readdirSync(folder);
  const old = new Date(Date.now() - 40 * 24 * 3_600_000);
  utimesSync(join(folder, note), old, old);
  await world.past("done");
  expect(readdirSync(folder)).toContain(note);
});

test("two live sessions cannot have one name; a note makes no row and no status", async () => {
  await using world = new TestHome();
  const [one, two] = [world.start(working), world.start(working)];
  for (const { id } of [one, two]) await world.until(id, "working");
  await world.run(["name", one.id, "painter"]);
  const refused = await world.run(["name", two.id, "painter", "--json"]);
  expect([refused.code, JSON.parse(refused.out).error.code]).toEqual([5, "name-taken"]);
  expect((await world.run(["name", one.id, "painter"])).code).toBe(0);
  await one.end();
  rmSync(join(world.home, "sessions", `${one.id}.jsonl`));
  expect((await world.list()).sessions.map(({ id }) => id)).toEqual([two.id]);
  expect((await world.run(["status", "painter"])).code).toBe(3);
});

test("an agent may name its own session and no other one", async () => {
  await using world = new TestHome();
  const other = world.start(working);
  await world.until(other.id, "working");
  const said = (name: string) => join(world.root, name);
  const agent = world.start([
    "prompt:x",
    `tool:${binary} name @self me >${said("own")} 2>&1; ${binary} name ${other.id} you >${said("other")} 2>&1`,
    "end",
    "idle",
  ]);
  await world.until(agent.id, "idle");
  expect(await Bun.file(said("own")).text()).toContain("name me");
  expect(await Bun.file(said("other")).text()).not.toContain("name you");
  expect(await world.json<Annotated>("status", agent.id)).toMatchObject({ name: "me" });
  expect(await world.json<Annotated>("status", other.id)).toMatchObject({ name: null });
});

test.each([
  [["name"], "needs a session"],
  [["name", "3f2a"], "give a NAME, or --remove"],
  [["name", "3f2a", "-x"], "unknown option"],
  [["name", "3f2a", "*"], "letters, digits"],
  [["label", "3f2a"], "give labels"],
  [["label", "3f2a", "x"], "not a label: x"],
])("%p is a usage error", async (args, message) => {
  await using world = new TestHome();
  const { code, err } = await world.run(args);
  expect([code, err]).toEqual([2, expect.stringContaining(message)]);
});
