// Claude Code, driven through its states and endings.

import { join } from "node:path";
import type { CaptureCase, CapturedSession, Expected } from "./case.ts";
import { usagePerRequest } from "./fake-model-parts.ts";
import {
  type Agent,
  announcement,
  type Ending,
  filesBelow,
  readLines,
  type TestHome,
  type Tui,
  transcript,
  waitFor,
} from "./test-home.ts";

/** 2.1.325's interface starts in auto mode, where a classifier answers most permission prompts. */
const interfaceModes: Record<string, string> = { "2.1.197": "default", "2.1.325": "auto" };
const models: Record<string, string> = { "2.1.197": "claude-opus-4-8", "2.1.325": "claude-opus-5-5" };

/** The schedules for one version; `default` permission mode unless the case says otherwise. */
export function claudeCases(version: string): CaptureCase[] {
  const model = models[version] ?? null;
  const facts = (prompt: string, answers: number, permission = "default"): Expected["facts"] => ({
    prompt,
    model: answers === 0 ? null : model,
    permission,
    tokens: answers === 0 ? null : tokensOf(answers),
  });
  const headless = (world: TestHome, prompt: string, ...more: string[]): { agent: Agent; id: string } => {
    const id = crypto.randomUUID();
    const agent = world.start(["claude", "-p", prompt, "--session-id", id, ...more]);
    return { agent, id };
  };
  const unwritten: { notInTheFiles?: true } = version === "2.1.197" ? { notInTheFiles: true } : {};
  const bypass = "--dangerously-skip-permissions";

  const endings = (
    name: string,
    prompt: string,
    signal: NodeJS.Signals,
    outcome: Expected["outcome"],
    answers: number,
    more: { notInTheFiles?: true } = {},
  ): CaptureCase => ({
    name,
    async run(world) {
      const { agent, id } = headless(world, prompt, bypass);
      await recorded(world, id, answers === 0 ? prompt : '"tool_use"');
      if (answers > 0) await toolRuns(world);
      agent.signal(signal);
      const ending = await agent.exited;
      return {
        command: agent.command,
        moment: "dead",
        ending: inWords(ending),
        sessions: [
          {
            id,
            pid: null,
            expected: {
              state: "stopped",
              activity: null,
              outcome,
              ...more,
              facts:
                signal === "SIGINT" && answers === 0
                  ? cutOff(world, id, facts(prompt, 0, "bypassPermissions"), model)
                  : facts(prompt, answers, "bypassPermissions"),
            },
          },
        ],
      };
    },
  });

  return [
    {
      name: "headless-completed",
      async run(world) {
        const prompt = "hello ;; SAY=the answer";
        const { agent, id } = headless(world, prompt);
        const ending = inWords(await agent.exited);
        const expected: Expected = {
          state: "stopped",
          activity: null,
          outcome: "completed",
          result: "the answer",
          facts: facts(prompt, 1),
        };
        return { command: agent.command, moment: "dead", ending, sessions: [{ id, pid: null, expected }] };
      },
    },
    {
      name: "headless-working",
      async run(world) {
        const prompt = "hello ;; HOLD=answer ;; SAY=late";
        const { agent, id } = headless(world, prompt);
        await recorded(world, id, prompt);
        await waitFor("the request", () => world.model.requests.length > 0);
        const expected: Expected = { state: "running", activity: "working", outcome: null, facts: facts(prompt, 0) };
        return { command: agent.command, moment: "live", sessions: [{ id, pid: agent.pid, expected }] };
      },
    },
    {
      name: "tool-pending",
      async run(world) {
        const prompt = "wait ;; BASH=tail -f /dev/null";
        const { agent, id } = headless(world, prompt, bypass);
        await recorded(world, id, '"tool_use"');
        await toolRuns(world);
        const expected: Expected = {
          state: "running",
          activity: "working",
          outcome: null,
          ...(version === "2.1.197" ? { notInTheFiles: true } : {}),
          facts: facts(prompt, 1, "bypassPermissions"),
        };
        return { command: agent.command, moment: "live", sessions: [{ id, pid: agent.pid, expected }] };
      },
    },
    {
      name: "two-blocks-one-message",
      async run(world) {
        const prompt = "look ;; FIRST=I look. ;; BASH=echo seen ;; SAY=it is there";
        const { agent, id } = headless(world, prompt, bypass);
        const ending = inWords(await agent.exited);
        const expected: Expected = {
          state: "stopped",
          activity: null,
          outcome: "completed",
          result: "it is there",
          facts: facts(prompt, 2, "bypassPermissions"),
        };
        return { command: agent.command, moment: "dead", ending, sessions: [{ id, pid: null, expected }] };
      },
    },
    {
      name: "denied",
      async run(world) {
        const prompt = "try ;; BASH=curl http://127.0.0.1:9/ ;; SAY=not allowed";
        const { agent, id } = headless(world, prompt);
        const ending = inWords(await agent.exited);
        const expected: Expected = {
          state: "stopped",
          activity: null,
          outcome: "completed",
          result: "not allowed",
          facts: { ...facts(prompt, 2), denied: 1 },
        };
        return { command: agent.command, moment: "dead", ending, sessions: [{ id, pid: null, expected }] };
      },
    },
    {
      name: "api-error",
      async run(world) {
        const prompt = "fail ;; ERR=400";
        const { agent, id } = headless(world, prompt);
        const ending = inWords(await agent.exited);
        const expected: Expected = { state: "stopped", activity: null, outcome: "failed", facts: facts(prompt, 0) };
        return { command: agent.command, moment: "dead", ending, sessions: [{ id, pid: null, expected }] };
      },
    },
    endings("sigint", "hello ;; HOLD=answer", "SIGINT", "interrupted", 0, unwritten),
    // 2.1.197: whether the interruption is written before the exit is a race: both were seen.
    endings("sigint-in-tool", "wait ;; BASH=tail -f /dev/null", "SIGINT", "interrupted", 1, unwritten),
    endings("sigterm", "hello ;; HOLD=answer", "SIGTERM", "cut-off", 0),
    endings("sigterm-in-tool", "wait ;; BASH=tail -f /dev/null", "SIGTERM", "cut-off", 1),
    endings("sighup", "hello ;; HOLD=answer", "SIGHUP", "cut-off", 0),
    endings("sighup-in-tool", "wait ;; BASH=tail -f /dev/null", "SIGHUP", "cut-off", 1),
    endings("sigkill", "hello ;; HOLD=answer", "SIGKILL", "cut-off", 0),
    endings("sigkill-in-tool", "wait ;; BASH=tail -f /dev/null", "SIGKILL", "cut-off", 1),
    {
      name: "subagent",
      async run(world) {
        const inner = JSON.stringify({
          description: "look around",
          subagent_type: "general-purpose",
          prompt: "inner\nBASH=tail -f /dev/null",
          run_in_background: false,
        });
        const prompt = `delegate ;; TOOL=Agent ${inner}`;
        const { agent, id } = headless(world, prompt, bypass);
        await toolRuns(world);
        await recorded(world, id, '"tool_use"');
        await subagentRecorded(world, id);
        const expected: Expected = {
          state: "running",
          activity: "working",
          outcome: null,
          ...(version === "2.1.197" ? { notInTheFiles: true } : {}),
          background: { shells: 0, subagents: 1 },
          // Its own request and the subagent's.
          facts: facts(prompt, 2, "bypassPermissions"),
        };
        return { command: agent.command, moment: "live", sessions: [{ id, pid: agent.pid, expected }] };
      },
    },
    {
      name: "resumed",
      async run(world) {
        const first = "hello ;; SAY=one";
        const { agent, id } = headless(world, first);
        await agent.exited;
        const again = world.start(["claude", "-p", "more ;; SAY=two", "--resume", id]);
        const ending = inWords(await again.exited);
        const expected: Expected = {
          state: "stopped",
          activity: null,
          outcome: "completed",
          result: "two",
          facts: facts(first, 2),
        };
        return { command: again.command, moment: "dead", ending, sessions: [{ id, pid: null, expected }] };
      },
    },
    {
      name: "forked",
      async run(world) {
        const first = "hello ;; SAY=one";
        const { agent, id } = headless(world, first);
        await agent.exited;
        const fork = crypto.randomUUID();
        const again = world.start([
          "claude",
          "-p",
          "other way ;; SAY=two",
          "--resume",
          id,
          "--fork-session",
          "--session-id",
          fork,
        ]);
        const ending = inWords(await again.exited);
        const stopped = (result: string, answers: number): Expected => ({
          state: "stopped",
          activity: null,
          outcome: "completed",
          result,
          facts: facts(first, answers),
        });
        return {
          command: again.command,
          moment: "dead",
          ending,
          sessions: [
            { id, pid: null, expected: stopped("one", 1) },
            { id: fork, pid: null, expected: { ...stopped("two", 2), parent: id } },
          ],
        };
      },
    },
    {
      name: "two-writers",
      async run(world) {
        const prompt = "hello ;; HOLD=answer";
        const { agent, id } = headless(world, prompt);
        await recorded(world, id, prompt);
        const second = world.start(["claude", "-p", "second ;; HOLD=answer", "--resume", id]);
        await recorded(world, id, '"second ;;');
        await waitFor("its announcement", () => announcement(world, second.pid)?.["sessionId"] === id);
        const expected: Expected = { state: "running", activity: "working", outcome: null, facts: facts(prompt, 0) };
        return { command: second.command, moment: "live", sessions: [{ id, pid: agent.pid, expected }] };
      },
    },
    ...interactive(model, (prompt, answers, permission = interfaceModes[version] ?? "default") =>
      facts(prompt, answers, permission),
    ),
  ];
}

