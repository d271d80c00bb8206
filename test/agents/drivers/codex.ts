// Codex: announces by a kernel lock. Its own suites say more about it.
import { say } from "../codex-cases.ts";
import type { RealAgent } from "../driver.ts";
import { setUpCodex } from "../first-start-files.ts";
import { codexVersion, filesBelow, readLines, rollout } from "../test-home.ts";

export const codex: RealAgent = {
  name: `codex ${codexVersion}`,
  agent: "codex",
  version: codexVersion,
  hasOwnSuites: true,
  setUp: (world) => setUpCodex(world),
  home: ({ codexHome }) => codexHome,
  files: ["sessions/**/*.jsonl", "archived_sessions/*.jsonl", "thread-writer-locks/*-*.lock"],
  headless: (_, prompt, { resume } = {}) => [
    ...["codex", "exec", "--json", "--skip-git-repo-check"],
    ...(resume === undefined ? [] : ["resume", resume]),
    prompt,
  ],
  interface: {
    command: (_, { resume } = {}) => ["codex", ...(resume === undefined ? [] : ["resume", resume])],
    ready: /› Ask Codex|\? for shortcuts/,
    say,
    escape: { keys: ["Escape"], shows: "idle" },
    closed: "cut-off",
    approval: null,
    freshId: true,
  },
  wrapper: true,
  isAgent: ({ name }) => name === "codex",
  sessions: ({ codexHome }) =>
    filesBelow(codexHome, "sessions/**/rollout-*.jsonl").flatMap(
      (path) => /([0-9a-f-]{36})\.jsonl$/.exec(path)?.[1] ?? [],
    ),
  sign(world, id) {
    const kinds = readLines(rollout(world, id) ?? "").map((line) => JSON.stringify(line));
    const last = kinds.findLast((line) =>
      /"type":"(?:UserMessage|user_message|function_call|task_complete|turn_aborted)"/.test(line),
    );
    if (last === undefined) return null;
    if (/"type":"(?:task_complete|turn_aborted)"/.test(last)) return "ended";
    return last.includes('"type":"function_call"') ? "tool" : "prompted";
  },
  shows: { firstTurn: "working", launchedTurn: "working", laterTurn: "working", tool: "working", error: "failed" },
  ends: {
    SIGINT: { turn: "interrupted", tool: "interrupted" },
    SIGTERM: { turn: "cut-off", tool: "cut-off" },
    SIGHUP: { turn: "cut-off", tool: "cut-off" },
    SIGKILL: { turn: "cut-off", tool: "cut-off" },
  },
  links: { plain: "announced", withId: null, resumed: "announced", launched: "announced" },
  promptBy: "stdin",
  interrupted: ["interrupted"],
  stopped: ["interrupted"],
  wrong: { args: ["--no-such-flag"], says: /--no-such-flag/ },
  resumes: true,
  permits: null,
};
