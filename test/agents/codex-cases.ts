// Codex, driven through its states and endings: `exec`, its interface alone, and its interface on the shared daemon.

import type { CaptureCase, CapturedSession, Expected } from "./case.ts";
import { inWords, submit, toolRuns } from "./claude-cases.ts";
import { askAppServer } from "./codex-app-server.ts";

import { usagePerRequest } from "./fake-model-parts.ts";
import {
  codexBinary,
  type Headless,
  lockedThreads,
  readLines,
  rollout,
  type TestHome,
  type Tui,
  waitFor,
} from "./test-home.ts";

const model = "gpt-5-codex";
export const askToLeave = `make it ;; TOOL=exec_command ${JSON.stringify({
  cmd: "touch made",
  sandbox_permissions: "require_escalated",
  justification: "May I make it",
})}`;
const askWhich = `ask me ;; TOOL=request_user_input ${JSON.stringify({
  questions: [
    {
      // Short, so that a capture keeps it.
      id: "a",
      header: "A",
      question: "Colour?",
      options: ["Red", "Blue"].map((label) => ({ label, description: `${label} it is` })),
    },
  ],
})}`;
const leave = { kind: "permission" as const, tool: "exec_command", text: "touch made (May I make it)" };
const which = { kind: "question" as const, tool: "request_user_input", text: "Colour?", options: ["Red", "Blue"] };
const forever = "wait ;; BASH=tail -f /dev/null";

export function codexCases(): CaptureCase[] {
  return [...headlessCases(), ...interfaceCases(), ...servedCases()];
}

/** Codex counts cached input as part of the input. */
const facts = (prompt: string | null, answers: number): Expected["facts"] => ({
  prompt,
  model: prompt === null ? null : model,
  tokens:
    answers === 0
      ? null
      : {
          input: answers * (usagePerRequest.input - usagePerRequest.cacheRead),
          output: answers * usagePerRequest.output,
          cacheRead: answers * usagePerRequest.cacheRead,
          cacheWrite: 0,
        },
});

export const running = (
  activity: "working" | "waiting" | "idle",
  prompt: string | null,
  answers: number,
): Expected => ({
  state: "running",
  activity,
  outcome: null,
  facts: facts(prompt, answers),
});

export const stopped = (outcome: Expected["outcome"], prompt: string, answers: number): Expected => ({
  state: "stopped",
  activity: null,
  outcome,
  facts: facts(prompt, answers),
});

