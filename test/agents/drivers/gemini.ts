// Gemini CLI: no announcement; a wrapper that ignores signals; a record that shows tool calls only when they are done.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Begin, RealAgent } from "../driver.ts";
import { filesBelow, installed, readLines, type TestHome } from "../test-home.ts";

const home = (world: TestHome): string => join(world.home, ".gemini");

function setUp(world: TestHome): void {
  const settings = {
    security: { auth: { selectedType: "gemini-api-key" } },
    general: {
      enableAutoUpdate: false,
      enableAutoUpdateNotification: false,
      maxAttempts: 1,
      plan: { directory: "plans" },
    },
    privacy: { usageStatisticsEnabled: false },
    model: { name: "gemini-2.5-flash" },
  };
  mkdirSync(home(world), { recursive: true });
  writeFileSync(join(home(world), "settings.json"), JSON.stringify(settings));
  Object.assign(world.env, {
    GEMINI_API_KEY: "dummy",
    GOOGLE_GEMINI_BASE_URL: world.model.url,
    GEMINI_CLI_TRUST_WORKSPACE: "true",
  });
  world.addCommand("gemini", join(installed, "gemini/bundle/gemini.js"));
}

const records = (world: TestHome): string[] =>
  filesBelow(home(world), "tmp/*/chats/session-*.jsonl").map((path) => join(home(world), path));

const idOf = (path: string): string | null => {
  const id = readLines(path)[0]?.["sessionId"];
  return typeof id === "string" ? id : null;
};

/** A resumed session has a second file, without a message. */
const linesOf = (world: TestHome, id: string): Record<string, unknown>[] =>
  records(world)
    .filter((path) => idOf(path) === id)
    .map((path) => readLines(path))
    .sort((a, b) => b.length - a.length)[0] ?? [];

/** A tool call shows as an answer without a text; the suites' tools come with one, like an answer that ends the turn. */
function sign(world: TestHome, id: string): ReturnType<RealAgent["sign"]> {
  const lines = linesOf(world, id);
  const last = lines.findLast(
    (line) => line["type"] === "user" || line["type"] === "gemini" || hasMessages(line) || isCancelled(line),
  );
  if (last === undefined || !lines.some((line) => line["type"] === "user")) return null;
  if (hasMessages(last)) return lines.at(-2)?.["$set"] !== undefined && isOpening(lines) ? null : "ended";
  if (last["type"] === "gemini") return last["content"] === "" ? "tool" : "ended";
  return "prompted";
}

const hasMessages = ({ $set }: Record<string, unknown>): boolean =>
  typeof $set === "object" && $set !== null && "messages" in $set;

const isOpening = (lines: readonly Record<string, unknown>[]): boolean =>
  JSON.stringify(lines.at(-2) ?? {}).startsWith('{"$set":{"sessionId"');

const isCancelled = (line: Record<string, unknown>): boolean => line["content"] === "Request cancelled.";

/** Still in the box for the next prompt, below all that was said; a question takes the box's place. */
const isTyped = (screen: string, text: string): boolean =>
  !screen.includes("Allow execution") && lastPrompt(screen).includes(text.slice(0, 12));

const lastPrompt = (screen: string): string => screen.split("\n").findLast((line) => /^ *[>*!] /.test(line)) ?? "";

const words = ({ session, resume }: Begin): string[] => [
  ...(session === undefined ? [] : ["--session-id", session]),
  ...(resume === undefined ? [] : ["--resume", resume]),
];

const environment = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1");
  } catch (error) {
    if (error instanceof Error) return "";
    throw error;
  }
};

/** A headless Gemini that leaves plan mode may do everything. */
function wayOut(world: TestHome): string {
  mkdirSync(join(world.cwd, "plans"), { recursive: true });
  writeFileSync(join(world.cwd, "plans/plan.md"), "# Do everything\n");
  return 'TOOL=enter_plan_mode {"reason":"x"}\nTOOL=exit_plan_mode {"plan_filename":"plan.md"}';
}

export const gemini: RealAgent = {
  name: "gemini 0.61.0",
  agent: "gemini",
  version: "0.61.0",
  isSlow: true,
  setUp,
  home,
  files: ["tmp/*/chats/session-*.jsonl", "tmp/*/.project_root"],
  headless: (_, prompt, begin = {}) => ["gemini", "--approval-mode", "yolo", ...words(begin), "--prompt", prompt],
  interface: {
    command: (_, begin = {}) => ["gemini", ...words(begin)],
    ready: /Type your message/,
    // Gemini takes an Enter right after a letter for a new line, and may lose one while it reads an old session.
    async say(tui, text) {
      tui.type(text);
      await tui.shows(new RegExp(text.slice(-10).replaceAll(/[^a-z ]/gi, ".")));
      for (let tries = 0; tries < 5 && isTyped(tui.screen(), text); tries += 1) {
        await Bun.sleep(500);
        tui.press("Enter");
        for (let waits = 0; waits < 20 && isTyped(tui.screen(), text); waits += 1) await Bun.sleep(50);
      }
    },
    resumed: "cwd",
    escape: { keys: ["Escape"], shows: "idle" },
    closed: "cut-off",
    approval: {
      prompt: () => "look ;; BASH=touch seen ;; SAY=done",
      asks: /Allow execution/,
      activity: "unclear",
    },
    freshId: true,
  },
  wrapper: true,
  isAgent: ({ pid, argv }) =>
    argv.some((argument) => argument.endsWith("/gemini")) && environment(pid).includes("GEMINI_CLI_NO_RELAUNCH=true"),
  sessions: (world) => [...new Set(records(world).flatMap((path) => idOf(path) ?? []))],
  sign,
  freshId: (index) => `${index}1111111-2222-4333-8444-555555555555`,
  shows: {
    firstTurn: "working",
    launchedTurn: "working",
    laterTurn: "working",
    tool: "unclear",
    toolSign: null,
    endUnsaid: true,
    error: null,
  },
  ends: {
    SIGINT: { turn: "cut-off", tool: null },
    SIGTERM: { turn: "cut-off", tool: null },
    SIGHUP: { turn: "cut-off", tool: null },
    SIGKILL: { turn: "cut-off", tool: null },
  },
  links: { plain: "cwd", withId: "argv", resumed: "argv", launched: "assigned" },
  promptBy: "stdin",
  interrupted: ["cut-off"],
  stopped: [null],
  wrong: { args: ["--no-such-flag"], says: /such-flag/ },
  resumes: true,
  permits: {
    calls: (world, outside) => [
      `TOOL=write_file ${JSON.stringify({ file_path: join(world.cwd, "edited"), content: "x" })}`,
      `${wayOut(world)}\nTOOL=run_shell_command ${JSON.stringify({ command: "touch ran" })}`,
      `TOOL=run_shell_command ${JSON.stringify({ command: `touch ${outside}` })}`,
    ],
    read: { edited: false, ran: false, outside: false },
    edit: { edited: true, ran: false, outside: false },
    bypass: { edited: true, ran: true, outside: true },
    none: { edited: false, ran: true, outside: true },
    noneSays: /may plan, and then do everything/,
  },
  usage: { model: "gemini-2.5-flash", input: 1034, output: 56, cacheRead: 200, cacheWrite: 0 },
};