function interactive(
  model: string | null,
  facts: (prompt: string, answers: number, permission?: string) => Expected["facts"],
): CaptureCase[] {
  const live = (tui: Tui, sessions: CapturedSession[]) => ({
    command: tui.command,
    moment: "live" as const,
    sessions,
  });
  const none: Expected["facts"] = { prompt: null, model: null, tokens: null };
  return [
    {
      name: "tui-fresh",
      async run(world) {
        const tui = world.open(["claude"]);
        const id = await idle(world, tui);
        const expected: Expected = { state: "running", activity: "idle", outcome: null, facts: none };
        return live(tui, [{ id, pid: tui.pid, expected }]);
      },
    },
    {
      name: "tui-trust",
      world: { trust: "ask" },
      async run(world) {
        const id = crypto.randomUUID();
        const tui = world.open(["claude", "--session-id", id]);
        await tui.shows(/trust this folder/i);
        const expected: Expected = {
          state: "running",
          activity: "waiting",
          outcome: null,
          waiting: { kind: "trust", tool: null },
          facts: none,
        };
        return live(tui, [{ id, pid: tui.pid, expected }]);
      },
    },
    {
      name: "tui-working",
      async run(world) {
        const tui = world.open(["claude"]);
        const id = await idle(world, tui);
        const prompt = "hello ;; HOLD=answer";
        await submit(tui, prompt);
        await says(world, tui, "busy");
        await recorded(world, id, prompt);
        const expected: Expected = { state: "running", activity: "working", outcome: null, facts: facts(prompt, 0) };
        return live(tui, [{ id, pid: tui.pid, expected }]);
      },
    },
    {
      name: "tui-idle",
      async run(world) {
        const tui = world.open(["claude"]);
        const id = await idle(world, tui);
        const prompt = "hello ;; SAY=the answer";
        await submit(tui, prompt);
        await recorded(world, id, "turn_duration");
        await says(world, tui, "idle");
        const expected: Expected = {
          state: "running",
          activity: "idle",
          outcome: null,
          result: "the answer",
          facts: facts(prompt, 1),
        };
        return live(tui, [{ id, pid: tui.pid, expected }]);
      },
    },
    {
      name: "tui-permission",
      async run(world) {
        const tui = world.open(["claude", "--permission-mode", "default"]);
        const id = await idle(world, tui);
        const prompt = "make it ;; BASH=touch made";
        await submit(tui, prompt);
        await says(world, tui, "waiting");
        await recorded(world, id, '"tool_use"');
        const expected: Expected = {
          state: "running",
          activity: "waiting",
          outcome: null,
          waiting: { kind: "permission", tool: "Bash" },
          facts: facts(prompt, 1, "default"),
        };
        return live(tui, [{ id, pid: tui.pid, expected }]);
      },
    },
    {
      name: "tui-question",
      async run(world) {
        const tui = world.open(["claude"]);
        const id = await idle(world, tui);
        const options = ["Red", "Blue"].map((label) => ({ label, description: `${label} it is` }));
        const question = { question: "Which colour?", header: "Colour", multiSelect: false, options };
        const prompt = `ask me ;; TOOL=AskUserQuestion ${JSON.stringify({ questions: [question] })}`;
        await submit(tui, prompt);
        await says(world, tui, "waiting");
        await recorded(world, id, '"tool_use"');
        const expected: Expected = {
          state: "running",
          activity: "waiting",
          outcome: null,
          waiting: { kind: "question", tool: "AskUserQuestion" },
          facts: facts(prompt, 1),
        };
        return live(tui, [{ id, pid: tui.pid, expected }]);
      },
    },
    {
      name: "tui-plan",
      async run(world) {
        const tui = world.open(["claude", "--permission-mode", "plan"]);
        const id = await idle(world, tui);
        const prompt = `plan it ;; TOOL=ExitPlanMode ${JSON.stringify({ plan: "1. Build it" })}`;
        await submit(tui, prompt);
        await says(world, tui, "waiting");
        await recorded(world, id, '"tool_use"');
        const expected: Expected = {
          state: "running",
          activity: "waiting",
          outcome: null,
          waiting: { kind: "plan", tool: "ExitPlanMode" },
          facts: facts(prompt, 1, "plan"),
        };
        return live(tui, [{ id, pid: tui.pid, expected }]);
      },
    },
    {
      name: "tui-background-shell",
      async run(world) {
        const tui = world.open(["claude", "--dangerously-skip-permissions"]);
        const id = await idle(world, tui);
        const input = { command: "tail -f /dev/null", run_in_background: true };
        const prompt = `serve ;; TOOL=Bash ${JSON.stringify(input)} ;; SAY=it runs`;
        await submit(tui, prompt);
        await recorded(world, id, "turn_duration");
        await says(world, tui, "shell");
        const expected: Expected = {
          state: "running",
          activity: "idle",
          outcome: null,
          background: { shells: 1, subagents: 0 },
          result: "it runs",
          facts: facts(prompt, 2, "bypassPermissions"),
        };
        return live(tui, [{ id, pid: tui.pid, expected }]);
      },
    },
    {
      name: "tui-background-ended",
      async run(world) {
        const tui = world.open(["claude", "--dangerously-skip-permissions"]);
        const id = await idle(world, tui);
        const input = { command: "tail -f /dev/null", run_in_background: true };
        const prompt = `serve ;; TOOL=Bash ${JSON.stringify(input)} ;; SAY=it runs`;
        await submit(tui, prompt);
        await recorded(world, id, "turn_duration");
        await says(world, tui, "shell");
        for (const { pid, argv } of world.processes()) if (argv[0] === "tail") process.kill(pid, "SIGTERM");
        // The end of a background shell opens a new turn.
        await waitFor("the end of that turn", () => {
          const ends = readLines(transcript(world, id) ?? "").filter(({ subtype }) => subtype === "turn_duration");
          return ends.length === 2;
        });
        await says(world, tui, "idle");
        const expected: Expected = {
          state: "running",
          activity: "idle",
          outcome: null,
          background: { shells: 0, subagents: 0 },
          facts: facts(prompt, 3, "bypassPermissions"),
        };
        return live(tui, [{ id, pid: tui.pid, expected }]);
      },
    },
    {
      name: "tui-background-subagent",
      async run(world) {
        const tui = world.open(["claude", "--dangerously-skip-permissions"]);
        const id = await idle(world, tui);
        const inner = {
          description: "look around",
          subagent_type: "general-purpose",
          prompt: "inner\nBASH=tail -f /dev/null",
          run_in_background: true,
        };
        const prompt = `delegate ;; TOOL=Agent ${JSON.stringify(inner)} ;; SAY=it looks`;
        await submit(tui, prompt);
        await toolRuns(world);
        await recorded(world, id, "turn_duration");
        await subagentRecorded(world, id);
        const expected: Expected = {
          state: "running",
          activity: "working",
          outcome: null,
          background: { shells: 0, subagents: 1 },
          result: "it looks",
          facts: facts(prompt, 3, "bypassPermissions"),
        };
        return live(tui, [{ id, pid: tui.pid, expected }]);
      },
    },
    {
      name: "tui-escape",
      async run(world) {
        const tui = world.open(["claude"]);
        const id = await idle(world, tui);
        const prompt = "hello ;; HOLD=answer";
        await submit(tui, prompt);
        await says(world, tui, "busy");
        await recorded(world, id, prompt);
        await waitFor("the request", () => world.model.requests.length > 0);
        tui.press("Escape");
        await says(world, tui, "idle");
        await recorded(world, id, "[Request interrupted by user");
        const cut = cutOff(world, id, facts(prompt, 0), model);
        const expected: Expected = { state: "running", activity: "idle", outcome: null, facts: cut };
        return live(tui, [{ id, pid: tui.pid, expected }]);
      },
    },
    {
      name: "tui-escape-in-tool",
      async run(world) {
        const tui = world.open(["claude", "--dangerously-skip-permissions"]);
        const id = await idle(world, tui);
        const prompt = "wait ;; BASH=tail -f /dev/null";
        await submit(tui, prompt);
        await recorded(world, id, '"tool_use"');
        await toolRuns(world);
        tui.press("Escape");
        await says(world, tui, "idle");
        await recorded(world, id, "[Request interrupted by user");
        tui.press("Ctrl-C", "Ctrl-C");
        tui.type("/exit");
        tui.press("Enter");
        const ending = inWords(await tui.exited);
        const expected: Expected = {
          state: "stopped",
          activity: null,
          outcome: "interrupted",
          facts: facts(prompt, 1, "bypassPermissions"),
        };
        return { command: tui.command, moment: "dead", ending, sessions: [{ id, pid: null, expected }] };
      },
    },
    {
      name: "tui-api-error",
      async run(world) {
        const tui = world.open(["claude"]);
        const id = await idle(world, tui);
        const prompt = "fail ;; ERR=400";
        await submit(tui, prompt);
        await recorded(world, id, "API Error");
        await says(world, tui, "idle");
        const expected: Expected = { state: "running", activity: "idle", outcome: null, facts: facts(prompt, 0) };
        return live(tui, [{ id, pid: tui.pid, expected }]);
      },
    },
    {
      name: "tui-cleared",
      async run(world) {
        const tui = world.open(["claude"]);
        const first = await idle(world, tui);
        const prompt = "hello ;; SAY=one";
        await submit(tui, prompt);
        await recorded(world, first, "turn_duration");
        await says(world, tui, "idle");
        await submit(tui, "/clear");
        const second = await waitFor("the new session", () => {
          const id = String(announcement(world, tui.pid)?.["sessionId"]);
          return id !== first && id;
        });
        const again = "afresh ;; SAY=two";
        await submit(tui, again);
        await recorded(world, second, "turn_duration");
        await says(world, tui, "idle");
        return live(tui, [
          {
            id: first,
            pid: null,
            expected: {
              state: "stopped",
              activity: null,
              outcome: "completed",
              continuedBy: second,
              result: "one",
              facts: facts(prompt, 1),
            },
          },
          {
            id: second,
            pid: tui.pid,
            expected: { state: "running", activity: "idle", outcome: null, result: "two", facts: facts(again, 1) },
          },
        ]);
      },
    },
    {
      name: "tui-closed",
      async run(world) {
        const tui = world.open(["claude"]);
        const id = await idle(world, tui);
        const prompt = "hello ;; HOLD=answer";
        await submit(tui, prompt);
        await recorded(world, id, prompt);
        tui.close();
        const ending = inWords(await tui.exited);
        const expected: Expected = { state: "stopped", activity: null, outcome: "cut-off", facts: facts(prompt, 0) };
        return { command: tui.command, moment: "dead", ending, sessions: [{ id, pid: null, expected }] };
      },
    },
  ];
}

