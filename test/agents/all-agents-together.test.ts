// All real agents in one home: of each agent, one session is launched by agentctl and one is started by hand. Then they are killed
// one after the other. After each step the whole list must be right. ONLY=<agents> selects agents.
import { expect, test } from "bun:test";
import { type Listed, list } from "./check-answers.ts";
import { chosen, type Effect, oneOf, type RealAgent } from "./driver.ts";
import { drivers } from "./drivers/index.ts";
import { agentBelow, agentsOf, isAlive, otherPlace, recorded } from "./lifecycle-steps.ts";
import { acted } from "./run-commands.ts";
import { createTestHome, type TestHome, waitFor } from "./test-home.ts";

interface Member {
  driver: RealAgent;
  id: string;
  pid: number;
  cwd: string;
  link: string;
  isAlive: boolean;
}

/** Of several versions the last: one command, one agent. */
const everybody = [...new Map(chosen(drivers, "all").map((driver) => [driver.agent, driver])).values()];

test("the list is right with all agents running, and after each one is killed", async () => {
  await using world = await createTestHome({ agents: everybody });
  const members: Member[] = [];
  for (const driver of everybody) {
    members.push(await byHand(world, driver), await launched(world, driver));
    await expectAll(world, members);
  }
  for (const member of members) {
    process.kill(member.pid, "SIGKILL");
    await waitFor(`the end of ${member.pid}`, () => !isAlive(world, member.pid));
    member.isAlive = false;
    await expectAll(world, members);
  }
}, 1_200_000);

/** After a tool the model answers, and does not end: Codex lets no tool hold it up for longer than ten seconds. */
const prompt = (name: string): string => `look ;; BASH=echo seen ;; HOLD=${name}`;

const afterTool = (world: TestHome, name: string): Promise<true> =>
  waitFor(`the result of ${name}'s tool`, () =>
    world.model.requests.some(({ text, toolResults }) => text.includes(`HOLD=${name}`) && toolResults.length === 1),
  );

async function byHand(world: TestHome, driver: RealAgent): Promise<Member> {
  const name = `${driver.agent}-by-hand`;
  const cwd = otherPlace(world, name);
  const before = driver.sessions(world);
  const agent = world.start(driver.headless(world, prompt(name)), { cwd });
  await afterTool(world, name);
  const pid = await agentBelow(world, driver, agent.pid);
  const id = await recorded(world, driver, before, {}, null);
  return { driver, id, pid, cwd, link: driver.links.plain, isAlive: true };
}

async function launched(world: TestHome, driver: RealAgent): Promise<Member> {
  const name = `${driver.agent}-launched`;
  const cwd = otherPlace(world, name);
  const before = agentsOf(world, driver).map(({ pid }) => pid);
  const id = await acted(world, ["launch", driver.agent, prompt(name), "--permission", "bypass", "--cwd", cwd]);
  await afterTool(world, name);
  await recorded(world, driver, [], { session: id }, null);
  const [mine] = agentsOf(world, driver).filter(({ pid }) => !before.includes(pid));
  if (mine === undefined) throw new Error(`no process of the launched ${driver.name}`);
  return { driver, id, pid: mine.pid, cwd, link: driver.links.launched, isAlive: true };
}

async function expectAll(world: TestHome, members: readonly Member[]): Promise<void> {
  const { complete, problems, sessions } = await list(world);
  expect({ complete, problems }).toEqual({ complete: true, problems: [] });
  expect(sessions.map(viewOf).sort(byId)).toEqual(members.map((member) => expected(member, sessions)).sort(byId));
}

type View = Record<"id" | "agent" | "state" | "activity" | "pid" | "link" | "cwd" | "outcome", unknown>;

const viewOf = ({ id, agent, state, activity, outcome, process, link, cwd }: Listed): View => ({
  ...{ id, agent, state, activity, outcome, pid: process?.pid ?? null, link, cwd },
});

function expected({ driver, id, pid, cwd, link, isAlive: alive }: Member, rows: readonly Listed[]): View {
  const common = { id, agent: driver.agent, cwd };
  const seen = rows.find((row) => row.id === id);
  const either = (value: unknown, allowed: readonly unknown[]): unknown => (allowed.includes(value) ? value : allowed);
  const activity = either(seen?.activity, [driver.shows.laterTurn, driver.shows.tool]);
  if (alive) return { ...common, state: "running", activity, outcome: null, pid, link };
  const outcome = either(seen?.outcome, outcomes(driver));
  return { ...common, state: "stopped", activity: null, outcome, pid: null, link: null };
}

/** There was a tool in the turn, and there is none now. */
const outcomes = ({ ends: { SIGKILL } }: RealAgent): Effect[] =>
  [SIGKILL.turn, SIGKILL.tool].flatMap((effect) => [...oneOf(effect)]).filter((each) => each !== "nothing");

const byId = (a: View, b: View): number => (String(a.id) < String(b.id) ? -1 : 1);
