// Pi: no announcement, no lock, its arguments overwritten by its title; a record that begins with the first complete answer.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CaptureCase } from "../case.ts";
import type { Begin, RealAgent } from "../driver.ts";
import { asked, openInterface, recorded, say, toolPrompt } from "../lifecycle-steps.ts";
import { toolBegun } from "../run-commands.ts";
import { filesBelow, installed, readLines, type TestHome, waitFor } from "../test-home.ts";

const home = (world: TestHome): string => join(world.home, ".pi", "agent");

function setUp(world: TestHome, file: string): void {
  const model = {
    id: "fake-model",
    name: "fake",
    reasoning: false,
    input: ["text"],
    contextWindow: 200_000,
    maxTokens: 8000,
  };
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  const fake = {
    baseUrl: `${world.model.url}/v1`,
    apiKey: "dummy",
    api: "openai-completions",
    models: [{ ...model, cost }],
  };
  mkdirSync(home(world), { recursive: true });
  writeFileSync(join(home(world), "models.json"), JSON.stringify({ providers: { fake } }));
  writeSettings(world, { enabled: false });
  Object.assign(world.env, { PI_OFFLINE: "1", PI_TELEMETRY: "0" });
  world.addCommand("pi", join(installed, file));
}

function writeSettings(world: TestHome, retry: Record<string, unknown>): void {
  const settings = { defaultProvider: "fake", defaultModel: "fake-model", quietStartup: true, retry };
  writeFileSync(join(home(world), "settings.json"), JSON.stringify(settings));
}

const records = (world: TestHome): string[] =>
  filesBelow(home(world), "sessions/*/*.jsonl").map((path) => join(home(world), path));

const idOf = (path: string): string | null => /_([0-9a-f-]{36})\.jsonl$/.exec(path)?.[1] ?? null;

const recordOf = (world: TestHome, id: string): string => records(world).find((path) => idOf(path) === id) ?? "";

function sign(world: TestHome, id: string): ReturnType<RealAgent["sign"]> {
  const messages = readLines(recordOf(world, id)).flatMap(({ message }) =>
    typeof message === "object" && message !== null ? [message as Record<string, unknown>] : [],
  );
  const last = messages.at(-1);
  if (last === undefined) return null;
  if (last["role"] !== "assistant") return "prompted";
  return last["stopReason"] === "toolUse" ? "tool" : "ended";
}

const words = ({ resume }: Begin): string[] => (resume === undefined ? [] : ["--session", resume]);

const common: Omit<RealAgent, "name" | "version" | "setUp"> = {
  agent: "pi",
  home,
  files: ["sessions/*/*.jsonl"],
  usage: { model: "fake-model", input: 1034, output: 56, cacheRead: 200, cacheWrite: 0 },
  headless: (_, prompt, begin = {}) => ["pi", "--print", ...words(begin), prompt],
  interface: {
    command: (_, begin = {}) => ["pi", ...words(begin)],
    ready: /fake-model/,
    escape: { keys: ["Escape"], shows: "idle" },
    closed: "cut-off",
    approval: null,
    freshId: false,
  },
  wrapper: false,
  isAgent: ({ name }) => name === "pi",
  sessions: (world) => records(world).flatMap((path) => idOf(path) ?? []),
  sign,
  shows: {
    firstTurn: "nothing",
    launchedTurn: "unclear",
    laterTurn: "working",
    tool: "working",
    error: "failed",
  },
  ends: {
    SIGINT: { turn: "nothing", tool: "cut-off" },
    SIGTERM: { turn: "nothing", tool: "cut-off" },
    SIGHUP: { turn: "nothing", tool: "cut-off" },
    SIGKILL: { turn: "nothing", tool: "cut-off" },
  },
  links: { plain: "cwd", withId: null, resumed: "cwd", launched: "assigned" },
  promptBy: "stdin",
  interrupted: ["interrupted", "cut-off"],
  stopped: ["interrupted", "cut-off"],
  wrong: { args: ["--model", "no/such-model"], says: /no\/such-model/ },
  resumes: true,
  permits: {
    calls: (world, outside) => [
      write(join(world.cwd, "edited")),
      `TOOL=bash ${JSON.stringify({ command: "touch ran" })}`,
      write(outside),
    ],
    read: { edited: false, ran: false, outside: false },
    edit: { edited: true, ran: false, outside: true },
    bypass: { edited: true, ran: true, outside: true },
    none: { edited: true, ran: true, outside: true },
    noneSays: /may do everything without asking/,
  },
};

