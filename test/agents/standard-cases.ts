// The schedules that fixtures of every driven agent are captured from.

import type { Capture, CaptureCase, CapturedSession, Expected } from "./case.ts";
import { rowOf } from "./check-answers.ts";
import { type Effect, oneOf, type RealAgent, type Signal } from "./driver.ts";
import {
  asked,
  ended,
  inTool,
  inTurn,
  type Life,
  openInterface,
  recorded,
  say,
  toolPrompt,
  toolSign,
} from "./lifecycle-steps.ts";
import { acted, endlessTool, toolBegun } from "./run-commands.ts";
import { type Ending, type TestHome, waitFor } from "./test-home.ts";

export const standardCases = (driver: RealAgent): CaptureCase[] =>
  [
    ...headlessCases(driver),
    ...endings(driver),
    ...launchedCases(driver),
    ...interfaceCases(driver),
    ...(driver.cases?.() ?? []),
  ].filter(({ name }) => driver.cannot?.[name] === undefined);

type Shown = "working" | "unclear" | "nothing";

/** What is recorded of the session, apart from its turn. */
function facts({ usage }: RealAgent, prompt: string | null, answers: number): Pick<Expected, "facts"> {
  if (usage === undefined || answers === 0) return { facts: { prompt } };
  const { model, ...tokens } = usage;
  const { input, output, cacheRead, cacheWrite } = tokens;
  const times = (count: number): number => count * answers;
  const sum = {
    input: times(input),
    output: times(output),
    cacheRead: times(cacheRead),
    cacheWrite: times(cacheWrite),
  };
  return { facts: { prompt, model, tokens: sum } };
}

/** At work, in truth; its files may not show it. */
const running = (driver: RealAgent, shown: Shown, prompt: string, answers: number): Expected => ({
  ...{ state: "running", activity: "working", outcome: null },
  ...(shown === "working" ? {} : { notInTheFiles: true }),
  ...facts(driver, shown === "nothing" ? null : prompt, answers),
});

const stopped = (driver: RealAgent, effect: Effect, prompt: string, answers: number): Expected => {
  const outcomes = oneOf(effect);
  const [outcome = null] = outcomes.filter((each) => each !== "survives" && each !== "nothing");
  const isSure = outcomes.length === 1 && outcome !== null;
  return {
    ...{ state: "stopped", activity: null, outcome: outcome ?? "cut-off" },
    ...(isSure ? {} : { notInTheFiles: true }),
    ...facts(driver, prompt, answers),
  };
};

const done = (driver: RealAgent, prompt: string, answers: number): Expected => ({
  ...stopped(driver, "completed", prompt, answers),
  ...(driver.shows.endUnsaid ? { notInTheFiles: true } : {}),
});

const inWords = ({ code, signal }: Ending): string => signal ?? `exit ${code}`;

const turnPrompt = "hello ;; HOLD=answer ;; SAY=done with answer";

