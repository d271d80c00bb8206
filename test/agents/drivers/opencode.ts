// OpenCode: one database for all sessions, no announcement; its own importer makes a session of a chosen id.
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { withDatabase } from "../../../src/sys/sqlite.ts";
import type { Begin, RealAgent } from "../driver.ts";
import { opencodeCases } from "../opencode-cases.ts";
import { installed, type TestHome } from "../test-home.ts";

const home = (world: TestHome): string => join(world.home, ".local", "share", "opencode");

export function writeSettings(world: TestHome, more: Record<string, unknown> = {}): void {
  const fake = {
    npm: "@ai-sdk/openai-compatible",
    name: "fake",
    options: { baseURL: `${world.model.url}/v1`, apiKey: "dummy" },
    models: { "fake-model": { name: "fake-model", limit: { context: 200_000, output: 8000 } } },
  };
  const settings = {
    model: "fake/fake-model",
    small_model: "fake/fake-model",
    autoupdate: false,
    share: "disabled",
    provider: { fake },
    ...more,
  };
  const folder = join(world.home, ".config", "opencode");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "opencode.json"), JSON.stringify(settings));
}

function setUp(world: TestHome): void {
  writeSettings(world);
  Object.assign(world.env, { OPENCODE_DISABLE_MODELS_FETCH: "1", OPENCODE_DISABLE_AUTOUPDATE: "1" });
  world.addCommand("opencode", join(installed, "opencode-ai/bin/opencode.exe"));
}

/** Its present rows; none while there is no database. The reading does not block an agent that starts meanwhile. */
export function rows(world: TestHome, sql: string, ...values: string[]): Record<string, unknown>[] {
  const path = join(home(world), "opencode.db");
  if (!existsSync(path)) return [];
  try {
    return withDatabase(path, (database) => database.rows(sql, ...values));
  } catch (error) {
    // Its tables are being made.
    if (error instanceof Error && /no such table|locked|unable to open/.test(error.message)) return [];
    throw error;
  }
}

interface Data {
  role?: string;
  type?: string;
  finish?: string;
  error?: unknown;
  time?: { completed?: number };
  state?: { status?: string };
}

const data = (row: Record<string, unknown>): Data => JSON.parse(String(row["data"]));

/** A prompt counts when its answer has a row. */
function sign(world: TestHome, id: string): ReturnType<RealAgent["sign"]> {
  const [last] = rows(
    world,
    "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created DESC, id DESC LIMIT 1",
    id,
  );
  if (last === undefined || data(last).role !== "assistant") return null;
  const { time, finish, error } = data(last);
  if (time?.completed !== undefined && (error !== undefined || finish !== "tool-calls")) return "ended";
  const parts = rows(world, "SELECT data FROM part WHERE message_id = ?", String(last["id"])).map(data);
  return parts.some(({ type, state }) => type === "tool" && state?.status === "running") ? "tool" : "prompted";
}

const words = ({ resume }: Begin): string[] => (resume === undefined ? [] : ["--session", resume]);

export const opencode: RealAgent = {
  name: "opencode 1.18.33",
  agent: "opencode",
  version: "1.18.33",
  isSlow: true,
  setUp,
  home,
  files: ["opencode.db"],
  // It puts an argument with spaces into quotes: so each word is one.
  headless: (_, prompt, begin = {}) => [
    ...["opencode", "run", "--auto", "--format", "json", ...words(begin)],
    ...["--", ...prompt.split(" ")],
  ],
  interface: {
    command: (_, begin = {}) => ["opencode", ...words(begin)],
    ready: /Ask anything|fake-model/,
    // Two presses, which must not come at once: seen by hand.
    escape: null,
    closed: ["interrupted", "cut-off"],
    approval: {
      setUp: (world) => writeSettings(world, { permission: { bash: "ask" } }),
      prompt: () => "run it ;; BASH=touch made",
      asks: /Permission required|Allow once/,
      activity: "unclear",
    },
    freshId: false,
  },
  wrapper: false,
  isAgent: ({ name }) => name === "opencode",
  sessions: (world) =>
    rows(world, "SELECT id FROM session WHERE parent_id IS NULL ORDER BY time_created").map(({ id }) => String(id)),
  sign,
  shows: {
    firstTurn: "working",
    launchedTurn: "working",
    laterTurn: "working",
    tool: "working",
    error: "failed",
  },
  ends: {
    SIGINT: { turn: "cut-off", tool: "cut-off" },
    SIGTERM: { turn: "cut-off", tool: "cut-off" },
    SIGHUP: { turn: "cut-off", tool: "cut-off" },
    SIGKILL: { turn: "cut-off", tool: "cut-off" },
  },
  links: { plain: "cwd", withId: null, resumed: "argv", launched: "assigned" },
  promptBy: "stdin",
  interrupted: ["cut-off"],
  stopped: ["cut-off"],
  wrong: { args: ["--no-such-flag"], says: /does not know an argument/ },
  resumes: true,
  cases: opencodeCases,
  permits: {
    calls: (world, outside) => [
      write(join(world.cwd, "edited")),
      `TOOL=bash ${JSON.stringify({ command: "touch ran", description: "makes a file" })}`,
      write(outside),
    ],
    read: { edited: false, ran: false, outside: false },
    edit: { edited: true, ran: false, outside: false },
    bypass: { edited: true, ran: true, outside: true },
    none: { edited: true, ran: true, outside: false },
    noneSays: /its settings decide/,
  },
};

const write = (filePath: string): string => `TOOL=write ${JSON.stringify({ filePath, content: "x" })}`;