export const pi073: RealAgent = {
  ...common,
  name: "pi 0.73.1",
  version: "0.73.1",
  prefix: "073-",
  cases: () => ownCases(pi073, "unclear"),
  setUp: (world) => setUp(world, "pi-073/dist/cli.js"),
};

export const pi087: RealAgent = {
  ...common,
  name: "pi 0.87.1",
  version: "0.87.1",
  prefix: "087-",
  cases: () => ownCases(pi087, "working"),
  setUp: (world) => {
    world.useNewNode();
    setUp(world, "pi-087/dist/bundle/cli.js");
  },
  // It writes the prompt into a record that is there already.
  shows: { ...common.shows, launchedTurn: "working" },
};

const write = (path: string): string => `TOOL=write ${JSON.stringify({ path, content: "x" })}`;

function ownCases(driver: RealAgent, retrying: "working" | "unclear"): CaptureCase[] {
  const running = { state: "running", outcome: null } as const;
  const open = (world: TestHome) => openInterface(world, driver, ["pi"]);
  return [
    {
      name: "retrying",
      async run(world) {
        writeSettings(world, { enabled: true, maxRetries: 3, baseDelayMs: 600_000 });
        const prompt = "fail ;; ERR=500";
        const agent = world.start(driver.headless(world, prompt));
        const id = await recorded(world, driver, [], {}, "ended");
        const isEdited = () => readLines(recordOf(world, id)).some(({ type }) => type === "context_edit");
        if (retrying === "working") await waitFor("it to try again", isEdited);
        const shown = retrying === "working" ? {} : ({ notInTheFiles: true } as const);
        const expected = { ...running, activity: "working" as const, ...shown, facts: { prompt } };
        return { command: agent.command, moment: "live", sessions: [{ id, pid: agent.pid, expected }] };
      },
    },
    {
      name: "forked",
      async run(world) {
        const prompt = "hello ;; SAY=one";
        await world.start(driver.headless(world, prompt)).exited;
        const [parent = ""] = driver.sessions(world);
        const command = ["pi", "--print", "--fork", parent, "more ;; SAY=two"];
        const { code } = await world.start(command).exited;
        const stopped = { state: "stopped", activity: null, outcome: "completed", facts: { prompt } } as const;
        const [id = ""] = driver.sessions(world).filter((each) => each !== parent);
        const sessions = [
          { id: parent, pid: null, expected: { ...stopped, result: "one" } },
          { id, pid: null, expected: { ...stopped, result: "two", parent } },
        ];
        return { command, moment: "dead", ending: `exit ${code}`, sessions };
      },
    },
    {
      name: "tui-escape-in-tool",
      async run(world) {
        const { tui, pid } = await open(world);
        await say(driver, tui, toolPrompt(world, "tool"));
        await toolBegun(world, "tool");
        const id = await recorded(world, driver, [], {}, "tool");
        tui.press("Escape");
        await waitFor("its end", () => driver.sign(world, id) === "ended");
        const expected = { ...running, activity: "idle" as const, facts: { prompt: toolPrompt(world, "tool") } };
        return { command: tui.command, moment: "live", sessions: [{ id, pid, expected }] };
      },
    },
    {
      name: "tui-branched",
      async run(world) {
        const { tui, pid } = await open(world);
        const prompt = "hello ;; SAY=the answer";
        await say(driver, tui, prompt);
        const id = await recorded(world, driver, [], {}, "ended");
        await say(driver, tui, "second ;; SAY=the other answer");
        await tui.shows(/the other answer\s*$/m);
        await say(driver, tui, "/tree");
        await tui.shows(/Session Tree/);
        tui.press("Up");
        tui.press("Up");
        tui.press("Enter");
        await tui.shows(/Summarize branch/);
        tui.press("Enter");
        await tui.shows(/Navigated/);
        await say(driver, tui, "again ;; HOLD=again");
        await asked(world, "HOLD=again");
        await waitFor("its prompt", () => driver.sign(world, id) === "prompted");
        const expected = { ...running, activity: "working" as const, facts: { prompt } };
        return { command: tui.command, moment: "live", sessions: [{ id, pid, expected }] };
      },
    },
  ];
}