function headlessCases(): CaptureCase[] {
  const exec = (world: TestHome, ...args: string[]): Headless =>
    world.start([codexBinary(), "exec", "--json", ...args]);
  const endings = (
    name: string,
    prompt: string,
    signal: NodeJS.Signals,
    outcome: Expected["outcome"],
    answers: number,
  ): CaptureCase => ({
    name,
    async run(world) {
      const agent = exec(world, prompt);
      const id = await started(agent);
      await recorded(world, id, answers === 0 ? "UserMessage" : "function_call");
      if (answers > 0) await toolRuns(world);
      agent.signal(signal);
      const ending = inWords(await agent.exited);
      const sessions = [{ id, pid: null, expected: stopped(outcome, prompt, answers) }];
      return { command: agent.command, moment: "dead", ending, sessions };
    },
  });
  return [
    {
      name: "headless-completed",
      async run(world) {
        const prompt = "look ;; FIRST=I look. ;; BASH=echo seen ;; SAY=it is there";
        const agent = exec(world, prompt);
        const ending = inWords(await agent.exited);
        const id = await started(agent);
        const expected = { ...stopped("completed", prompt, 2), result: "it is there" };
        return { command: agent.command, moment: "dead", ending, sessions: [{ id, pid: null, expected }] };
      },
    },
    {
      name: "headless-working",
      async run(world) {
        const prompt = "hello ;; HOLD=answer";
        const agent = exec(world, prompt);
        const id = await started(agent);
        await recorded(world, id, "UserMessage");
        const sessions = [{ id, pid: agent.pid, expected: running("working", prompt, 0) }];
        return { command: agent.command, moment: "live", sessions };
      },
    },
    {
      name: "headless-wrapped",
      async run(world) {
        const prompt = "hello ;; HOLD=answer";
        const agent = world.start(["codex", "exec", "--json", prompt]);
        const id = await started(agent);
        await recorded(world, id, "UserMessage");
        const sessions = [{ id, pid: owner(world, id), expected: running("working", prompt, 0) }];
        return { command: agent.command, moment: "live", sessions };
      },
    },
    {
      name: "tool-pending",
      async run(world) {
        const agent = exec(world, forever);
        const id = await started(agent);
        await recorded(world, id, "function_call");
        await toolRuns(world);
        const expected: Expected = { ...running("working", forever, 1), notInTheFiles: true };
        return { command: agent.command, moment: "live", sessions: [{ id, pid: agent.pid, expected }] };
      },
    },
    {
      name: "subagent",
      async run(world) {
        const inner = JSON.stringify({ message: "inner\nBASH=tail -f /dev/null" });
        const prompt = `delegate ;; TOOL=multi_agent_v1/spawn_agent ${inner} ;; HOLD=answer`;
        const agent = exec(world, prompt);
        const id = await started(agent);
        await toolRuns(world);
        await recorded(world, id, "token_count");
        const expected: Expected = {
          ...running("working", prompt, 1),
          background: { shells: 0, subagents: 1 },
        };
        return { command: agent.command, moment: "live", sessions: [{ id, pid: agent.pid, expected }] };
      },
    },
    {
      name: "error",
      async run(world) {
        const prompt = "fail ;; ERR=400";
        const agent = exec(world, prompt);
        const ending = inWords(await agent.exited);
        const id = await started(agent);
        const sessions = [{ id, pid: null, expected: stopped("failed", prompt, 0) }];
        return { command: agent.command, moment: "dead", ending, sessions };
      },
    },
    endings("sigint", "hello ;; HOLD=answer", "SIGINT", "interrupted", 0),
    endings("sigint-in-tool", forever, "SIGINT", "interrupted", 1),
    endings("sigterm", "hello ;; HOLD=answer", "SIGTERM", "cut-off", 0),
    endings("sighup", "hello ;; HOLD=answer", "SIGHUP", "cut-off", 0),
    endings("sigkill-in-tool", forever, "SIGKILL", "cut-off", 1),
    {
      name: "resumed",
      async run(world) {
        const prompt = "hello ;; SAY=one";
        const first = exec(world, prompt);
        await first.exited;
        const id = await started(first);
        const again = exec(world, "resume", id, "more ;; SAY=two");
        const ending = inWords(await again.exited);
        const expected = { ...stopped("completed", prompt, 2), result: "two" };
        return { command: again.command, moment: "dead", ending, sessions: [{ id, pid: null, expected }] };
      },
    },
    {
      name: "forked",
      async run(world) {
        const prompt = "hello ;; SAY=one";
        const first = exec(world, prompt);
        await first.exited;
        const id = await started(first);
        const again = "other way ;; SAY=two";
        const second = exec(world, "fork", id, again);
        const ending = inWords(await second.exited);
        const fork = await started(second);
        const sessions: CapturedSession[] = [
          { id, pid: null, expected: { ...stopped("completed", prompt, 1), result: "one" } },
          // The prompt is its own: the parent's history is not in its rollout. The tokens are both's.
          { id: fork, pid: null, expected: { ...stopped("completed", again, 2), result: "two", parent: id } },
        ];
        return { command: second.command, moment: "dead", ending, sessions };
      },
    },
    {
      name: "archived",
      async run(world) {
        const prompt = "hello ;; SAY=one";
        const first = exec(world, prompt);
        await first.exited;
        const id = await started(first);
        const archive = world.start([codexBinary(), "archive", id]);
        const ending = inWords(await archive.exited);
        const sessions = [{ id, pid: null, expected: { ...stopped("completed", prompt, 1), result: "one" } }];
        return { command: archive.command, moment: "dead", ending, sessions };
      },
    },
  ];
}