/** The session's transcript holds this text. */
export const recorded = (world: TestHome, id: string, text: string): Promise<true> =>
  waitFor(`${text} in the transcript of ${id}`, () => {
    const path = transcript(world, id);
    if (path === null) return null;
    const wanted = text.startsWith('"') ? text : JSON.stringify(text).slice(1, -1);
    return readLines(path).some((line) => {
      const { type } = line;
      return (type === "user" || type === "assistant" || type === "system") && JSON.stringify(line).includes(wanted);
    });
  });

/** What the process says of itself: busy, idle, waiting, shell. */
const says = (world: TestHome, agent: Agent, status: string): Promise<unknown> =>
  waitFor(`pid ${agent.pid} saying ${status}`, () => announcement(world, agent.pid)?.["status"] === status, {
    explain: () => JSON.stringify(announcement(world, agent.pid)),
  });

/** Waits for the interface's first idle moment; answers with its session. */
export async function idle(world: TestHome, tui: Tui): Promise<string> {
  await waitFor("an idle interface", () => announcement(world, tui.pid)?.["status"] === "idle", {
    explain: () => tui.screen(),
  });
  await tui.shows(/❯/);
  return String(announcement(world, tui.pid)?.["sessionId"]);
}

/** Types a prompt and, once it stands in the input line, sends it. */
export async function submit(tui: Tui, text: string): Promise<void> {
  tui.type(text);
  // Interfaces wrap before a long word: look for the first words only.
  const visible = text
    .slice(0, 10)
    .trimEnd()
    .replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
  await tui.shows(new RegExp(`[❯›] ?${visible}`));
  tui.press("Enter");
}

