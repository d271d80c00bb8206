// Steps in which agentctl acts: launch, send, stop, interrupt, wait, and a run that is killed. The agents are real demo
// agents whose prompts come to rest; what became of them is read from /proc and from their records, not from the answer.
import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { adopt, freeNumber, numbersOf } from "./adopted-agents.ts";
import { areSettingsUnreadable, expectationOf, expectNow, hasTag, noteTag } from "./allowed-answers.ts";
import { type FakeAgent, isAlive, isSuspended, serves } from "./fake-agent.ts";
import { type HostProcess, isDemoAgent, isHolder, processesOf, settle, toolsOf } from "./launched-processes.ts";
import type { Answer, Expected } from "./oracle.ts";
import { absentAsNull, until } from "./proc.ts";
import type { Dice } from "./random.ts";
import { begin, binaryUnderTest, type Told, tell } from "./run-agentctl.ts";
import type { Action } from "./schedule.ts";
import type { Session, SimulatedHost } from "./simulated-host.ts";
import { judge } from "./step-findings.ts";

const mostLaunched = 4;

export const actingSteps: Record<string, Action> = {
  launch: {
    weight: 4,
    targets: (host) => (canBegin(host) ? [0] : []),
    run: launch,
  },
  send: {
    weight: 3,
    targets: (host) =>
      canBegin(host) ? numbersOf(host, (session) => isDemo(session) && !host.blocked.has(session.number)) : [],
    run: send,
  },
  stop: { weight: 3, targets: (host) => numbersOf(host, () => true), run: stop },
  interrupt: {
    weight: 2,
    targets: (host) =>
      numbersOf(host, (session) => isDemo(session) && launched(host, session).some((fake) => !isSuspended(fake))),
    run: interrupt,
  },
  wait: { weight: 1, targets: (host) => numbersOf(host, () => true), run: wait },
  "run-killed": { weight: 1, targets: (host) => (canBegin(host) ? [0] : []), run: killRun },
};

function isDemo({ format }: Session): boolean {
  return format.agent === "demo";
}

export function launched(host: SimulatedHost, session: Session): FakeAgent[] {
  return host.liveWriters(session).filter(hasTag);
}

interface Errand {
  /** In no other prompt: by it this turn is found in the record. */
  token: string;
  prompt: string;
  end: "stays" | "asks" | "has a tool" | "leaves";
}

function chooseErrand(dice: Dice): Errand {
  const token = `errand-${dice.uuid()}`;
  const manner = dice.pick([
    { end: "stays", steps: "work:100000" },
    { end: "asks", steps: "ask:permission:may I go on" },
    { end: "has a tool", steps: "tool:exec sleep 100000" },
    { end: "leaves", steps: "say:that was easy" },
    { end: "leaves", steps: dice.pick(["end:failed", "exit:3"]) },
  ] as const);
  return { token, prompt: `${token}\n${manner.steps}`, end: manner.end };
}

async function launch(host: SimulatedHost, _target: number, dice: Dice): Promise<void> {
  const errand = chooseErrand(dice);
  const place = dice.pick(host.places);
  const before = expectNow(host);
  const processesBefore = processesOf(host);
  // A process without a session makes a launch wait for six seconds: what it is may show.
  const share = dice.chance(0.6) || host.fakes.some((fake) => isAlive(fake) && fake.argvSession === null);
  const bornMs = Date.now();
  const words = ["launch", "demo", "--cwd", place, "-p", errand.prompt, ...(share ? ["--share"] : [])];
  const told = await tell(host, words, { env: dice.chance(0.3) ? wrapped(host) : {} });
  if (areSettingsUnreadable(host)) {
    judge(host, whyStartedAnyway(host, told, processesBefore));
    return;
  }
  if (told.exit !== 0) {
    judge(host, whyNotRefused(told, { host, place, before, processesBefore, share }));
    return;
  }
  judge(
    host,
    share || !isSurelyBusy(before, place) ? null : `launch began in ${place}, which another session works in`,
  );
  const id = told.stdout.trim();
  const session = host.addSession(freeNumber(host, dice), id, place);
  await learn(host, session, errand, { told, bornMs, before: processesBefore });
}