function interfaceCases(): CaptureCase[] {
  const open = async (world: TestHome): Promise<{ tui: Tui; id: string }> => {
    const tui = world.open([codexBinary()]);
    await ready(tui);
    const id = await waitFor("its lock", () => lockedThreads(tui.pid)[0]);
    return { tui, id };
  };
  return [
    {
      name: "tui-fresh",
      async run(world) {
        const { tui, id } = await open(world);
        const expected: Expected = { ...running("idle", null, 0), notInTheFiles: true };
        const sessions = [{ id, pid: tui.pid, expected }];
        return { command: tui.command, moment: "live", sessions };
      },
    },
    {
      name: "tui-trust",
      world: { trust: "ask" },
      async run(world) {
        const tui = world.open([codexBinary()]);
        await tui.shows(/trust/i);
        const [id = ""] = lockedThreads(tui.pid);
        const waiting = { kind: "trust" as const, tool: null };
        const sessions = [{ id, pid: tui.pid, expected: { ...running("waiting", null, 0), waiting } }];
        return { command: tui.command, moment: "live", sessions };
      },
    },
    {
      name: "tui-idle",
      async run(world) {
        const { tui, id } = await open(world);
        const prompt = "hello ;; SAY=the answer";
        await say(tui, prompt);
        await recorded(world, id, "task_complete");
        const sessions = [{ id, pid: tui.pid, expected: { ...running("idle", prompt, 1), result: "the answer" } }];
        return { command: tui.command, moment: "live", sessions };
      },
    },
    {
      name: "tui-approval",
      world: { codexApproval: "on-request" },
      async run(world) {
        const { tui, id } = await open(world);
        const prompt = askToLeave;
        await say(tui, prompt);
        await recorded(world, id, "function_call");
        await tui.shows(/would you like to run|allow|approve/i);
        const expected: Expected = { ...running("waiting", prompt, 1), notInTheFiles: true, waiting: leave };
        return { command: tui.command, moment: "live", sessions: [{ id, pid: tui.pid, expected }] };
      },
    },
    {
      name: "tui-question",
      async run(world) {
        const { tui, id } = await open(world);
        await askInPlanMode(world, tui, id);
        const sessions = [{ id, pid: tui.pid, expected: { ...running("waiting", askWhich, 1), waiting: which } }];
        return { command: tui.command, moment: "live", sessions };
      },
    },
    {
      name: "tui-escape",
      async run(world) {
        const { tui, id } = await open(world);
        const prompt = "hello ;; HOLD=answer";
        await say(tui, prompt);
        await recorded(world, id, "UserMessage");
        await waitFor("the request", () => world.model.requests.length > 0);
        tui.press("Escape");
        await recorded(world, id, "turn_aborted");
        const sessions = [{ id, pid: tui.pid, expected: running("idle", prompt, 0) }];
        return { command: tui.command, moment: "live", sessions };
      },
    },
    {
      name: "tui-closed",
      async run(world) {
        const { tui, id } = await open(world);
        const prompt = "hello ;; HOLD=answer";
        await say(tui, prompt);
        await recorded(world, id, "UserMessage");
        tui.close();
        const ending = inWords(await tui.exited);
        const sessions = [{ id, pid: null, expected: stopped("cut-off", prompt, 0) }];
        return { command: tui.command, moment: "dead", ending, sessions };
      },
    },
    {
      name: "tui-new",
      async run(world) {
        const { tui, id } = await open(world);
        const prompt = "hello ;; SAY=one";
        await say(tui, prompt);
        await recorded(world, id, "task_complete");
        await tui.shows(/one/);
        await submit(tui, "/new");
        await tui.shows(/Use current Git worktree/);
        tui.press("Enter");
        const second = await waitFor("the new thread", () => lockedThreads(tui.pid).find((thread) => thread !== id));
        const again = "afresh ;; SAY=two";
        await say(tui, again);
        await recorded(world, second, "task_complete");
        const first = lockedThreads(tui.pid).includes(id)
          ? { ...running("idle", prompt, 1), result: "one" }
          : { ...stopped("completed", prompt, 1), result: "one" };
        const sessions: CapturedSession[] = [
          { id, pid: first.state === "running" ? tui.pid : null, expected: first },
          { id: second, pid: tui.pid, expected: { ...running("idle", again, 1), result: "two" } },
        ];
        return { command: tui.command, moment: "live", sessions };
      },
    },
  ];
}

