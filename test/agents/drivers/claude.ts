// Claude Code: announces in a file named by its pid. Its own suites say more about it.
import { submit } from "../claude-cases.ts";
import type { RealAgent } from "../driver.ts";
import { setUpClaude } from "../first-start-files.ts";
import { filesBelow, readLines, transcript } from "../test-home.ts";

export const claude: RealAgent = {
  name: "claude 2.1.325",
  agent: "claude-code",
  version: "2.1.325",
  hasOwnSuites: true,
  setUp: (world) => setUpClaude(world),
  home: ({ claudeHome }) => claudeHome,
  files: ["history.jsonl", "sessions/*.json", "projects/**/*.jsonl", "projects/**/*.json"],
  headless: (_, prompt, { session, resume } = {}) => [
    ...["claude", "-p", "--dangerously-skip-permissions"],
    ...(session === undefined ? [] : ["--session-id", session]),
    ...(resume === undefined ? [] : ["--resume", resume]),
    prompt,
  ],
  interface: {
    command: (_, { resume } = {}) => ["claude", ...(resume === undefined ? [] : ["--resume", resume])],
    ready: /❯/,
    say: submit,
    escape: { keys: ["Escape"], shows: "idle" },
    closed: "cut-off",
    approval: {
      prompt: ({ dir }) => `BASH=touch ${dir}/asked`,
      // Without its safety check it asks in other words than with it.
      asks: /Do you want to proceed|Enter to stay in auto mode/,
      activity: "waiting",
    },
    freshId: true,
  },
  wrapper: false,
  isAgent: ({ name, argv }) => name.startsWith("claude") && !argv.includes("daemon"),
  sessions: ({ claudeHome }) =>
    filesBelow(claudeHome, "projects/*/*.jsonl").flatMap((path) => /([0-9a-f-]{36})\.jsonl$/.exec(path)?.[1] ?? []),
  sign(world, id) {
    const last = readLines(transcript(world, id) ?? "")
      .map((line) => JSON.stringify(line))
      .findLast((line) => /"type":"(?:user|assistant|turn_duration)"|"subtype":"turn_duration"/.test(line));
    if (last === undefined) return null;
    if (last.includes("[Request interrupted") || last.includes("turn_duration")) return "ended";
    if (last.includes('"type":"tool_use"')) return "tool";
    return last.includes('"type":"assistant"') ? "ended" : "prompted";
  },
  freshId: (index) => `00000000-0000-4000-8000-00000000000${index}`,
  shows: { firstTurn: "working", launchedTurn: "working", laterTurn: "working", tool: "working", error: "failed" },
  ends: {
    SIGINT: { turn: "interrupted", tool: "interrupted" },
    SIGTERM: { turn: ["interrupted", "cut-off"], tool: ["interrupted", "cut-off"] },
    SIGHUP: { turn: ["interrupted", "cut-off"], tool: ["interrupted", "cut-off"] },
    SIGKILL: { turn: "cut-off", tool: "cut-off" },
  },
  links: { plain: "announced", withId: "announced", resumed: "announced", launched: "announced" },
  promptBy: "stdin",
  interrupted: ["interrupted"],
  stopped: ["interrupted"],
  wrong: { args: ["--no-such-flag"], says: /--no-such-flag/ },
  resumes: true,
  permits: null,
};
