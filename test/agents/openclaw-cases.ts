// What OpenClaw's fixtures are captured from: each ends at the moment that its name says.
import type { Capture, CaptureCase, CapturedSession, Expected } from "./case.ts";
import {
  type Begun,
  begin,
  Client,
  patienceMs,
  rows,
  sleeping,
  startGateway,
  untilStatus,
} from "./drivers/openclaw.ts";
import { type Headless, type TestHome, waitFor } from "./test-home.ts";

const command = ["openclaw", "gateway", "run"];
const one = { input: 1034, output: 56, cacheRead: 200, cacheWrite: 0 };
const times = (count: number) => ({
  ...{ input: one.input * count, output: one.output * count, cacheRead: one.cacheRead * count, cacheWrite: 0 },
});

const facts = (prompt: string, answers: number, permission = "full"): Expected["facts"] => ({
  ...{ prompt, model: "fake-model", permission, tokens: times(answers) },
});

/** Every method that agentctl asks, answered by the gateway itself. */
async function answersOf(client: Client): Promise<Record<string, unknown>> {
  const list = { limit: 200, offset: 0, activeOnly: true, archived: "all", includeGlobal: true, includeUnknown: true };
  return {
    greeting: await client.greeting.promise,
    connect: {},
    "sessions.list": await client.ask("sessions.list", list),
    "exec.approval.list": await client.ask("exec.approval.list", {}),
    "plugin.approval.list": await client.ask("plugin.approval.list", {}),
    "question.list": await client.ask("question.list", {}),
  };
}

async function live(client: Client, sessions: CapturedSession[]): Promise<Capture> {
  return { command, moment: "live", server: await answersOf(client), sessions };
}

const dead = (ending: string, sessions: CapturedSession[]): Capture => ({ command, moment: "dead", ending, sessions });

const stopped = (outcome: Expected["outcome"], rest: Omit<Expected, "state" | "activity" | "outcome">): Expected => ({
  ...{ state: "stopped", activity: null, outcome },
  ...rest,
});

const running = (activity: Expected["activity"], rest: Omit<Expected, "state" | "activity" | "outcome">): Expected => ({
  ...{ state: "running", activity, outcome: null },
  ...rest,
});

const session = ({ id }: Begun, pid: number | null, expected: Expected): CapturedSession => ({ id, pid, expected });

const capture = (name: string, run: (world: TestHome, client: Client, gateway: Headless) => Promise<Capture>) => ({
  name,
  run: async (world: TestHome): Promise<Capture> => {
    const gateway = await startGateway(world);
    await using client = await Client.connect();
    return await run(world, client, gateway);
  },
});

type Making = (world: TestHome, client: Client, pid: number) => Promise<CapturedSession>;

/** After ten seconds OpenClaw would move the command to the background and end the turn. */
export const toolPrompt = (seconds: number): string =>
  `please ;; TOOL=exec ${JSON.stringify({ command: `sleep ${seconds}`, yieldMs: 120_000 })} ;; SAY=done`;

const working: Making = async (world, client, pid) => {
  const prompt = "please ;; HOLD=never ;; SAY=done";
  const begun = await begin(client, world, prompt);
  const isAnswering = () => world.model.requests.some(({ text, tools }) => text.includes("HOLD") && tools.length > 0);
  await waitFor("a model that answers", isAnswering, { deadlineMs: patienceMs });
  return session(begun, pid, running("working", { facts: { ...facts(prompt, 0), tokens: null } }));
};

const inTool: Making = async (world, client, pid) => {
  const begun = await begin(client, world, toolPrompt(1234));
  await sleeping(world, 1234);
  return session(begun, pid, running("working", { facts: facts(toolPrompt(1234), 1) }));
};

const approval: Making = async (world, client, pid) => {
  // The client stays connected: OpenClaw denies an approval that it can show to no client.
  await Client.connect(["approvals"]);
  const prompt = "please ;; BASH=touch asked ;; SAY=done";
  const begun = await begin(client, world, prompt, "guarded");
  const isAsked = async () => Object.keys(await client.ask("exec.approval.list", {})).length > 0;
  await waitFor("an approval", isAsked, { deadlineMs: patienceMs });
  const waiting = { kind: "permission", tool: "exec", text: "touch asked" } as const;
  return session(begun, pid, {
    ...running("waiting", { facts: facts(prompt, 1, "guarded") }),
    waiting: { ...waiting, options: ["allow-once", "deny"] },
  });
};

