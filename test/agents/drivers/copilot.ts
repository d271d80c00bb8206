// GitHub Copilot CLI: announces by a kernel lock and a file, asks by lines of its record, writes them in small batches.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Capture, CaptureCase, Expected } from "../case.ts";
import type { Begin, RealAgent } from "../driver.ts";
import { agentBelow, openInterface, recorded } from "../lifecycle-steps.ts";
import { filesBelow, installed, readLines, type TestHome, type Tui, waitFor } from "../test-home.ts";

const home = (world: TestHome): string => join(world.home, ".copilot");

function setUp(world: TestHome): void {
  world.addCommand("copilot", join(installed, "copilot/npm-loader.js"));
  mkdirSync(home(world), { recursive: true });
  // A folder is trusted with everything below it.
  writeFileSync(join(home(world), "config.json"), JSON.stringify({ trustedFolders: ["/"], appTipShown: true }));
  Object.assign(world.env, {
    COPILOT_PROVIDER_BASE_URL: `${world.model.url}/v1`,
    COPILOT_PROVIDER_API_KEY: "dummy",
    // Large prompts are refused by what it takes for the model's limit.
    COPILOT_PROVIDER_MAX_PROMPT_TOKENS: "2000000",
    COPILOT_MODEL: "fake-model",
    COPILOT_OFFLINE: "true",
    COPILOT_AUTO_UPDATE: "false",
    // The program unpacks itself, 235 MB, at its first start in every home.
    COPILOT_PKG_CACHE_HOME: join(installed, ".copilot-packages"),
  });
}

const record = (world: TestHome, id: string): string => join(home(world), "session-state", id, "events.jsonl");

function sign(world: TestHome, id: string): ReturnType<RealAgent["sign"]> {
  const lines = readLines(record(world, id)).filter(({ agentId }) => agentId === undefined);
  const signs = lines.flatMap(({ type, data }): ("prompted" | "tool" | "ended" | "answered")[] => {
    // On resume Copilot writes a result for the interrupted call, a moment before it writes the new prompt.
    if (type === "tool.execution_complete" && (data as { model?: unknown }).model === "resumed") return [];
    if (type === "user.message" || type === "tool.execution_complete") return ["prompted"];
    if (type === "tool.execution_start") return ["tool"];
    if (type === "abort" || type === "session.error") return ["ended"];
    const requests = (data as { toolRequests?: unknown[] } | undefined)?.toolRequests;
    if (type === "assistant.message" && requests?.length === 0) return ["answered"];
    return [];
  });
  const last = signs.at(-1);
  if (last === undefined) return null;
  if (last !== "answered") return last;
  // The end of the model's last answer stands behind it.
  const ends = lines.map(({ type }) => type);
  return ends.lastIndexOf("assistant.turn_end") > ends.lastIndexOf("assistant.message") ? "ended" : "prompted";
}

/** While it cancels a turn, Enter does nothing. */
async function say(tui: Tui, text: string): Promise<void> {
  await waitFor("the end of cancelling", () => !tui.screen().includes("Cancelling"));
  tui.type(text);
  await tui.shows(new RegExp(text.slice(0, 12).replaceAll(/[^a-z ]/gi, ".")));
  tui.press("Enter");
}

const words = ({ session, resume }: Begin): string[] =>
  session !== undefined ? [`--session-id=${session}`] : resume !== undefined ? [`--resume=${resume}`] : [];

export const copilot: RealAgent = {
  name: "copilot 1.0.102",
  agent: "copilot",
  version: "1.0.102",
  isSlow: true,
  setUp,
  home,
  files: ["session-state/*/events.jsonl", "session-state/*/workspace.yaml", "session-state/*/inuse.*"],
  headless: (_, prompt, begin = {}) => [
    ...["copilot", "--output-format=json", "--allow-all"],
    ...words(begin),
    ...["--prompt", prompt],
  ],
  interface: {
    command: (_, begin = {}) => ["copilot", "--allow-all", ...words(begin)],
    ready: /\/ commands/,
    say,
    escape: { keys: ["Ctrl-C"], shows: "idle" },
    closed: ["interrupted", "cut-off"],
    approval: {
      prompt: () => "BASH=touch approved",
      command: () => ["copilot"],
      asks: /Do you want to run this command\?/,
      activity: "waiting",
    },
    freshId: true,
  },
  wrapper: true,
  isAgent: ({ exe }) => exe?.endsWith("/copilot-linux-x64/copilot") ?? false,
  sessions: (world) =>
    filesBelow(home(world), "session-state/*/events.jsonl").flatMap(
      (path) => /([0-9a-f-]{36})\/events\.jsonl$/.exec(path)?.[1] ?? [],
    ),
  sign,
  freshId: (index) => `0cb916db-26aa-40f2-86b5-1ba81b22${String(index).padStart(4, "0")}`,
  shows: { firstTurn: "working", launchedTurn: "working", laterTurn: "working", tool: "working", error: "failed" },
  ends: {
    SIGINT: { turn: "interrupted", tool: "interrupted" },
    SIGTERM: { turn: "interrupted", tool: "interrupted" },
    SIGHUP: { turn: "interrupted", tool: "interrupted" },
    SIGKILL: { turn: "cut-off", tool: "cut-off" },
  },
  links: { plain: "announced", withId: "announced", resumed: "announced", launched: "announced" },
  promptBy: "stdin",
  interrupted: ["interrupted"],
  stopped: ["interrupted"],
  wrong: { args: ["--no-such-flag"], says: /unexpected argument/ },
  resumes: true,
  usage: { model: "fake-model", input: 1034, output: 56, cacheRead: 200, cacheWrite: 0 },
  cases,
  permits: {
    calls: (world, outside) => [
      create(join(world.cwd, "edited")),
      `TOOL=bash ${JSON.stringify({ command: "touch ran", description: "run" })}`,
      create(outside),
    ],
    read: { edited: false, ran: false, outside: false },
    edit: { edited: true, ran: false, outside: false },
    bypass: { edited: true, ran: true, outside: true },
    none: { edited: false, ran: false, outside: false },
    noneSays: /edits and commands are denied/,
  },
};

