// Cline: its record names the process that has the session; a wrapper; a hub that outlives everything; no way to go on with a
// session but in its interface. Kept out of the hub, as launches are; cline-cases.ts has the hub.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { clineCases } from "../cline-cases.ts";
import type { Begin, RealAgent } from "../driver.ts";
import { filesBelow, installed, type TestHome, type Tui, waitFor } from "../test-home.ts";

const home = (world: TestHome): string => join(world.home, ".cline", "data");

function setUp(world: TestHome): void {
  const settings = {
    provider: "openai-compatible",
    apiKey: "dummy",
    model: "fake-model",
    baseUrl: `${world.model.url}/v1`,
  };
  const providers = {
    version: 1,
    lastUsedProvider: "openai-compatible",
    modes: {},
    providers: {
      "openai-compatible": { settings, updatedAt: "2026-11-16T00:00:00.000Z", tokenSource: "manual" },
    },
  };
  mkdirSync(join(home(world), "settings"), { recursive: true });
  writeFileSync(join(home(world), "settings/providers.json"), JSON.stringify(providers));
  const global = { telemetryOptOut: true, autoUpdateEnabled: false };
  writeFileSync(join(home(world), "settings/global-settings.json"), JSON.stringify(global));
  Object.assign(world.env, {
    CLINE_SESSION_BACKEND_MODE: "local",
    CLINE_DISABLE_CLINE_PASS_NOTICE: "1",
    CLINE_NO_AUTO_UPDATE: "1",
  });
  world.addCommand("cline", join(installed, "cline/bin/cline"));
}

type Fields = Record<string, unknown>;

function readDocument(path: string): Fields | null {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Fields;
  } catch (error) {
    if (error instanceof Error) return null;
    throw error;
  }
}

const sessions = (world: TestHome): string[] =>
  filesBelow(home(world), "sessions/*/*.json").flatMap((path) => /^sessions\/(\w+)\/\1\.json$/.exec(path)?.[1] ?? []);

function sign(world: TestHome, id: string): ReturnType<RealAgent["sign"]> {
  const folder = join(home(world), "sessions", id);
  const state = readDocument(join(folder, `${id}.json`));
  const messages = (readDocument(join(folder, `${id}.messages.json`))?.["messages"] ?? []) as Fields[];
  if (state === null) return null;
  if (state["status"] !== "running" && state["status"] !== "pending") return messages.length === 0 ? null : "ended";
  const blocks = messages.at(-1)?.["content"];
  const isCall = Array.isArray(blocks) && blocks.some((block) => (block as Fields)["type"] === "tool_use");
  return isCall ? "tool" : "prompted";
}

const words = ({ resume }: Begin): string[] => (resume === undefined ? [] : ["--id", resume]);

/** Cline loses an Enter that comes too early, so this presses Enter until the line is empty. */
async function say(tui: Tui, text: string): Promise<void> {
  tui.type(text);
  await tui.shows(new RegExp(text.slice(0, 12).replaceAll(/[^a-z ]/gi, ".")));
  await waitFor("the prompt to be taken", async () => {
    tui.press("Enter");
    const isTaken = () => /Thinking|Ask anything|Approve tool call|asking a question/.test(tui.screen());
    for (let tries = 0; tries < 30 && !isTaken(); tries += 1) await Bun.sleep(50);
    return isTaken();
  });
}

const onlyInInterface = "Cline goes on with a session only in its own interface";

export const cline: RealAgent = {
  name: "cline 3.0.65",
  agent: "cline",
  version: "3.0.65",
  isSlow: true,
  setUp,
  home,
  files: ["sessions/*/*.json"],
  headless: (_, prompt, begin = {}) => ["cline", "--json", ...words(begin), prompt],
  interface: {
    // The only way to keep an interface out of the hub: a data folder by name, here the usual one.
    command: (world, begin = {}) => ["cline", "--data-dir", home(world), ...words(begin)],
    ready: /What can I do for you|Ask anything/,
    say,
    escape: { keys: ["Escape"], shows: "idle" },
    closed: "interrupted",
    approval: {
      prompt: () => "look ;; BASH=touch seen ;; SAY=done",
      command: (world) => ["cline", "--data-dir", home(world), "--auto-approve", "false"],
      asks: /Approve tool call/,
      activity: "waiting",
    },
    freshId: false,
  },
  wrapper: true,
  isAgent: ({ argv }) => /\/\.?cline$/.test(argv[0] ?? "") && !argv.includes("--cline-hub-daemon"),
  stays: ({ argv }) => argv.includes("--cline-hub-daemon"),
  sessions,
  sign,
  shows: { firstTurn: "working", launchedTurn: "working", laterTurn: "working", tool: "working", error: "failed" },
  ends: {
    SIGINT: { turn: "interrupted", tool: "interrupted" },
    // It finishes its turn first.
    SIGTERM: { turn: "survives", tool: "survives" },
    SIGHUP: { turn: "cut-off", tool: "cut-off" },
    SIGKILL: { turn: "cut-off", tool: "cut-off" },
  },
  links: { plain: "announced", withId: null, resumed: "argv", launched: "announced" },
  promptBy: "argument",
  interrupted: ["interrupted"],
  stopped: ["interrupted"],
  wrong: { args: ["--no-such-flag"], says: /no-such-flag/ },
  sendRefused: /only in its own interface: agentctl resume opens it/,
  resumes: true,
  cannot: {
    "resumed by the agent's own command, the session keeps its id": onlyInInterface,
    "killed in a tool, then resumed: no call of the dead turn is pending": onlyInInterface,
    "send to a live session is refused with its terminal; of five at once one wins": onlyInInterface,
    resumed: onlyInInterface,
    "resumed-working": onlyInInterface,
    "killed-then-resumed": onlyInInterface,
    "a continued session keeps its permission": onlyInInterface,
    "inside a session @self is that session": "its tools' processes carry no mark of the session",
  },
  permits: {
    calls: (world, outside) => [
      `TOOL=editor ${JSON.stringify({ path: join(world.cwd, "edited"), new_text: "x" })}`,
      `TOOL=run_commands ${JSON.stringify({ commands: ["touch ran"] })}`,
      `TOOL=editor ${JSON.stringify({ path: outside, new_text: "x" })}`,
    ],
    read: { edited: false, ran: false, outside: false },
    edit: { edited: true, ran: false, outside: true },
    bypass: { edited: true, ran: true, outside: true },
    none: { edited: true, ran: true, outside: true },
    noneSays: /edits files and runs every command/,
  },
  cases: () => clineCases(cline),
  usage: { model: "fake-model", input: 1034, output: 56, cacheRead: 200, cacheWrite: 0 },
};
