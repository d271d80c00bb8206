// OpenCode's server, its questions and its subagents: what the standard schedules do not have.
import type { Capture, CaptureCase, Expected } from "./case.ts";
import { opencode, rows, writeSettings } from "./drivers/opencode.ts";
import { asked } from "./lifecycle-steps.ts";
import { type Headless, type TestHome, waitFor } from "./test-home.ts";

const port = 28_501;
/** Must never show anywhere. */
const password = "a-password-that-nobody-may-see";

export interface Server {
  agent: Headless;
  post(path: string, body: unknown): Promise<Response>;
  get(path: string): Promise<unknown>;
}

async function startServer(world: TestHome, command = ["opencode", "serve"]): Promise<Server> {
  const agent = world.start([...command, "--port", String(port)], { env: { OPENCODE_SERVER_PASSWORD: password } });
  await waitFor("a server", () => /listening on/.test(agent.stdout()), { deadlineMs: 120_000, explain: agent.stderr });
  const headers = { authorization: `Basic ${btoa(`opencode:${password}`)}`, "content-type": "application/json" };
  const url = (path: string): string => `http://127.0.0.1:${port}${path}?directory=${encodeURIComponent(world.cwd)}`;
  return {
    agent,
    post: (path, body) => fetch(url(path), { method: "POST", headers, body: JSON.stringify(body) }),
    get: async (path) => await (await fetch(url(path), { headers })).json(),
  };
}

/** A session in it that has this prompt. */
async function prompted({ post }: Server, text: string): Promise<string> {
  const made: unknown = await (await post("/session", {})).json();
  const id = (made as { id: string }).id;
  const { status } = await post(`/session/${id}/prompt_async`, { parts: [{ type: "text", text }] });
  if (status !== 204) throw new Error(`prompt_async: ${status}`);
  return id;
}

const running = (prompt: string, expected: Partial<Expected>): Expected => ({
  ...{ state: "running", activity: "working", outcome: null, facts: { prompt } },
  ...expected,
});

const live = ({ agent }: Pick<Server, "agent">, id: string, expected: Expected): Capture => ({
  ...{ command: agent.command, moment: "live", sessions: [{ id, pid: agent.pid, expected }] },
});

const question = {
  question: "Which colour?",
  header: "Colour",
  options: ["Red", "Blue"].map((label) => ({ label, description: label })),
};
const ask = `ask ;; TOOL=question ${JSON.stringify({ questions: [question] })} ;; SAY=thanks`;
const task = (script: string): string =>
  `share ;; TOOL=task ${JSON.stringify({ description: "look", prompt: script, subagent_type: "general" })} ;; SAY=all done`;

const listed = async ({ get }: Server, path: string): Promise<boolean> => ((await get(path)) as unknown[]).length > 0;

export function opencodeCases(): CaptureCase[] {
  return [
    {
      name: "served-working",
      async run(world) {
        const server = await startServer(world);
        const prompt = "hello ;; HOLD=answer ;; SAY=done";
        const id = await prompted(server, prompt);
        await asked(world, "HOLD=answer");
        return live(server, id, running(prompt, {}));
      },
    },
    {
      name: "served-approval",
      async run(world) {
        writeSettings(world, { permission: { bash: "ask" } });
        const server = await startServer(world);
        const prompt = "run it ;; BASH=touch made";
        const id = await prompted(server, prompt);
        await waitFor("its question", () => listed(server, "/permission"), { deadlineMs: 60_000 });
        const waiting = { kind: "permission" as const, tool: "bash", text: "touch made" };
        return live(server, id, running(prompt, { activity: "waiting", waiting }));
      },
    },
    {
      name: "served-question",
      async run(world) {
        const server = await startServer(world);
        const id = await prompted(server, ask);
        await waitFor("its question", () => listed(server, "/question"), { deadlineMs: 60_000 });
        const waiting = {
          kind: "question" as const,
          tool: "question",
          text: "Which colour?",
          options: ["Red", "Blue"],
        };
        return live(server, id, running(ask, { activity: "waiting", waiting }));
      },
    },
    {
      name: "served-subagent-asks",
      async run(world) {
        writeSettings(world, { permission: { bash: "ask" } });
        const server = await startServer(world);
        const prompt = task("BASH=touch made\nSAY=made");
        const id = await prompted(server, prompt);
        await waitFor("its question", () => listed(server, "/permission"), { deadlineMs: 60_000 });
        const waiting = { kind: "permission" as const, tool: "bash", text: "touch made" };
        return live(server, id, running(prompt, { activity: "waiting", waiting }));
      },
    },
    {
      name: "served-over",
      async run(world) {
        const server = await startServer(world);
        const prompt = "hello ;; SAY=done";
        const id = await prompted(server, prompt);
        const isOver = async (): Promise<boolean> =>
          rows(world, "SELECT data FROM message WHERE session_id = ?", id).some(({ data }) =>
            /"finish":"stop"/.test(String(data)),
          ) && Object.keys((await server.get("/session/status")) as object).length === 0;
        await waitFor("its answer", isOver, { deadlineMs: 60_000 });
        const expected: Expected = {
          state: "stopped",
          activity: null,
          outcome: "completed",
          result: "done",
          facts: { prompt },
        };
        return { command: server.agent.command, moment: "live", sessions: [{ id, pid: null, expected }] };
      },
    },
    {
      name: "subagent-working",
      async run(world) {
        const prompt = task("HOLD=inside\nSAY=seen");
        const agent = world.start(["opencode", "run", "--auto", "--format", "json", "--", ...prompt.split(" ")]);
        await asked(world, "HOLD=inside", agent);
        const isRunning = (): string | false => {
          const [child] = rows(world, "SELECT id, parent_id FROM session WHERE parent_id IS NOT NULL");
          const parts = rows(world, "SELECT data FROM part").map(({ data }) => String(data));
          const isTold = parts.some((data) => data.includes('"sessionId"') && data.includes('"running"'));
          // The prompt is written before its answer has a row, so the turn is unclear until then.
          const isAnswering = child !== undefined && opencode.sign(world, String(child["id"])) === "prompted";
          return isAnswering && isTold && String(child["parent_id"]);
        };
        const id = await waitFor("its subagent", isRunning);
        return live({ agent }, id, running(prompt, { background: { shells: 0, subagents: 1 } }));
      },
    },
  ];
}