const create = (path: string): string => `TOOL=create ${JSON.stringify({ path, file_text: "x" })}`;

const working = { state: "running", activity: "working", outcome: null } as const;

function cases(): CaptureCase[] {
  return [
    {
      name: "tui-question",
      async run(world) {
        const colour = { type: "string", enum: ["red", "blue"] };
        const requestedSchema = { type: "object", properties: { colour }, required: ["colour"] };
        const prompt = `TOOL=ask_user ${JSON.stringify({ message: "Which colour?", requestedSchema })}`;
        const waiting = {
          kind: "question",
          tool: "ask_user",
          text: "Which colour?",
          options: ["red", "blue"],
        } as const;
        return await asking(world, ["copilot"], prompt, { ...waiting, options: [...waiting.options] });
      },
    },
    {
      name: "tui-plan",
      async run(world) {
        const input = { summary: "my plan", actions: ["interactive"], recommendedAction: "interactive" };
        // In this mode its own mark stands before the prompt.
        const prompt = `plan ;; TOOL=exit_plan_mode ${JSON.stringify(input)}`;
        const waiting = { kind: "plan", tool: "exit_plan_mode", text: "my plan" } as const;
        return await asking(world, ["copilot", "--plan"], prompt, waiting);
      },
    },
    {
      name: "subagent-working",
      async run(world) {
        const input = {
          agent_type: "general-purpose",
          name: "one",
          description: "sub",
          prompt: "HOLD=sub",
          mode: "sync",
        };
        const prompt = `TOOL=task ${JSON.stringify(input)}`;
        const agent = world.start(copilot.headless(world, prompt));
        await waitFor("the subagent's request", () =>
          world.model.requests.some(({ text }) => text.includes("HOLD=sub") && !text.includes("TOOL=")),
        );
        const pid = await agentBelow(world, copilot, agent.pid);
        const id = await recorded(world, copilot, [], {}, "tool");
        await waitFor("its lines", () => readLines(record(world, id)).some(({ agentId }) => agentId !== undefined));
        return {
          ...{ command: agent.command, moment: "live" },
          sessions: [{ id, pid, expected: { ...working, facts: { prompt } } }],
        };
      },
    },
    {
      name: "denied",
      async run(world) {
        const prompt = `${create(join(world.cwd, "edited"))} ;; SAY=it may not`;
        const agent = world.start(["copilot", "--output-format=json", "--prompt", prompt]);
        const { code } = await agent.exited;
        const [id = ""] = copilot.sessions(world);
        const expected = { ...done, facts: { prompt, denied: 1 }, result: "it may not" };
        return {
          command: agent.command,
          moment: "dead",
          ending: `exit ${code}`,
          sessions: [{ id, pid: null, expected }],
        };
      },
    },
  ];
}

const done = { state: "stopped", activity: null, outcome: "completed" } as const;

/** An interface at a question, which its record shows a moment after the screen. */
async function asking(
  world: TestHome,
  command: string[],
  prompt: string,
  waiting: NonNullable<Expected["waiting"]>,
): Promise<Capture> {
  const { tui, pid } = await openInterface(world, copilot, command);
  await say(tui, prompt);
  const id = await recorded(world, copilot, [], {}, "tool");
  await tui.shows(new RegExp(waiting.text?.replaceAll(/[^a-z ]/gi, ".") ?? ""));
  const expected: Expected = { state: "running", activity: "waiting", outcome: null, waiting, facts: { prompt } };
  return { command: tui.command, moment: "live", sessions: [{ id, pid, expected }] };
}
