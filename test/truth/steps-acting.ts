// Steps in which agentctl acts: launch, send, stop, interrupt, wait, and a run that is killed. The agents are real demo
// agents whose prompts come to rest; what became of them is read from /proc and from their records, not from the answer.
import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expectationOf, expectNow, hasTag, noteTag } from "./allowances.ts";
import { adopt, freeNumber, numbersOf } from "./arrivals.ts";
import { isDemoAgent, isHolder, type Kin, kinOf, settle, toolsOf } from "./kin.ts";
import type { Answer, Expected } from "./oracle.ts";
import { absentAsNull, until } from "./proc.ts";
import { begin, binaryUnderTest, type Told, tell } from "./product.ts";
import type { Dice } from "./random.ts";
import type { Action } from "./schedule.ts";
import { judge } from "./side.ts";
import { isAlive, isSuspended, serves, type Twin } from "./twin.ts";
import type { Session, World } from "./world.ts";

const mostLaunched = 4;

export const actingSteps: Record<string, Action> = {
  launch: {
    weight: 4,
    targets: (world) => (canBegin(world) ? [0] : []),
    run: launch,
  },
  send: {
    weight: 3,
    targets: (world) =>
      canBegin(world) ? numbersOf(world, (session) => isDemo(session) && !world.blocked.has(session.number)) : [],
    run: send,
  },
  stop: { weight: 3, targets: (world) => numbersOf(world, () => true), run: stop },
  interrupt: {
    weight: 2,
    targets: (world) =>
      numbersOf(world, (session) => isDemo(session) && launched(world, session).some((twin) => !isSuspended(twin))),
    run: interrupt,
  },
  wait: { weight: 1, targets: (world) => numbersOf(world, () => true), run: wait },
  "run-killed": { weight: 1, targets: (world) => (canBegin(world) ? [0] : []), run: killRun },
};

function isDemo({ format }: Session): boolean {
  return format.agent === "demo";
}

