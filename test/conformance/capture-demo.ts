// Captures test/fixtures/demo/<case>/ from the built binary: `npm run build && bun test/conformance/capture-demo.ts`.
// Each case is one real run. `expected` says what the schedule did, never what a parser said.
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { Sign } from "./driver.ts";
import { demoDriver } from "./drivers/demo.ts";
import { type Agent, TestHome } from "./test-home.ts";
import { waitFor } from "./wait.ts";

const fixtures = join(import.meta.dir, "..", "fixtures", "demo");
const bootId = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/;

interface Capture {
  name: string;
  args: string[];
  /** The newest line of the record when the files are taken; null: when the process has ended. */
  until: Sign | null;
  ending?: NodeJS.Signals;
  /** The agent chooses its own id, and its arguments do not tell it. */
  ownId?: true;
  /** A person's line. */
  tell?: string;
  /** A run that came before. */
  before?: string[];
  /** Written by hand, for what the agent has no step for. */
  append?: Record<string, unknown>;
  expected: Record<string, unknown>;
}

const id = (number: number): string => `${String(number).padStart(8, "0")}-dead-4bee-8bad-c0ffee000000`;
const running = (activity: string) => ({ state: "running", activity, outcome: null });
const stopped = (outcome: string) => ({ state: "stopped", activity: null, outcome });
const facts = { model: "demo-1", prompt: "Fix the login test", agentVersion: "1" };
const prompt = `prompt:${facts.prompt}`;
const question = { kind: "permission", text: "May I run make?", tool: "shell", options: ["yes", "no"] };
const ownCommand = "tool:while [ -e ../project ]; do sleep 0.02; done";

const captures: Capture[] = [
  { name: "working", args: [prompt, "work:1000"], until: "prompted", expected: { ...running("working"), facts } },
  {
    name: "waiting",
    args: [prompt, "ask:permission:May I run make?"],
    until: "asking",
    expected: { ...running("waiting"), waiting: question, facts },
  },
  {
    name: "idle",
    args: [prompt, "say:Done.", "end", "title:Login test", "idle"],
    until: null,
    expected: { ...running("idle"), waiting: null, facts: { ...facts, title: "Login test" } },
  },
  {
    name: "answered",
    args: [prompt, "ask:permission:May I run make?", "work:1000"],
    tell: "yes",
    until: "answered",
    expected: { ...running("working"), waiting: null, facts },
  },
  { name: "tool-running", args: [prompt, ownCommand], until: "tool", expected: { ...running("working"), facts } },
  {
    name: "resumed",
    before: [prompt, "say:Done.", "end"],
    args: ["prompt:And the logout test", "work:1000"],
    until: "prompted",
    expected: { ...running("working"), facts },
  },
  {
    name: "background",
    args: [prompt, "end", "background:2:1", "idle"],
    until: null,
    expected: { ...running("idle"), background: { shells: 2, subagents: 1 }, facts },
  },
  {
    name: "background-in-turn",
    args: [prompt, "background:1:0", "say:The server runs.", "end", "idle"],
    until: "ended",
    expected: { ...running("idle"), background: { shells: 1, subagents: 0 }, facts },
  },
  {
    name: "silent",
    args: ["--no-announce", prompt, "work:1000"],
    until: "prompted",
    expected: { ...running("working"), facts },
  },
  {
    name: "silent-by-directory",
    ownId: true,
    args: ["--no-announce", prompt, "work:1000"],
    until: "prompted",
    expected: { ...running("working"), facts },
  },
  {
    name: "completed",
    args: [prompt, "say:Done.", "end"],
    until: null,
    expected: { ...stopped("completed"), waiting: null, background: null, facts },
  },
  {
    name: "titled-in-turn",
    args: [prompt, "title:Login test", "say:Done.", "end"],
    until: null,
    expected: { ...stopped("completed"), facts: { ...facts, title: "Login test" } },
  },
  { name: "failed", args: [prompt, "end:failed"], until: null, expected: { ...stopped("failed"), facts } },
  {
    name: "interrupted",
    args: [prompt, "work:1000"],
    until: "prompted",
    ending: "SIGINT",
    expected: { ...stopped("interrupted"), facts },
  },
  {
    name: "cut-off",
    args: [prompt, "work:1000"],
    until: "prompted",
    ending: "SIGKILL",
    expected: { ...stopped("cut-off"), facts },
  },
  {
    name: "killed-while-waiting",
    args: [prompt, "ask:permission:May I run make?"],
    until: "asking",
    ending: "SIGTERM",
    expected: { ...stopped("cut-off"), waiting: null, facts },
  },
  {
    name: "continued",
    args: [prompt, "end"],
    until: null,
    append: { type: "continued", at: "2026-11-15T00:00:00.000Z", by: id(99) },
    expected: { ...stopped("completed"), continuedBy: id(99), facts },
  },
  {
    name: "parent",
    args: ["--parent", id(98), prompt, "end"],
    until: null,
    expected: { ...stopped("completed"), parent: id(98), facts },
  },
];