function headlessCases(driver: RealAgent): CaptureCase[] {
  const { shows, ends } = driver;
  const live = ({ agent, id, pid }: Life, expected: Expected): Capture => ({
    ...{ command: agent.command, moment: "live", sessions: [{ id: id ?? "", pid, expected }] },
  });
  const dead = async (command: string[], exited: Promise<Ending>, sessions: CapturedSession[]): Promise<Capture> => ({
    ...{ command, moment: "dead", ending: inWords(await exited), sessions },
  });
  const complete = async (world: TestHome, prompt: string): Promise<string> => {
    await world.start(driver.headless(world, prompt)).exited;
    return driver.sessions(world)[0] ?? "";
  };
  return [
    {
      name: "headless-completed",
      async run(world) {
        const prompt = "look ;; FIRST=I look. ;; BASH=echo seen ;; SAY=it is there";
        const agent = world.start(driver.headless(world, prompt));
        await agent.exited;
        const [id = ""] = driver.sessions(world);
        const expected = { ...done(driver, prompt, 2), result: "it is there" };
        return await dead(agent.command, agent.exited, [{ id, pid: null, expected }]);
      },
    },
    {
      name: "headless-working",
      async run(world) {
        return live(await inTurn(world, driver), running(driver, shows.firstTurn, turnPrompt, 0));
      },
    },
    {
      name: "tool-pending",
      async run(world) {
        const life = await inTool(world, driver);
        return live(life, running(driver, shows.tool, toolPrompt(world, "tool"), 1));
      },
    },
    ...(oneOf(shows.error).includes("nothing")
      ? []
      : [
          {
            name: "error",
            async run(world: TestHome) {
              const prompt = "fail ;; ERR=400";
              const agent = world.start(driver.headless(world, prompt));
              await agent.exited;
              const [id = ""] = driver.sessions(world);
              const expected = stopped(driver, shows.error, prompt, 0);
              return await dead(agent.command, agent.exited, [{ id, pid: null, expected }]);
            },
          },
        ]),
    {
      name: "resumed",
      async run(world) {
        const prompt = "hello ;; SAY=one";
        const id = await complete(world, prompt);
        const again = world.start(driver.headless(world, "more ;; SAY=two", { resume: id }));
        await again.exited;
        const expected = { ...done(driver, prompt, 2), result: "two" };
        return await dead(again.command, again.exited, [{ id, pid: null, expected }]);
      },
    },
    {
      name: "resumed-working",
      async run(world) {
        const prompt = "hello ;; SAY=one";
        const life = await inTurn(world, driver, { resume: await complete(world, prompt) });
        return live(life, running(driver, shows.laterTurn, prompt, 1));
      },
    },
    {
      name: "killed-then-resumed",
      async run(world) {
        const first = await inTool(world, driver);
        process.kill(first.pid, "SIGKILL");
        await ended(world, first);
        const life = await inTurn(world, driver, { resume: first.id });
        return live(
          life,
          running(driver, shows.laterTurn, toolPrompt(world, "tool"), ends.SIGKILL.tool === null ? 0 : 1),
        );
      },
    },
  ];
}

/** One for each signal that ends it and leaves a record. */
function endings(driver: RealAgent): CaptureCase[] {
  const leaves = (effect: Effect): boolean =>
    effect !== "survives" && oneOf(effect).every((each) => each !== "nothing");
  return (["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"] satisfies Signal[]).flatMap((signal) =>
    (["turn", "tool"] as const)
      .filter((moment) => leaves(driver.ends[signal][moment]))
      .map((moment) => ({
        name: moment === "turn" ? signal.toLowerCase() : `${signal.toLowerCase()}-in-tool`,
        async run(world: TestHome): Promise<Capture> {
          const life = await (moment === "turn" ? inTurn(world, driver) : inTool(world, driver));
          process.kill(life.pid, signal);
          await ended(world, life);
          const prompt = moment === "turn" ? turnPrompt : toolPrompt(world, "tool");
          const expected = stopped(driver, driver.ends[signal][moment], prompt, moment === "turn" ? 0 : 1);
          const [id = ""] = driver.sessions(world);
          const ending = inWords(await life.agent.exited);
          return { command: life.agent.command, moment: "dead", ending, sessions: [{ id, pid: null, expected }] };
        },
      })),
  );
}

/** Started by agentctl: the tag in the environment, and what it prepares. */
const launchedCases = (driver: RealAgent): CaptureCase[] => [
  {
    name: "launched-in-tool",
    async run(world) {
      const prompt = `look ;; FIRST=I look. ;; ${endlessTool(world, "tool")}`;
      const command = ["launch", driver.agent, prompt, "--permission", "bypass"];
      const id = await acted(world, command);
      await toolBegun(world, "tool");
      await recorded(world, driver, [], { session: id }, toolSign(driver));
      const pid = (await rowOf(world, id)).process?.pid ?? null;
      const expected = running(driver, driver.shows.tool, prompt, 1);
      return { command: ["agentctl", ...command], moment: "live", sessions: [{ id, pid, expected }] };
    },
  },
];