/** The home runs the command that never ends. */
export const toolRuns = (world: TestHome): Promise<true> =>
  waitFor("the tool's process", () => world.processes().some(({ argv }) => argv[0] === "tail"));

/**
 * 2.1.325 keeps the part of an answer that had arrived, with the usage that the stream began with; 2.1.197 does not. Only the
 * transcript shows whether a part had arrived before the interruption.
 */
function cutOff(world: TestHome, id: string, facts: Expected["facts"], model: string | null): Expected["facts"] {
  const path = transcript(world, id);
  const isAnswer = (line: Record<string, unknown>): boolean =>
    line["type"] === "assistant" && JSON.stringify(line).includes(`"model":"${model}"`);
  const hasAnswer = path !== null && readLines(path).some(isAnswer);
  return hasAnswer ? { ...facts, model, tokens: { ...tokensOf(1), output: 1 } } : facts;
}

const tokensOf = (answers: number): NonNullable<Expected["facts"]["tokens"]> => ({
  input: answers * usagePerRequest.input,
  output: answers * usagePerRequest.output,
  cacheRead: answers * usagePerRequest.cacheRead,
  cacheWrite: answers * usagePerRequest.cacheWrite,
});

export const inWords = ({ code, signal }: Ending): string => signal ?? `exit ${code}`;

const subagentRecorded = (world: TestHome, id: string): Promise<true> =>
  waitFor("the subagent's record", () =>
    filesBelow(world.claudeHome, `projects/*/${id}/subagents/*.jsonl`).some((path) =>
      readLines(join(world.claudeHome, path)).some((line) => JSON.stringify(line).includes('"tool_use"')),
    ),
  );
