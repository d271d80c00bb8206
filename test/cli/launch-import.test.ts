// An agent whose session is imported before it starts: a failed start leaves nothing of the import.
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { LaunchTestHome } from "./test-home-launch.ts";

/** Imports, runs and deletes like OpenCode, as seen from outside. */
const fake = (fails: string): string => `#!${process.execPath}
import { Database } from "bun:sqlite";
import { appendFileSync, mkdirSync, readFileSync } from "node:fs";
const [command, ...words] = process.argv.slice(2);
const home = process.env.HOME + "/.local/share/opencode";
appendFileSync(process.env.HOME + "/calls", command + "\\n");
if (command === ${JSON.stringify(fails)}) { console.error("no " + command + " today"); process.exit(3); }
mkdirSync(home, { recursive: true });
const database = new Database(home + "/opencode.db");
database.run("PRAGMA busy_timeout = 5000");
if (command === "import") {
  database.run("CREATE TABLE session (id, directory, title, version, time_created, time_updated)");
  database.run("CREATE TABLE message (id, session_id, time_created, time_updated, data)");
  database.run("CREATE TABLE part (id, message_id, session_id, time_created, time_updated, data)");
  const { info } = JSON.parse(readFileSync(words[0], "utf8"));
  database.run("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?)", [info.id, info.directory, info.title, "1", 1, 1]);
}
if (command === "session") database.run("DELETE FROM session WHERE id = ?", [words[1]]);
if (command === "run") { console.error("Model not found"); process.exit(1); }
`;

async function launched(world: LaunchTestHome, fails: string) {
  const bin = world.write("opencode", fake(fails), 0o755);
  world.env["AGENTCTL_OPENCODE_BIN"] = bin;
  const answer = await world.agentctl("launch", "opencode", "x", "--permission", "bypass");
  await world.untilAlone();
  return { ...answer, calls: readFileSync(join(world.root, "calls"), "utf8").split("\n").slice(0, -1) };
}

function sessions(world: LaunchTestHome): unknown[] {
  const path = join(world.root, ".local/share/opencode/opencode.db");
  if (!existsSync(path)) return [];
  using database = new Database(path, { readonly: true });
  return database.query("SELECT id FROM session").all();
}

describe("a start that fails", () => {
  test("after the import removes the empty session", async () => {
    await using world = new LaunchTestHome();
    const { code, err, calls } = await launched(world, "none");
    expect([code, err]).toEqual([7, expect.stringContaining("OpenCode does not know this model")]);
    expect(calls).toEqual(["import", "run", "session"]);
    expect([sessions(world), world.kept()]).toEqual([[], []]);
  });

  test("during the import leaves no file", async () => {
    await using world = new LaunchTestHome();
    const { code, err, calls } = await launched(world, "import");
    expect([code, err]).toEqual([7, expect.stringContaining("no import today")]);
    expect(calls).toEqual(["import"]);
    expect([sessions(world), world.kept()]).toEqual([[], []]);
  });

  test("whose import cannot be removed says so", async () => {
    await using world = new LaunchTestHome();
    const { code, err } = await launched(world, "session");
    expect(code).toBe(7);
    expect(err).toMatch(
      /an empty session was left behind: \S+opencode session delete ses_\w{26} failed: no session today/,
    );
    expect([sessions(world).length, world.kept()]).toEqual([1, []]);
  });

  test("the imported session is named by the launch during the import", async () => {
    await using world = new LaunchTestHome();
    world.env["AGENTCTL_OPENCODE_BIN"] = world.write(
      "opencode",
      "#!/bin/sh\ncp $2 $HOME/seen\nls $2 >&2\nexit 3\n",
      0o755,
    );
    const { err } = await world.agentctl("launch", "opencode", "x", "--permission", "bypass");
    expect(err).toMatch(/logs\/[0-9a-f]{8}-[0-9a-f-]{27}\.import\n/);
    expect(world.kept()).toEqual([]);
  });
});