function interfaceCases(driver: RealAgent): CaptureCase[] {
  const { shows, interface: screen } = driver;
  if (screen === null) return [];
  const turn = screen.turn ?? shows.laterTurn;
  const prompt = "hello ;; SAY=the answer";
  const idle: Expected = {
    ...{ state: "running", activity: "idle", outcome: null, result: "the answer" },
    ...(shows.endUnsaid ? { notInTheFiles: true } : {}),
    ...facts(driver, prompt, 1),
  };
  const opened = async (
    world: TestHome,
  ): Promise<{ id: string; pid: number } & Awaited<ReturnType<typeof openInterface>>> => {
    const at = await openInterface(world, driver, screen.command(world));
    await say(driver, at.tui, prompt);
    await asked(world, "hello ;;");
    const id = await recorded(world, driver, [], {}, "ended");
    return { ...at, id };
  };
  const busy = async (world: TestHome, id: string): Promise<void> => {
    await asked(world, "HOLD=again");
    await waitFor("its prompt", () => driver.sign(world, id) === "prompted");
  };
  const { escape: breaking, closed, approval } = screen;
  return [
    {
      name: "tui-idle",
      async run(world) {
        const { tui, pid, id } = await opened(world);
        return { command: tui.command, moment: "live", sessions: [{ id, pid, expected: idle }] };
      },
    },
    {
      name: "tui-working",
      async run(world) {
        const { tui, pid, id } = await opened(world);
        await say(driver, tui, "again ;; HOLD=again");
        await busy(world, id);
        const expected = running(driver, turn, prompt, 1);
        return { command: tui.command, moment: "live", sessions: [{ id, pid, expected }] };
      },
    },
    ...(breaking === null || breaking.shows !== "idle"
      ? []
      : [
          {
            name: "tui-escape",
            async run(world: TestHome): Promise<Capture> {
              const { tui, pid, id } = await opened(world);
              await say(driver, tui, "again ;; HOLD=again");
              await busy(world, id);
              if (breaking.after !== undefined) await tui.shows(breaking.after);
              tui.press(...breaking.keys);
              await waitFor("its end", () => driver.sign(world, id) === "ended");
              const { result, ...expected } = idle;
              return { command: tui.command, moment: "live", sessions: [{ id, pid, expected }] };
            },
          },
        ]),
    ...(closed === "survives" || oneOf(closed).includes("nothing")
      ? []
      : [
          {
            name: "tui-closed",
            async run(world: TestHome): Promise<Capture> {
              const { tui, pid, id } = await opened(world);
              await say(driver, tui, "again ;; HOLD=again");
              await busy(world, id);
              tui.close();
              await ended(world, { agent: tui, pid });
              const ending = inWords(await tui.exited);
              const expected = stopped(driver, closed, prompt, 1);
              return { command: tui.command, moment: "dead", ending, sessions: [{ id, pid: null, expected }] };
            },
          },
        ]),
    ...(approval === null
      ? []
      : [
          {
            name: "tui-approval",
            async run(world: TestHome): Promise<Capture> {
              approval.setUp?.(world);
              const { tui, pid } = await openInterface(
                world,
                driver,
                approval.command?.(world) ?? screen.command(world),
              );
              await say(driver, tui, approval.prompt(world));
              await tui.shows(approval.asks);
              const id = await recorded(world, driver, [], {}, approval.sign ?? null);
              const expected: Expected = {
                ...{ state: "running", activity: "waiting", outcome: null },
                ...(approval.activity === "waiting" ? {} : { notInTheFiles: true }),
                ...facts(driver, approval.prompt(world), 1),
              };
              return { command: tui.command, moment: "live", sessions: [{ id, pid, expected }] };
            },
          },
        ]),
  ];
}
