// What the shared suites do with a real agent, whichever it is, and how they compare agentctl's answer with it.
import { expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { ask, type Listed, list } from "./check-answers.ts";
import { type After, type Begin, type Link, oneOf, type RealAgent } from "./driver.ts";
import { act, toolBegun } from "./run-commands.ts";
import { createTestHome, type Headless, type SeenProcess, type TestHome, type Tui, waitFor } from "./test-home.ts";

/** Agents that take seconds to start run only these tests, and all of them with FULL=1 or ONLY. */
const essential = [
  /^(working|a tool runs|the model fails|when its wrapper|resumed by|two sessions in one directory, one|in a terminal: fresh)/,
  /^SIG(TERM|KILL) inside a tool/,
  /^(launch prints|a session that ends at once: .*, send,|interrupt ends|stop ends the tool that)/,
  /^(read|edit|bypass)/,
];

export const isFull = process.env["FULL"] === "1" || process.env["ONLY"] !== undefined;

/** A test with its own home; it is skipped if the agent cannot do it. */
export const casesOf =
  (driver: RealAgent) =>
  (name: string, run: (world: TestHome) => Promise<void>): void => {
    if (!isFull && driver.isSlow === true && !essential.some((pattern) => pattern.test(name))) return;
    const reason = driver.cannot?.[name];
    if (reason !== undefined) test.skip(`${name} (${reason})`, () => {});
    else
      test(name, async () => {
        await using world = await createTestHome({ agents: [driver] });
        await run(world);
      });
  };

/** `result` or `wait` after a turn that completed; where the record does not say that, they cannot tell. */
export async function over(world: TestHome, { shows }: RealAgent, args: string[]): Promise<string> {
  const { code, out, err } = await act(world, args);
  if (code !== (shows.endUnsaid ? 8 : 0)) throw new Error(`agentctl ${args.join(" ")}: exit ${code}\n${err}`);
  return out.trim();
}

/** The agent's own processes. agentctl's holder has the same arguments. */
export const agentsOf = (world: TestHome, driver: RealAgent): SeenProcess[] =>
  world.processes().filter((seen) => seen.argv[3] !== "agentctl-holder" && driver.isAgent(seen));

/** The agent's own process: this one, or the one that it started. */
export const agentBelow = (world: TestHome, driver: RealAgent, root: number): Promise<number> =>
  waitFor(
    `the process of ${driver.name}`,
    () => {
      const seen = world.processes();
      return seen.find((each) => driver.isAgent(each) && isBelow(each, root, seen))?.pid;
    },
    { explain: () => told(world) },
  );

function isBelow(one: SeenProcess, root: number, all: readonly SeenProcess[]): boolean {
  if (one.pid === root) return true;
  const parent = all.find(({ pid }) => pid === one.parent);
  return parent !== undefined && isBelow(parent, root, all);
}

const told = (world: TestHome): string =>
  world
    .processes()
    .map(({ pid, parent, name, argv }) => `${pid} (${parent}) ${name}: ${argv.join(" ").slice(0, 200)}`)
    .join("\n");

export const isAlive = (world: TestHome, pid: number): boolean => world.processes().some((seen) => seen.pid === pid);

export const stateOf = (world: TestHome, pid: number): string | null =>
  world.processes().find((seen) => seen.pid === pid)?.state ?? null;

export interface Life {
  agent: Headless;
  /** The agent's own process; `agent.pid` may be its wrapper's. */
  pid: number;
  /** null: nothing is recorded yet. */
  id: string | null;
  /** Lets the model answer, or the tool end. */
  goOn(): void;
}

export interface Start extends Begin {
  cwd?: string;
  /** Several in one home need several names. */
  name?: string;
}

/** A turn in which the model answers until it may go on. */
export async function inTurn(world: TestHome, driver: RealAgent, start: Start = {}): Promise<Life> {
  const name = start.name ?? "answer";
  const before = driver.sessions(world);
  const agent = world.start(
    driver.headless(world, `hello ;; HOLD=${name} ;; SAY=done with ${name}`, start),
    placeOf(start),
  );
  await asked(world, `HOLD=${name}`, agent);
  const pid = await agentBelow(world, driver, agent.pid);
  const isRecorded = start.resume !== undefined || driver.shows.firstTurn !== "nothing";
  const shows = start.resume === undefined ? driver.shows.firstTurn : driver.shows.laterTurn;
  const id = isRecorded ? await recorded(world, driver, before, start, shows === "working" ? "prompted" : null) : null;
  return { agent, pid, id, goOn: () => world.model.release(name) };
}

/** A turn inside of a tool that runs until it may end. */
export async function inTool(world: TestHome, driver: RealAgent, start: Start = {}): Promise<Life & { id: string }> {
  const name = start.name ?? "tool";
  const before = driver.sessions(world);
  const agent = world.start(driver.headless(world, toolPrompt(world, name), start), placeOf(start));
  await toolBegun(world, name, () => said(world, agent));
  const pid = await agentBelow(world, driver, agent.pid);
  const id = await recorded(world, driver, before, start, toolSign(driver));
  return { agent, pid, id, goOn: () => void Bun.write(join(world.dir, `${name}-may-end`), "") };
}

/** What the record shows while a tool runs; null: nothing to wait for. */
export const toolSign = ({ shows }: RealAgent): Sign => (shows.toolSign === undefined ? "tool" : shows.toolSign);

export const toolPrompt = (world: TestHome, name: string): string => {
  const file = join(world.dir, name);
  return `look ;; FIRST=I look. ;; BASH=touch ${file}; until [ -e ${file}-may-end ]; do sleep 0.1; done; echo seen ;; SAY=done with ${name}`;
};

const placeOf = ({ cwd }: Start): { cwd?: string } => (cwd === undefined ? {} : { cwd });

export const asked = (world: TestHome, text: string, agent?: Headless): Promise<true> =>
  waitFor(`the request with ${text}`, () => world.model.requests.some((each) => each.text.includes(text)), {
    explain: () => (agent === undefined ? told(world) : said(world, agent)),
  });

/** Explains a missing sign: the agent's output, the requests to the model, and the live processes. */
const said = (world: TestHome, agent: Headless): string =>
  [
    agent.stdout(),
    agent.stderr(),
    ...world.model.requests.map(({ api, answer, text }) => `${api} (${answer}): ${text.slice(-200)}`),
    ...world.model.others,
    told(world),
  ].join("\n");

type Sign = ReturnType<RealAgent["sign"]>;

/** The session that this start made, or goes on with, once its record shows this much. */
export async function recorded(
  world: TestHome,
  driver: RealAgent,
  before: readonly string[],
  { session, resume }: Begin,
  sign: Sign,
): Promise<string> {
  const given = resume ?? session;
  const find = () => given ?? driver.sessions(world).find((each) => !before.includes(each));
  return await waitFor(`the record of ${driver.name} to show ${sign}`, () => {
    const id = find();
    return id !== undefined && driver.sessions(world).includes(id) && (sign === null || driver.sign(world, id) === sign)
      ? id
      : null;
  });
}

export async function openInterface(
  world: TestHome,
  driver: RealAgent,
  command: string[],
): Promise<{ tui: Tui; pid: number }> {
  const tui = world.open(command);
  if (driver.interface !== null) await tui.shows(driver.interface.ready);
  return { tui, pid: await agentBelow(world, driver, tui.pid) };
}

export async function say(driver: RealAgent, tui: Tui, text: string): Promise<void> {
  if (driver.interface?.say !== undefined) return await driver.interface.say(tui, text);
  tui.type(text);
  await tui.shows(new RegExp(text.slice(0, 12).replaceAll(/[^a-z ]/gi, ".")));
  tui.press("Enter");
}

/** Another directory of the same home. */
export function otherPlace(world: TestHome, name: string): string {
  const path = join(world.home, name);
  mkdirSync(path, { recursive: true });
  Bun.spawnSync(["git", "init", "-q", "-b", "main"], { cwd: path, env: world.env });
  return path;
}

export interface Row {
  /** null: a live process without a known session. */
  id: string | null;
  state: "running" | "stopped" | "unknown";
  activity?: string;
  outcome?: After | readonly After[];
  pid?: number;
  link?: Link;
  cwd?: string;
}

/** Asked once, not until it fits: exactly these rows of this agent, and `status` says the same. */
export async function expectRows(world: TestHome, driver: RealAgent, expected: readonly Row[]): Promise<Listed[]> {
  const answer = await list(world);
  const rows = answer.sessions.filter(({ agent }) => agent === driver.agent);
  expect({ complete: answer.complete, problems: answer.problems }).toEqual({ complete: true, problems: [] });
  const nameOf = (id: string | null, pid: number | undefined): string => id ?? `pid:${pid}`;
  const names = rows.map(({ id, process }) => nameOf(id, process?.pid)).sort();
  const wantedNames = expected.map(({ id, pid }) => nameOf(id, pid)).sort();
  if (names.join() !== wantedNames.join()) console.error(told(world));
  expect(names).toEqual(wantedNames);
  const live = new Map(world.processes().map((seen) => [seen.pid, seen]));
  for (const { id, pid, ...wanted } of expected) {
    const name = nameOf(id, pid);
    const row = rows.find((each) => nameOf(each.id, each.process?.pid) === name);
    if (row === undefined) continue;
    const { outcome = null, activity, ...rest } = wanted;
    const seen = { ...row, pid: row.process?.pid ?? null, outcome: null };
    expect(seen).toMatchObject({ ...rest, pid: pid ?? null, ...(activity === undefined ? {} : { activity }) });
    if (wanted.state === "stopped")
      expect([name, oneOf(outcome)]).toEqual([name, expect.arrayContaining([row.outcome])]);
    if (row.process !== null)
      expect([name, row.process.start]).toEqual([name, live.get(row.process.pid)?.start ?? "not a live process"]);
    const status = await ask<Listed>(world, "status", name);
    expect([status.state, status.activity, status.outcome]).toEqual([row.state, row.activity, row.outcome]);
  }
  return rows;
}

/** The row of a life that was begun by hand. */
export const liveRow = (
  world: TestHome,
  driver: RealAgent,
  life: Pick<Life, "id" | "pid">,
  activity: string,
  link?: Link,
): Row => ({
  id: life.id,
  state: "running",
  activity: life.id === null ? "unclear" : activity,
  pid: life.pid,
  cwd: world.cwd,
  ...(life.id === null ? {} : { link: link ?? driver.links.plain }),
});

/** The recorded sessions after all processes have exited. */
export const stoppedRows = (world: TestHome, driver: RealAgent, outcome: After | readonly After[]): Row[] => {
  const ids = driver.sessions(world);
  if (!oneOf(outcome).includes("nothing")) expect(ids.length).toBeGreaterThan(0);
  return ids.map((id) => ({ id, state: "stopped", outcome }));
};

/** The agent is gone, and so is its wrapper. */
export async function ended(
  world: TestHome,
  { agent, pid }: Pick<Life, "pid"> & { agent: Pick<Headless, "exited"> },
): Promise<void> {
  await waitFor(`the end of ${pid}`, () => !isAlive(world, pid), { explain: () => told(world) });
  await agent.exited;
}