async function send(host: SimulatedHost, target: number, dice: Dice): Promise<void> {
  const errand = chooseErrand(dice);
  const session = host.session(target);
  const before = expectNow(host);
  const processesBefore = processesOf(host);
  const bornMs = Date.now();
  const told = await tell(host, ["send", session.id, "--share", "-p", errand.prompt]);
  const answers = expectationOf(before, session)?.answers ?? [];
  const mayBeStopped = answers.some(({ state }) => state === "stopped");
  const hasRecord = host.read(session).kind !== "absent";
  if (told.exit === 0) {
    judge(host, mayBeStopped ? null : `send went to session ${target}, which was not stopped`);
    await learn(host, session, errand, { told, bornMs, before: processesBefore });
    return;
  }
  const mustTake = answers.every((answer) => answer.state === "stopped") && host.read(session).kind === "record";
  const honest = [5, 8].includes(told.exit) ? !mustTake : told.exit === 3 && !hasRecord;
  judge(host, honest ? null : refusal(told));
  judge(host, newAgents(host, processesBefore).length === 0 ? null : "send failed, and yet an agent was started");
}

async function stop(host: SimulatedHost, target: number, dice: Dice): Promise<void> {
  const session = host.session(target);
  const before = expectNow(host);
  const mine = host.liveWriters(session);
  const tools = toolsOf(host, session.id);
  const others = bystanders(host, session);
  const way = dice.pick([["--now"], ["--grace", "1s"]]);
  const told = await tell(host, ["stop", session.id, "-y", "--json", ...way]);
  await settle(host);
  await host.rest();
  const lost = others.filter((each) => !isAlive(each));
  judge(
    host,
    lost.length === 0 ? null : `stop of session ${target} ended what is another's: ${lost.map(({ pid }) => pid)}`,
  );
  const [first, now] = [before, expectNow(host)].map((each) => expectationOf(each, session));
  if (told.exit === 0) {
    const mayBeStopped = now?.row !== "required" || now.answers.some(({ state }) => state === "stopped");
    judge(host, mayBeStopped ? null : `stop said that session ${target} is stopped: ${told.stdout.trim()}`);
    const said = saidLeftovers(told);
    const hidden = tools.filter((each) => isAlive(each) && !said.includes(each.pid)).map(({ pid }) => pid);
    judge(host, hidden.length === 0 ? null : `stop of session ${target} left tools, and did not say so: ${hidden}`);
    return;
  }
  // It answers with what is true afterwards: a record that cannot be read, or an owner that names no session, is a doubt.
  const mayBeUnknown = [first, now].some((each) => each?.answers.some(({ state }) => state === "unknown"));
  const mayBeAbsent = first?.row !== "required";
  // One that had not named its session is not ended with it, and may be found to have it as soon as it is alone.
  const silent = mine.filter((fake) => isAlive(fake) && fake.argvSession === null);
  // What cannot be read of a launch may have the name that was typed.
  const isNamed = told.stderr.includes("not a launch note");
  const inDoubt = mayBeUnknown || (mayBeAbsent && (before.complete !== true || isNamed));
  // A hub takes requests only from its own clients.
  const inHub = mine.some((fake) => fake.served !== null && fake.memory === null);
  const honest = { 3: mayBeAbsent, 5: inHub, 6: silent.length > 0, 8: inDoubt }[told.exit] ?? false;
  judge(host, honest ? null : refusal(told));
}

