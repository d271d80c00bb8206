// Qwen Code: its interface announces, its headless runs do not; two wrappers; a record that says how turns end.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Begin, RealAgent } from "../driver.ts";
import { filesBelow, installed, readLines, type TestHome } from "../test-home.ts";

const home = (world: TestHome): string => join(world.home, ".qwen");

function setUp(world: TestHome): void {
  const settings = {
    security: { auth: { selectedType: "openai" }, folderTrust: { enabled: false } },
    general: { enableAutoUpdate: false, disableAutoUpdate: true },
    privacy: { usageStatisticsEnabled: false },
    memory: { enableManagedAutoMemory: false },
    model: { name: "fake-model", generationConfig: { contextWindowSize: 10_000_000, maxRetries: 0 } },
  };
  mkdirSync(home(world), { recursive: true });
  writeFileSync(join(home(world), "settings.json"), JSON.stringify(settings));
  Object.assign(world.env, {
    OPENAI_API_KEY: "dummy",
    OPENAI_BASE_URL: `${world.model.url}/v1`,
    OPENAI_MODEL: "fake-model",
    QWEN_CODE_SUPPRESS_YOLO_WARNING: "1",
  });
  world.useNewNode();
  world.addCommand("qwen", join(installed, "qwen/cli-entry.js"));
}

const records = (world: TestHome): string[] =>
  filesBelow(home(world), "projects/*/chats/*.jsonl").map((path) => join(home(world), path));

const idOf = (path: string): string => /([0-9a-f-]{36})\.jsonl$/.exec(path)?.[1] ?? "";

type Fields = Record<string, unknown>;

const partsOf = ({ message }: Fields): Fields[] => ((message as Fields | undefined)?.["parts"] ?? []) as Fields[];

function sign(world: TestHome, id: string): ReturnType<RealAgent["sign"]> {
  const path = records(world).find((each) => idOf(each) === id);
  const lines = path === undefined ? [] : readLines(path);
  const last = lines.findLast(({ type }) => type === "user" || type === "assistant" || type === "tool_result");
  if (last === undefined) return null;
  if (last["type"] === "assistant") return partsOf(last).some((part) => "functionCall" in part) ? "tool" : "ended";
  const isCancelled = (last["toolCallResult"] as Fields | undefined)?.["status"] === "cancelled";
  if (isCancelled) return "ended";
  // An interface writes this a moment after the prompt; it shows that there is an Esc.
  const isWhole = lines.slice(lines.indexOf(last)).some(({ subtype }) => subtype === "file_history_snapshot");
  return last["type"] === "user" && hasInterface(world, id) && !isWhole ? null : "prompted";
}

const hasInterface = (world: TestHome, id: string): boolean =>
  filesBelow(home(world), "sessions/*.json").some((path) => readFileSync(join(home(world), path), "utf8").includes(id));

const words = ({ session, resume }: Begin): string[] => [
  ...(session === undefined ? [] : ["--session-id", session]),
  ...(resume === undefined ? [] : ["--resume", resume]),
];

const relaunched = (pid: number): boolean => {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1").includes("QWEN_CODE_NO_RELAUNCH=true");
  } catch (error) {
    if (error instanceof Error) return false;
    throw error;
  }
};

export const qwen: RealAgent = {
  name: "qwen 0.24.4",
  agent: "qwen",
  version: "0.24.4",
  isSlow: true,
  setUp,
  home,
  files: ["projects/*/chats/*.jsonl", "sessions/*.json"],
  headless: (_, prompt, begin = {}) => ["qwen", "--approval-mode", "yolo", ...words(begin), "--prompt", prompt],
  interface: {
    command: (_, begin = {}) => ["qwen", "--approval-mode", "default", ...words(begin)],
    ready: /Type your message/,
    turn: "unclear",
    resumed: "announced",
    link: "announced",
    // Before the first word of an answer it leaves no trace.
    escape: { keys: ["Escape"], shows: "idle", after: /↓ \d+ tokens/ },
    closed: "cut-off",
    approval: {
      prompt: () => "look ;; BASH=touch seen ;; SAY=done",
      asks: /Allow execution/,
      activity: "unclear",
      sign: "tool",
    },
    freshId: true,
  },
  wrapper: true,
  isAgent: ({ pid, argv }) =>
    argv.some((argument) => argument.endsWith("/cli.js")) &&
    (relaunched(pid) || argv.includes("--prompt") || argv.includes("--output-format")),
  sessions: (world) => records(world).map(idOf),
  sign,
  freshId: (index) => `11111111-2222-4333-8444-00000000000${index}`,
  shows: { firstTurn: "working", launchedTurn: "working", laterTurn: "working", tool: "unclear", error: "failed" },
  ends: {
    SIGINT: { turn: ["interrupted", "cut-off"], tool: "interrupted" },
    SIGTERM: { turn: ["interrupted", "cut-off"], tool: "interrupted" },
    SIGHUP: { turn: "cut-off", tool: "cut-off" },
    SIGKILL: { turn: "cut-off", tool: "cut-off" },
  },
  links: { plain: "cwd", withId: "argv", resumed: "argv", launched: "assigned" },
  promptBy: "stdin",
  interrupted: ["interrupted"],
  stopped: ["interrupted"],
  wrong: { args: ["--no-such-flag"], says: /such-flag/ },
  resumes: true,
  permits: {
    calls: (world, outside) => [
      `TOOL=write_file ${JSON.stringify({ file_path: join(world.cwd, "edited"), content: "x" })}`,
      `TOOL=run_shell_command ${JSON.stringify({ command: "touch ran", is_background: false })}`,
      `TOOL=write_file ${JSON.stringify({ file_path: outside, content: "x" })}`,
    ],
    read: { edited: false, ran: false, outside: false },
    edit: { edited: true, ran: false, outside: true },
    bypass: { edited: true, ran: true, outside: true },
    none: { edited: false, ran: false, outside: false },
    noneSays: /its own mode "auto": without an interface, edits and commands/,
  },
  usage: { model: "fake-model", input: 1034, output: 56, cacheRead: 200, cacheWrite: 0 },
};