/** Live agents that agentctl started for this session. */
export function launched(world: World, session: Session): Twin[] {
  return world.liveWriters(session).filter(hasTag);
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

async function launch(world: World, _target: number, dice: Dice): Promise<void> {
  const errand = chooseErrand(dice);
  const place = dice.pick(world.places);
  const before = expectNow(world);
  const kinBefore = kinOf(world);
  // A process without a session makes a launch wait for six seconds: what it is may show.
  const share = dice.chance(0.6) || world.twins.some((twin) => isAlive(twin) && twin.argvSession === null);
  const bornMs = Date.now();
  const words = ["launch", "demo", "--cwd", place, "-p", errand.prompt, ...(share ? ["--share"] : [])];
  const told = await tell(world, words, { env: dice.chance(0.3) ? wrapped(world) : {} });
  if (told.exit !== 0) {
    judge(world, whyNotRefused(told, { world, place, before, kinBefore, share }));
    return;
  }
  judge(
    world,
    share || !isSurelyBusy(before, place) ? null : `launch began in ${place}, which another session works in`,
  );
  const id = told.stdout.trim();
  const session = world.addSession(freeNumber(world, dice), id, place);
  await learn(world, session, errand, { told, bornMs, before: kinBefore });
}

async function send(world: World, target: number, dice: Dice): Promise<void> {
  const errand = chooseErrand(dice);
  const session = world.session(target);
  const before = expectNow(world);
  const kinBefore = kinOf(world);
  const bornMs = Date.now();
  const told = await tell(world, ["send", session.id, "--share", "-p", errand.prompt]);
  const answers = expectationOf(before, session)?.answers ?? [];
  const mayBeStopped = answers.some(({ state }) => state === "stopped");
  const hasRecord = world.read(session).kind !== "absent";
  if (told.exit === 0) {
    judge(world, mayBeStopped ? null : `send went to session ${target}, which was not stopped`);
    await learn(world, session, errand, { told, bornMs, before: kinBefore });
    return;
  }
  const mustTake = answers.every((answer) => answer.state === "stopped") && world.read(session).kind === "record";
  const honest = [5, 8].includes(told.exit) ? !mustTake : told.exit === 3 && !hasRecord;
  judge(world, honest ? null : refusal(told));
  judge(world, newAgents(world, kinBefore).length === 0 ? null : "send failed, and yet an agent was started");
}

async function stop(world: World, target: number, dice: Dice): Promise<void> {
  const session = world.session(target);
  const before = expectNow(world);
  const mine = world.liveWriters(session);
  const tools = toolsOf(world, session.id);
  const others = bystanders(world, session);
  const way = dice.pick([["--now"], ["--grace", "1s"]]);
  const told = await tell(world, ["stop", session.id, "-y", "--json", ...way]);
  await settle(world);
  await world.rest();
  const lost = others.filter((each) => !isAlive(each));
  judge(
    world,
    lost.length === 0 ? null : `stop of session ${target} ended what is another's: ${lost.map(({ pid }) => pid)}`,
  );
  const [first, now] = [before, expectNow(world)].map((each) => expectationOf(each, session));
  if (told.exit === 0) {
    const mayBeStopped = now?.row !== "required" || now.answers.some(({ state }) => state === "stopped");
    judge(world, mayBeStopped ? null : `stop said that session ${target} is stopped: ${told.stdout.trim()}`);
    const said = saidLeftovers(told);
    const hidden = tools.filter((each) => isAlive(each) && !said.includes(each.pid)).map(({ pid }) => pid);
    judge(world, hidden.length === 0 ? null : `stop of session ${target} left tools, and did not say so: ${hidden}`);
    return;
  }
  // It answers with what is true afterwards: a record that cannot be read, or an owner that names no session, is a doubt.
  const mayBeUnknown = [first, now].some((each) => each?.answers.some(({ state }) => state === "unknown"));
  const mayBeAbsent = first?.row !== "required";
  // One that had not named its session is not ended with it, and may be found to have it as soon as it is alone.
  const silent = mine.filter((twin) => isAlive(twin) && twin.argvSession === null);
  // What cannot be read of a launch may have the name that was typed.
  const isNamed = told.stderr.includes("not a launch note");
  const inDoubt = mayBeUnknown || (mayBeAbsent && (before.complete !== true || isNamed));
  // A hub listens to nobody but the programs that it works for.
  const inHub = mine.some((twin) => twin.hosted !== null && twin.memory === null);
  const honest = { 3: mayBeAbsent, 5: inHub, 6: silent.length > 0, 8: inDoubt }[told.exit] ?? false;
  judge(world, honest ? null : refusal(told));
}

async function interrupt(world: World, target: number): Promise<void> {
  const session = world.session(target);
  const before = expectNow(world);
  const others = bystanders(world, session);
  const mine = launched(world, session);
  const told = await tell(world, ["interrupt", session.id, "--timeout", "3s", "--json"]);
  const lost = others.filter((each) => !isAlive(each));
  judge(world, lost.length === 0 ? null : `interrupt ended what is another's: ${lost.map(({ pid }) => pid)}`);
  const says = world.read(session);
  if (told.exit === 0) {
    const goesOn = mine.some(isAlive) && says.kind === "record" && !says.unclear && says.says.turn === "open";
    judge(world, goesOn ? `interrupt said that no turn goes on in session ${target}, but one does` : null);
    // A headless agent leaves with its turn; one whose turn was closed already was not disturbed.
    await settleAgents(world, mine, session);
    return;
  }
  const answers = expectationOf(before, session)?.answers ?? [];
  const mayBeUnknown = answers.some(({ state }) => state === "unknown");
  const isStuck = world.liveWriters(session).length > 0;
  judge(world, (told.exit === 8 && mayBeUnknown) || (told.exit === 6 && isStuck) ? null : refusal(told));
}

async function settleAgents(world: World, agents: Twin[], session: Session): Promise<void> {
  const caught = agents.filter((twin) => catchesNothing(world, twin, session));
  await until("an interrupted agent to leave", () => !caught.some(isAlive));
}

/** It got the signal, and so leaves in a moment: the record's last word is its own. */
function catchesNothing(world: World, twin: Twin, session: Session): boolean {
  if (isSuspended(twin)) return false;
  return readText(world.recordPath(session)).trimEnd().split("\n").at(-1)?.includes('"interrupted"') ?? false;
}

async function wait(world: World, target: number): Promise<void> {
  const session = world.session(target);
  const expectation = expectationOf(expectNow(world), session);
  const told = await tell(world, ["wait", session.id, "--timeout", "1s", "--json"]);
  const allowed = new Set(expectation?.answers.flatMap(waitCodes));
  if (expectation?.row !== "required") for (const code of [3, 8]) allowed.add(code);
  // The conversation goes on under another id.
  if (world.twins.some((twin) => twin.argvSession === session.id && !serves(twin, session.id))) allowed.add(11);
  judge(world, allowed.has(told.exit) ? null : `wait: exit ${told.exit}, allowed is ${[...allowed]}: ${told.stderr}`);
}

function waitCodes(answer: Answer): number[] {
  if (answer.state === "unknown") return [6];
  if (answer.state === "stopped")
    return answer.outcomes.map((outcome) => (outcome === null ? 8 : outcome === "completed" ? 0 : 10));
  // An idle one may have failed, or have work beside its turn.
  return answer.activities.flatMap((activity) => ({ waiting: [11], idle: [0, 10, 6] })[activity] ?? [6]);
}

/** `run` ends with its agent, whatever ended it. */
async function killRun(world: World, _target: number, dice: Dice): Promise<void> {
  const errand = { ...chooseErrand(dice) };
  const place = dice.pick(world.places);
  const bornMs = Date.now();
  const kinBefore = kinOf(world);
  const { child, reply } = begin(world, ["run", "demo", "--cwd", place, "--share", "-p", errand.prompt]);
  await until("the agent of a run", () => newAgents(world, kinBefore).length > 0 || child.exitCode !== null, 15_000);
  const agent = newAgents(world, kinBefore)[0];
  const id = agent?.env.get("AGENTCTL_TAG_SESSION")?.replace("demo:", "");
  if (id === undefined) {
    // It was over before we looked: stdout has the answer, and its id is in no word of it. Its record is new.
    await reply;
    adoptQuickRun(world, errand, place, dice);
    return;
  }
  const session = world.addSession(freeNumber(world, dice), id, place);
  if (errand.end !== "leaves") await atRest(world, session, errand, kinBefore);
  child.kill("SIGKILL");
  await reply;
  const ofRun = () => kinOf(world).filter((each) => !isOld(each, kinBefore) && speaksOf(each, id));
  const ended = await settles(() => ofRun().length === 0, 15_000);
  judge(
    world,
    ended ? null : `run was killed, but of it there still live ${ofRun().map(({ argv }) => argv.join(" "))}`,
  );
  for (const each of ofRun().filter(isDemoAgent)) adoptLaunched(world, session, each, bornMs);
}

function adoptQuickRun(world: World, errand: Errand, place: string, dice: Dice): void {
  const known = new Set([...world.sessions.values()].map(({ id }) => id));
  const names = [...new Bun.Glob("*.jsonl").scanSync(world.sessionsFolder)].map((name) => name.replace(".jsonl", ""));
  const id = names.find(
    (name) => !known.has(name) && readText(join(world.sessionsFolder, `${name}.jsonl`)).includes(errand.token),
  );
  if (id === undefined) judge(world, "run has answered, but no record has its prompt");
  else world.addSession(freeNumber(world, dice), id, place);
}

interface Beginning {
  told: Told;
  bornMs: number;
  before: Kin[];
}

/** After a launch or a send that succeeded: its session has the prompt, and is live or over. */
async function learn(world: World, session: Session, errand: Errand, { told, bornMs, before }: Beginning) {
  const said = told.stdout.trim();
  judge(world, said === session.id ? null : `${told.command} printed ${said}, not ${session.id}`);
  const rested = await settles(() => isAtRest(world, session, errand, before), 10_000);
  const ofIt = newAgents(world, before).filter((each) => speaksOf(each, session.id));
  for (const each of ofIt) adoptLaunched(world, session, each, bornMs);
  judge(world, rested ? null : `${told.command} said ${session.id}: no such session with this prompt came to rest`);
  const extra = newAgents(world, before).filter((each) => !speaksOf(each, session.id));
  judge(world, extra.length === 0 ? null : `${told.command} started more: ${extra.map(({ argv }) => argv.join(" "))}`);
}

function atRest(world: World, session: Session, errand: Errand, before: Kin[]): Promise<void> {
  return until("an agent at rest", () => isAtRest(world, session, errand, before), 10_000);
}

function isAtRest(world: World, session: Session, { token, end }: Errand, before: Kin[]): boolean {
  const text = readText(world.recordPath(session));
  const at = text.indexOf(token);
  if (at === -1) return false;
  if (end === "asks") return text.includes('"type":"question"', at);
  if (end === "has a tool")
    return toolsOf(world, session.id).some((each) => !isOld(each, before) && each.argv[0] === "sleep");
  if (end === "stays") return true;
  return !kinOf(world).some((each) => !isOld(each, before) && speaksOf(each, session.id));
}

function adoptLaunched(world: World, session: Session, { pid, argv }: Kin, bornMs: number): void {
  const { cwd, id } = session;
  noteTag(adopt(world, session, pid, bornMs, { cwd, argv, argvSession: id, raised: "nested", child: null }));
}

interface Attempt {
  world: World;
  place: string;
  before: Expected;
  kinBefore: Kin[];
  share: boolean;
}

/** null: it was right to refuse, and nothing was started. */
function whyNotRefused(told: Told, { world, place, before, kinBefore, share }: Attempt): string | null {
  if (newAgents(world, kinBefore).length > 0) return `launch: exit ${told.exit}, and yet an agent was started`;
  if (told.exit !== 5 || share) return refusal(told);
  const mayBeBusy = before.sessions.some(
    ({ session, answers }) => session.cwd === place && answers.some((answer) => !isQuiet(answer)),
  );
  const isHeld = kinBefore.some((each) => isHolder(each) && each.cwd === place);
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
function bystanders(world: World, session: Session) {
  const agents = world.twins.filter((twin) => !serves(twin, session.id) && isAlive(twin));
  const ids = new Set(agents.map((twin) => twin.session));
  const tools = kinOf(world).filter(({ env }) => ids.has(env.get("DEMO_AGENT_SESSION") ?? ""));
  return [...agents, ...tools];
}

function saidLeftovers({ stdout }: Told): number[] {
  const { leftovers } = JSON.parse(stdout) as { leftovers: { pid: number }[] };
  return leftovers.map(({ pid }) => pid);
}

function refusal({ command, exit, stdout, stderr }: Told): string {
  return `${command}: exit ${exit}: ${stderr.trim().slice(0, 300)} ${stdout.slice(0, 2000)}`;
}

function newAgents(world: World, before: Kin[]): Kin[] {
  return kinOf(world).filter((each) => isDemoAgent(each) && each.env.has("AGENTCTL_TAG") && !isOld(each, before));
}

function isOld({ pid, start }: Kin, before: Kin[]): boolean {
  return before.some((old) => old.pid === pid && old.start === start);
}

function speaksOf({ argv, env }: Kin, id: string): boolean {
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
function wrapped(world: World): Record<string, string> {
  const path = join(world.root, "bin", "wrap");
  writeFileSync(path, `#!/bin/sh\n"${binaryUnderTest()}" "$@"\nexit $?\n`);
  chmodSync(path, 0o755);
  return { AGENTCTL_DEMO_BIN: path };
}

function canBegin(world: World): boolean {
  const live = world.twins.filter((twin) => hasTag(twin) && isAlive(twin));
  return !world.sessionsBroken && !world.liveBroken && live.length < mostLaunched;
}

/** What is no file says nothing; a pipe would not even answer. */
function readText(path: string): string {
  return absentAsNull(() => (statSync(path).isFile() ? readFileSync(path, "utf8") : "")) ?? "";
}