async function interrupt(host: SimulatedHost, target: number): Promise<void> {
  const session = host.session(target);
  const before = expectNow(host);
  const others = bystanders(host, session);
  const mine = launched(host, session);
  const told = await tell(host, ["interrupt", session.id, "--timeout", "3s", "--json"]);
  const lost = others.filter((each) => !isAlive(each));
  judge(host, lost.length === 0 ? null : `interrupt ended what is another's: ${lost.map(({ pid }) => pid)}`);
  const says = host.read(session);
  if (told.exit === 0) {
    const goesOn = mine.some(isAlive) && says.kind === "record" && !says.unclear && says.says.turn === "open";
    judge(host, goesOn ? `interrupt said that no turn goes on in session ${target}, but one does` : null);
    // A headless agent leaves with its turn; one whose turn was closed already was not disturbed.
    await settleAgents(host, mine, session);
    return;
  }
  const answers = expectationOf(before, session)?.answers ?? [];
  const mayBeUnknown = answers.some(({ state }) => state === "unknown");
  const isStuck = host.liveWriters(session).length > 0;
  judge(host, (told.exit === 8 && mayBeUnknown) || (told.exit === 6 && isStuck) ? null : refusal(told));
}

async function settleAgents(host: SimulatedHost, agents: FakeAgent[], session: Session): Promise<void> {
  const caught = agents.filter((fake) => catchesNothing(host, fake, session));
  await until("an interrupted agent to leave", () => !caught.some(isAlive));
}

/** It got the signal, and so leaves in a moment: the record's last word is its own. */
function catchesNothing(host: SimulatedHost, fake: FakeAgent, session: Session): boolean {
  if (isSuspended(fake)) return false;
  return readText(host.recordPath(session)).trimEnd().split("\n").at(-1)?.includes('"interrupted"') ?? false;
}

async function wait(host: SimulatedHost, target: number): Promise<void> {
  const session = host.session(target);
  const expectation = expectationOf(expectNow(host), session);
  const told = await tell(host, ["wait", session.id, "--timeout", "1s", "--json"]);
  const allowed = new Set(expectation?.answers.flatMap(waitCodes));
  if (expectation?.row !== "required") for (const code of [3, 8]) allowed.add(code);
  // The conversation goes on under another id.
  if (host.fakes.some((fake) => fake.argvSession === session.id && !serves(fake, session.id))) allowed.add(11);
  judge(host, allowed.has(told.exit) ? null : `wait: exit ${told.exit}, allowed is ${[...allowed]}: ${told.stderr}`);
}

function waitCodes(answer: Answer): number[] {
  if (answer.state === "unknown") return [6];
  if (answer.state === "stopped")
    return answer.outcomes.map((outcome) => (outcome === null ? 8 : outcome === "completed" ? 0 : 10));
  // An idle one may have failed, or have work beside its turn.
  return answer.activities.flatMap((activity) => ({ waiting: [11], idle: [0, 10, 6] })[activity] ?? [6]);
}

/** `run` ends with its agent, whatever ended it. */
async function killRun(host: SimulatedHost, _target: number, dice: Dice): Promise<void> {
  const errand = { ...chooseErrand(dice) };
  const place = dice.pick(host.places);
  const bornMs = Date.now();
  const processesBefore = processesOf(host);
  const { child, reply } = begin(host, ["run", "demo", "--cwd", place, "--share", "-p", errand.prompt]);
  await until(
    "the agent of a run",
    () => newAgents(host, processesBefore).length > 0 || child.exitCode !== null,
    15_000,
  );
  const agent = newAgents(host, processesBefore)[0];
  const id = agent?.env.get("AGENTCTL_TAG_SESSION")?.replace("demo:", "");
  if (id === undefined) {
    // It was over before we looked: stdout has the answer, and its id is in no word of it. Its record is new.
    const told = await reply;
    if (areSettingsUnreadable(host)) judge(host, whyStartedAnyway(host, told, processesBefore));
    else adoptQuickRun(host, errand, place, dice);
    return;
  }
  const session = host.addSession(freeNumber(host, dice), id, place);
  if (errand.end !== "leaves") await atRest(host, session, errand, processesBefore);
  child.kill("SIGKILL");
  await reply;
  const ofRun = () => processesOf(host).filter((each) => !isOld(each, processesBefore) && speaksOf(each, id));
  const ended = await settles(() => ofRun().length === 0, 15_000);
  judge(host, ended ? null : `run was killed, but of it there still live ${ofRun().map(({ argv }) => argv.join(" "))}`);
  for (const each of ofRun().filter(isDemoAgent)) adoptLaunched(host, session, each, bornMs);
}