function servedCases(): CaptureCase[] {
  const answers = async (world: TestHome, id: string): Promise<Record<string, unknown>> =>
    askAppServer(world.codexHome, [
      { method: "thread/loaded/list", params: {} },
      { method: "thread/read", params: { threadId: id, includeTurns: false } },
    ]);
  return [
    {
      name: "served-working",
      world: { codexDaemon: "shared" },
      async run(world) {
        const { tui, id, server } = await openServed(world);
        const prompt = "hello ;; HOLD=answer";
        await say(tui, prompt);
        await recorded(world, id, "UserMessage");
        const sessions = [{ id, pid: server, expected: running("working", prompt, 0) }];
        return { command: tui.command, moment: "live", server: await answers(world, id), sessions };
      },
    },
    {
      name: "served-approval",
      world: { codexDaemon: "shared", codexApproval: "on-request" },
      async run(world) {
        const { tui, id, server } = await openServed(world);
        const prompt = askToLeave;
        await say(tui, prompt);
        await recorded(world, id, "function_call");
        await tui.shows(/would you like to run|allow|approve/i);
        const sessions = [{ id, pid: server, expected: { ...running("waiting", prompt, 1), waiting: leave } }];
        return { command: tui.command, moment: "live", server: await answers(world, id), sessions };
      },
    },
    {
      name: "served-question",
      world: { codexDaemon: "shared" },
      async run(world) {
        const { tui, id, server } = await openServed(world);
        await askInPlanMode(world, tui, id);
        const sessions = [{ id, pid: server, expected: { ...running("waiting", askWhich, 1), waiting: which } }];
        return { command: tui.command, moment: "live", server: await answers(world, id), sessions };
      },
    },
    {
      name: "served-idle-after-quit",
      world: { codexDaemon: "shared" },
      async run(world) {
        const { tui, id, server } = await openServed(world);
        const prompt = "hello ;; SAY=the answer";
        await say(tui, prompt);
        await recorded(world, id, "task_complete");
        await tui.shows(/the answer/);
        await submit(tui, "/quit");
        await tui.exited;
        const sessions = [{ id, pid: server, expected: { ...running("idle", prompt, 1), result: "the answer" } }];
        return { command: tui.command, moment: "live", server: await answers(world, id), sessions };
      },
    },
  ];
}

/** An interface on the shared daemon, with the thread that the daemon has for it. */
export async function openServed(world: TestHome): Promise<{ tui: Tui; id: string; server: number }> {
  const tui = world.open([codexBinary()]);
  await ready(tui);
  const [server, id] = await waitFor("the daemon's thread", () => {
    for (const { pid, argv } of world.processes())
      if (argv.includes("app-server")) for (const thread of lockedThreads(pid)) return [pid, thread] as const;
    return null;
  });
  return { tui, id, server };
}

/** Outside of plan mode Codex answers such a call itself, with an error. */
async function askInPlanMode(world: TestHome, tui: Tui, id: string): Promise<void> {
  // What it hears while it still starts is forgotten now and then, or taken back a moment later.
  for (const sign = /Plan mode \(shift/; !sign.test(tui.screen()); await Bun.sleep(1_000)) {
    await submit(tui, "/plan");
    await waitFor("plan mode, or an empty line", () => sign.test(tui.screen()) || tui.screen().includes("› Ask Codex"));
  }
  await say(tui, askWhich);
  await tui.shows(/\d\. Blue/);
  await recorded(world, id, "function_call");
}

/** Pasted, so that it is one event: of a text typed in one go, Codex may take the Enter for a part. */
export async function say(tui: Tui, text: string): Promise<void> {
  tui.type(`\x1b[200~${text}\x1b[201~`);
  await tui.shows(new RegExp(`› ${text.slice(0, 10).trimEnd()}`));
  tui.press("Enter");
}

/** The thread's id: first line of `exec --json`. */
export const started = (agent: Headless): Promise<string> =>
  waitFor("thread.started", () => /"thread_id":"([^"]+)"/.exec(agent.stdout())?.[1], {
    explain: () => agent.stderr(),
  });

/** The rollout holds a line of this kind (payload type or item type). */
export const recorded = (world: TestHome, id: string, kind: string): Promise<true> =>
  waitFor(`${kind} in the rollout of ${id}`, () => {
    const path = rollout(world, id);
    return path !== null && readLines(path).some((line) => JSON.stringify(line).includes(`"type":"${kind}"`));
  });

const owner = (world: TestHome, id: string): number | null =>
  world.processes().find(({ pid }) => lockedThreads(pid).includes(id))?.pid ?? null;

export const ready = (tui: Tui): Promise<string> => tui.shows(/› Ask Codex|\? for shortcuts/);