for (const [index, capture] of captures.entries()) await take(capture, id(index + 1));

async function take(capture: Capture, ownId: string): Promise<void> {
  using world = new TestHome(demoDriver);
  const start = (options: string[], args: string[]) =>
    world.spawn([world.place.binary, "demo-agent", ...options, ...args]);
  if (capture.before !== undefined) await start(["--session-id", ownId], capture.before).ended();
  const option = capture.before === undefined ? "--session-id" : "--resume";
  const agent = start(capture.ownId ? [] : [option, ownId], capture.args);
  if (capture.tell !== undefined) agent.tell(`${capture.tell}\n`);
  await waitFor("a record", () => demoDriver.recorded(world.place).length === 1);
  const session = demoDriver.recorded(world.place)[0] ?? ownId;
  const live = capture.expected["state"] === "running";
  await settle(world, agent, capture, session, live);
  if (capture.ending !== undefined) await agent.kill(capture.ending);
  const path = join(world.place.agentHome, "sessions", `${session}.jsonl`);
  if (capture.append !== undefined) appendFileSync(path, `${JSON.stringify(capture.append)}\n`);
  write(world, agent, capture, session, live);
  console.log(`captured ${capture.name}`);
}

async function settle(world: TestHome, agent: Agent, capture: Capture, session: string, live: boolean): Promise<void> {
  const { until } = capture;
  if (until !== null) return await world.reaches(session, until);
  // The steps before `idle` are done when all their lines stand in the record.
  if (live) await world.recordHasLines(join("sessions", `${session}.jsonl`), capture.args.length);
  else await agent.ended();
}

function write(world: TestHome, agent: Agent, capture: Capture, session: string, live: boolean): void {
  const target = join(fixtures, capture.name);
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  cpSync(world.place.agentHome, join(target, "home"), { recursive: true });
  const redact = redaction(world);
  for (const entry of readdirSync(join(target, "home"), { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile()) writeFileSync(path, redact(readFileSync(path, "utf8")));
  }
  const content = {
    agent: "demo",
    version: "1",
    command: ["agentctl", ...agent.command.slice(1)],
    date: new Date().toISOString().slice(0, 10),
    moment: live ? "live" : "dead",
    ...(live
      ? { processes: [{ pid: agent.pid, name: "agentctl", argv: agent.command, cwd: world.place.project }] }
      : {}),
    ...(capture.append === undefined ? {} : { byHand: "the last line: the agent has no step that writes it" }),
    expected: { id: session, cwd: world.place.project, ...capture.expected },
  };
  writeFileSync(join(target, "case.json"), redact(`${JSON.stringify(content, null, 2)}\n`));
}

/** Takes this machine out of a file: its paths, its boot id, its pid namespace. */
function redaction({ place }: TestHome): (text: string) => string {
  const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  if (!bootId.test(boot)) throw new Error("no boot id");
  const namespace = readlinkSync("/proc/self/ns/pid");
  return (text) =>
    text
      .replaceAll(place.binary, "/usr/local/bin/agentctl")
      .replaceAll(place.root, "/home/user")
      .replaceAll(boot, "00000000-0000-4000-8000-000000000000")
      .replaceAll(namespace, "pid:[4026531836]");
}