function adoptQuickRun(host: SimulatedHost, errand: Errand, place: string, dice: Dice): void {
  const known = new Set([...host.sessions.values()].map(({ id }) => id));
  const names = [...new Bun.Glob("*.jsonl").scanSync(host.sessionsFolder)].map((name) => name.replace(".jsonl", ""));
  const id = names.find(
    (name) => !known.has(name) && readText(join(host.sessionsFolder, `${name}.jsonl`)).includes(errand.token),
  );
  if (id === undefined) judge(host, "run has answered, but no record has its prompt");
  else host.addSession(freeNumber(host, dice), id, place);
}

interface Beginning {
  told: Told;
  bornMs: number;
  before: HostProcess[];
}

/** After a launch or a send that succeeded: its session has the prompt, and is live or over. */
async function learn(host: SimulatedHost, session: Session, errand: Errand, { told, bornMs, before }: Beginning) {
  const said = told.stdout.trim();
  judge(host, said === session.id ? null : `${told.command} printed ${said}, not ${session.id}`);
  const rested = await settles(() => isAtRest(host, session, errand, before), 10_000);
  const ofIt = newAgents(host, before).filter((each) => speaksOf(each, session.id));
  for (const each of ofIt) adoptLaunched(host, session, each, bornMs);
  judge(host, rested ? null : `${told.command} said ${session.id}: no such session with this prompt came to rest`);
  const extra = newAgents(host, before).filter((each) => !speaksOf(each, session.id));
  judge(host, extra.length === 0 ? null : `${told.command} started more: ${extra.map(({ argv }) => argv.join(" "))}`);
}

function atRest(host: SimulatedHost, session: Session, errand: Errand, before: HostProcess[]): Promise<void> {
  return until("an agent at rest", () => isAtRest(host, session, errand, before), 10_000);
}

function isAtRest(host: SimulatedHost, session: Session, { token, end }: Errand, before: HostProcess[]): boolean {
  const text = readText(host.recordPath(session));
  const at = text.indexOf(token);
  if (at === -1) return false;
  if (end === "asks") return text.includes('"type":"question"', at);
  if (end === "has a tool")
    return toolsOf(host, session.id).some((each) => !isOld(each, before) && each.argv[0] === "sleep");
  if (end === "stays") return true;
  return !processesOf(host).some((each) => !isOld(each, before) && speaksOf(each, session.id));
}

function adoptLaunched(host: SimulatedHost, session: Session, { pid, argv }: HostProcess, bornMs: number): void {
  const { cwd, id } = session;
  noteTag(adopt(host, session, pid, bornMs, { cwd, argv, argvSession: id, raised: "nested", child: null }));
}

interface Attempt {
  host: SimulatedHost;
  place: string;
  before: Expected;
  processesBefore: HostProcess[];
  share: boolean;
}

/** null: nothing was started, because the settings cannot be read. */
function whyStartedAnyway(
  host: SimulatedHost,
  told: Pick<Told, "command" | "exit" | "stderr">,
  processesBefore: HostProcess[],
): string | null {
  if (newAgents(host, processesBefore).length > 0) return `${told.command} started an agent without readable settings`;
  return told.exit === 8 ? null : `${told.command} without readable settings: exit ${told.exit}, not 8: ${told.stderr}`;
}

