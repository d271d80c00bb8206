// Cline's hub, its questions, two runs side by side: what the standard schedules do not have.
import { join } from "node:path";
import type { Capture, CaptureCase, Expected } from "./case.ts";
import type { RealAgent } from "./driver.ts";
import { agentBelow, asked, inTurn, openInterface, recorded, say } from "./lifecycle-steps.ts";
import { filesBelow, type Headless, type TestHome, waitFor } from "./test-home.ts";

const running = (prompt: string, expected: Partial<Expected>): Expected => ({
  ...{ state: "running", activity: "working", outcome: null, facts: { prompt } },
  ...expected,
});

/** The first run starts a hub for later runs. */
async function startHub(world: TestHome): Promise<number> {
  delete world.env["CLINE_SESSION_BACKEND_MODE"];
  await world.start(["cline", "hello there"]).exited;
  const folder = join(world.home, ".cline/data/locks/hub");
  await waitFor("the hub", () => filesBelow(folder, "production.json").length > 0);
  const hub = world.processes().find(({ argv }) => argv.includes("--cline-hub-daemon"));
  if (hub === undefined) throw new Error("no hub");
  return hub.pid;
}

interface Served {
  hub: number;
  agent: Headless;
  first: string;
  id: string;
}

/** A run whose session is in the hub. */
async function inHub(world: TestHome, driver: RealAgent, prompt: string): Promise<Served> {
  const hub = await startHub(world);
  const [first = ""] = driver.sessions(world);
  const agent = world.start(["cline", prompt]);
  const id = await recorded(world, driver, [first], {}, null);
  return { hub, agent, first, id };
}

const over = (prompt: string): Expected => ({
  ...{ state: "stopped", activity: null, outcome: "completed", facts: { prompt } },
});

export const clineCases = (driver: RealAgent): CaptureCase[] => [
  {
    name: "served-working",
    async run(world): Promise<Capture> {
      const prompt = "hello ;; HOLD=answer ;; SAY=done";
      const { hub, agent, first, id } = await inHub(world, driver, prompt);
      await asked(world, "HOLD=answer");
      const expected = running(prompt, { notInTheFiles: true });
      const sessions = [
        { id: first, pid: null, expected: over("hello there") },
        { id, pid: hub, expected },
      ];
      const nameless = [await agentBelow(world, driver, agent.pid)];
      return { command: agent.command, moment: "live", sessions, nameless };
    },
  },
  {
    name: "served-completed",
    async run(world): Promise<Capture> {
      const prompt = "hello ;; SAY=done";
      const { agent, first, id } = await inHub(world, driver, prompt);
      await agent.exited;
      const sessions = [
        { id: first, pid: null, expected: over("hello there") },
        { id, pid: null, expected: { ...over(prompt), result: "done" } },
      ];
      return { command: agent.command, moment: "live", sessions };
    },
  },
  {
    name: "tui-resumed",
    async run(world): Promise<Capture> {
      const prompt = "hello ;; SAY=one";
      await world.start(driver.headless(world, prompt)).exited;
      const [id = ""] = driver.sessions(world);
      const command = ["cline", "--id", id];
      const { tui, pid } = await openInterface(world, driver, command);
      await say(driver, tui, "again ;; SAY=the second answer");
      await tui.shows(/(?<!SAY=)the second answer/);
      await waitFor("its end", () => driver.sign(world, id) === "ended");
      const expected = running(prompt, { activity: "idle", result: "the second answer" });
      return { command, moment: "live", sessions: [{ id, pid, expected }] };
    },
  },
  {
    name: "tui-question",
    async run(world): Promise<Capture> {
      const command = driver.interface?.command(world) ?? [];
      const { tui, pid } = await openInterface(world, driver, command);
      const prompt = `ask ;; TOOL=ask_question {"question":"Which one?","options":["red","blue"]} ;; SAY=asked`;
      await say(driver, tui, prompt);
      await tui.shows(/Cline is asking a question/);
      const id = await recorded(world, driver, [], {}, "tool");
      const waiting = { kind: "question" as const, tool: "ask_question", text: "Which one?", options: ["red", "blue"] };
      return {
        ...{ command, moment: "live" },
        sessions: [{ id, pid, expected: running(prompt, { activity: "waiting", waiting }) }],
      };
    },
  },
  {
    name: "two-in-one-directory",
    async run(world): Promise<Capture> {
      const one = await inTurn(world, driver, { name: "one" });
      const two = await inTurn(world, driver, { name: "two" });
      const sessions = [one, two].map(({ id, pid }, index) => {
        const name = ["one", "two"][index];
        return { id: id ?? "", pid, expected: running(`hello ;; HOLD=${name} ;; SAY=done with ${name}`, {}) };
      });
      return { command: two.agent.command, moment: "live", sessions };
    },
  },
];