const question: Making = async (world, client, pid) => {
  const options = [{ label: "red" }, { label: "blue" }];
  const asked = { questions: [{ header: "Colour", id: "colour", question: "Which colour?", options }] };
  const call = JSON.stringify({ id: "openclaw:core:ask_user", args: asked });
  const prompt = `please ;; TOOL=tool_call ${call} ;; SAY=done`;
  const begun = await begin(client, world, prompt);
  const isAsked = async () => {
    const { questions } = await client.ask("question.list", {});
    return Array.isArray(questions) && questions.length > 0;
  };
  await waitFor("a question", isAsked, { deadlineMs: patienceMs });
  const waiting = { kind: "question", tool: null, text: "Which colour?" } as const;
  return session(begun, pid, {
    ...running("waiting", { facts: facts(prompt, 1) }),
    waiting: { ...waiting, options: ["red", "blue"] },
  });
};

/** Two turns, the second with a prompt that is long enough to be compressed. */
const completed: Making = async (world, client) => {
  const prompt = "please ;; SAY=one";
  const begun = await begin(client, world, prompt);
  await untilStatus(world, begun.id, "done");
  const long = "x".repeat(6000);
  await client.ask("sessions.send", {
    key: begun.key,
    message: `go on ;; SAY=two
${long}`,
  });
  await waitFor("a second answer", () => rows(world, answered, begun.id).length === 2, { deadlineMs: patienceMs });
  await untilStatus(world, begun.id, "done");
  return session(begun, null, stopped("completed", { result: "two", facts: facts(prompt, 2) }));
};

const answered =
  "SELECT 1 FROM transcript_events WHERE session_id = ? AND coalesce(event_json, navigation_json) LIKE '%assistant%'";

const failed: Making = async (world, client) => {
  const prompt = "please ;; ERR=400";
  const begun = await begin(client, world, prompt);
  await untilStatus(world, begun.id, "failed");
  return session(begun, null, stopped("failed", { facts: { ...facts(prompt, 0), tokens: times(0) } }));
};

const aborted: Making = async (world, client) => {
  const begun = await begin(client, world, toolPrompt(1235));
  await sleeping(world, 1235);
  await client.ask("sessions.abort", { key: begun.key, clearQueued: true });
  await untilStatus(world, begun.id, "killed");
  return session(begun, null, stopped("interrupted", { facts: facts(toolPrompt(1235), 1) }));
};

/** One gateway with everything at once: starting one takes longer than all of this. */
const makings = [completed, failed, aborted, working, approval, question, inTool];

export const openclawCases = (): CaptureCase[] => [
  capture("gateway", async (world, client, { pid }) => {
    const sessions: CapturedSession[] = [];
    for (const make of makings) sessions.push(await make(world, client, pid));
    return await live(client, sessions);
  }),
  capture("sigkill-in-tool", async (world, client, gateway) => {
    const { id } = await inTool(world, client, gateway.pid);
    gateway.signal("SIGKILL");
    await gateway.exited;
    return dead("SIGKILL", [{ id, pid: null, expected: stopped("cut-off", { facts: facts(toolPrompt(1234), 1) }) }]);
  }),
  capture("sigterm-in-tool", async (world, client, gateway) => {
    const { id } = await inTool(world, client, gateway.pid);
    gateway.signal("SIGTERM");
    await untilDraining(gateway);
    process.kill((await sleeping(world, 1234)).pid);
    const { code } = await gateway.exited;
    const expected = stopped("completed", { result: "done", facts: facts(toolPrompt(1234), 2) });
    return dead(`exit ${code}`, [{ id, pid: null, expected }]);
  }),
];

/** Asked to end, it lets its turns end first: for five minutes at most. */
export const untilDraining = (gateway: Headless): Promise<boolean> =>
  waitFor("a gateway that is ending", () => /draining active work/.test(gateway.stdout() + gateway.stderr()), {
    deadlineMs: patienceMs,
  });