/** null: it was right to refuse, and nothing was started. */
function whyNotRefused(told: Told, { host, place, before, processesBefore, share }: Attempt): string | null {
  if (newAgents(host, processesBefore).length > 0) return `launch: exit ${told.exit}, and yet an agent was started`;
  if (told.exit !== 5 || share) return refusal(told);
  const mayBeBusy = before.sessions.some(
    ({ session, answers }) => session.cwd === place && answers.some((answer) => !isQuiet(answer)),
  );
  const isHeld = processesBefore.some((each) => isHolder(each) && each.cwd === place);
  return mayBeBusy || isHeld ? null : `launch was refused in ${place}, where nobody is busy: ${told.stderr.trim()}`;
}

function isQuiet(answer: Answer): boolean {
  return (
    answer.state === "stopped" || (answer.state === "running" && answer.activities.every((each) => each === "idle"))
  );
}

/** A session whose record names the place, and that cannot be anything but at work. */
function isSurelyBusy(expected: Expected, place: string): boolean {
  return expected.sessions.some(
    ({ session, row, answers }) =>
      session.cwd === place &&
      row === "required" &&
      answers.length > 0 &&
      answers.every(
        (answer) =>
          answer.state === "running" &&
          !answer.links.includes("cwd") &&
          answer.activities.length > 0 &&
          answer.activities.every((each) => each === "working" || each === "waiting"),
      ),
  );
}

/** Every live process of another session, and every tool of one. */
function bystanders(host: SimulatedHost, session: Session) {
  const agents = host.fakes.filter((fake) => !serves(fake, session.id) && isAlive(fake));
  const ids = new Set(agents.map((fake) => fake.session));
  const tools = processesOf(host).filter(({ env }) => ids.has(env.get("DEMO_AGENT_SESSION") ?? ""));
  return [...agents, ...tools];
}

function saidLeftovers({ stdout }: Told): number[] {
  const { leftovers } = JSON.parse(stdout) as { leftovers: { pid: number }[] };
  return leftovers.map(({ pid }) => pid);
}

function refusal({ command, exit, stdout, stderr }: Told): string {
  return `${command}: exit ${exit}: ${stderr.trim().slice(0, 300)} ${stdout.slice(0, 2000)}`;
}

function newAgents(host: SimulatedHost, before: HostProcess[]): HostProcess[] {
  return processesOf(host).filter((each) => isDemoAgent(each) && each.env.has("AGENTCTL_TAG") && !isOld(each, before));
}

function isOld({ pid, start }: HostProcess, before: HostProcess[]): boolean {
  return before.some((old) => old.pid === pid && old.start === start);
}

function speaksOf({ argv, env }: HostProcess, id: string): boolean {
  return argv.some((word) => word.includes(id)) || env.get("DEMO_AGENT_SESSION") === id;
}

async function settles(seen: () => boolean, limitMs: number): Promise<boolean> {
  const deadline = performance.now() + limitMs;
  while (!seen()) {
    if (performance.now() > deadline) return false;
    await Bun.sleep(2);
  }
  return true;
}

/** A program of another name that starts the agent and waits for it, as npm's and a person's scripts do. */
function wrapped(host: SimulatedHost): Record<string, string> {
  const path = join(host.root, "bin", "wrap");
  writeFileSync(path, `#!/bin/sh\n"${binaryUnderTest()}" "$@"\nexit $?\n`);
  chmodSync(path, 0o755);
  return { AGENTCTL_DEMO_BIN: path };
}

function canBegin(host: SimulatedHost): boolean {
  const live = host.fakes.filter((fake) => hasTag(fake) && isAlive(fake));
  return !host.sessionsBroken && !host.liveBroken && live.length < mostLaunched;
}

/** What is no file says nothing; a pipe would not even answer. */
function readText(path: string): string {
  return absentAsNull(() => (statSync(path).isFile() ? readFileSync(path, "utf8") : "")) ?? "";
}
