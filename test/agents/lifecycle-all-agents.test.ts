// The lifecycle of every real agent: started by hand, working, in a tool, suspended, finished, killed, resumed, beside a second one.
// After each step the built binary runs once, and its answer must be right at once. ONLY=<agent> selects one.
import { describe, expect } from "bun:test";
import { expectList, list, rowOf } from "./check-answers.ts";
import { chosen, completed, type Effect, idle, oneOf, type RealAgent, type Signal } from "./driver.ts";
import { drivers } from "./drivers/index.ts";
import {
  asked,
  casesOf,
  ended,
  expectRows,
  inTool,
  inTurn,
  isAlive,
  isFull,
  type Life,
  liveRow,
  openInterface,
  otherPlace,
  over,
  recorded,
  say,
  stateOf,
  stoppedRows,
} from "./lifecycle-steps.ts";
import { type TestHome, waitFor } from "./test-home.ts";

for (const driver of chosen(drivers))
  describe(driver.name, () => {
    const here = casesOf(driver);
    const { shows, ends, links } = driver;

    here("working, suspended, completed", async (world) => {
      const life = await inTurn(world, driver);
      await expectRows(world, driver, [liveRow(world, driver, life, shows.firstTurn)]);
      process.kill(life.pid, "SIGSTOP");
      await waitFor("it to stop", () => stateOf(world, life.pid) === "T");
      const [row] = await expectRows(world, driver, [liveRow(world, driver, life, shows.firstTurn)]);
      expect(row?.reasonCode).toBe("suspended");
      process.kill(life.pid, "SIGCONT");
      life.goOn();
      expect(await life.agent.exited).toEqual({ code: 0, signal: null });
      await expectRows(world, driver, stoppedRows(world, driver, completed(driver)));
      const [id = ""] = driver.sessions(world);
      expect(await over(world, driver, ["result", id])).toEndWith("done with answer");
      expect(await rowOf(world, id)).toMatchObject({ prompt: expect.stringContaining("HOLD=answer"), cwd: world.cwd });
    });

    here("a tool runs, and ends", async (world) => {
      const life = await inTool(world, driver);
      await expectRows(world, driver, [liveRow(world, driver, life, shows.tool)]);
      life.goOn();
      await life.agent.exited;
      await expectRows(world, driver, stoppedRows(world, driver, completed(driver)));
      expect(await over(world, driver, ["result", life.id])).toBe("done with tool");
    });

    here("the model fails", async (world) => {
      const agent = world.start(driver.headless(world, "hello ;; ERR=400"));
      await agent.exited;
      await expectRows(world, driver, stoppedRows(world, driver, shows.error));
    });

    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"] as const) {
      here(`${signal} while the model answers`, async (world) => {
        await signalled(world, driver, await inTurn(world, driver), signal, ends[signal].turn, ends.SIGKILL.turn);
      });
      here(`${signal} inside a tool`, async (world) => {
        await signalled(world, driver, await inTool(world, driver), signal, ends[signal].tool, ends.SIGKILL.tool);
      });
    }

    if (driver.wrapper)
      here("when its wrapper is killed, the session is still running", async (world) => {
        const life = await inTool(world, driver);
        expect(life.agent.pid).not.toBe(life.pid);
        await expectRows(world, driver, [liveRow(world, driver, life, shows.tool)]);
        life.agent.signal("SIGKILL");
        await life.agent.exited;
        await expectRows(world, driver, [liveRow(world, driver, life, shows.tool)]);
        life.goOn();
        await ended(world, life);
        await expectRows(world, driver, stoppedRows(world, driver, completed(driver)));
      });

    here("resumed by the agent's own command, the session keeps its id", async (world) => {
      await world.start(driver.headless(world, "hello ;; SAY=one")).exited;
      const [id = ""] = driver.sessions(world);
      const life = await inTurn(world, driver, { resume: id });
      await expectRows(world, driver, [liveRow(world, driver, life, shows.laterTurn, links.resumed)]);
      life.goOn();
      await ended(world, life);
      await expectRows(world, driver, [{ id, state: "stopped", outcome: completed(driver) }]);
      expect(await over(world, driver, ["result", id])).toEndWith("done with answer");
    });

    here("killed in a tool, then resumed: no call of the dead turn is pending", async (world) => {
      const { id, ...first } = await inTool(world, driver);
      process.kill(first.pid, "SIGKILL");
      await ended(world, first);
      await expectRows(world, driver, [{ id, state: "stopped", outcome: effects(ends.SIGKILL.tool) }]);
      const life = await inTurn(world, driver, { resume: id });
      await expectRows(world, driver, [liveRow(world, driver, life, shows.laterTurn, links.resumed)]);
      life.goOn();
      await ended(world, life);
      await expectRows(world, driver, [{ id, state: "stopped", outcome: completed(driver) }]);
    });

    here("two sessions in one directory, one elsewhere", async (world) => {
      const place = otherPlace(world, "elsewhere");
      const one = await inTool(world, driver, { name: "one" });
      const two = await inTool(world, driver, { name: "two" });
      const three = await inTool(world, driver, { name: "three", cwd: place });
      await expectTwins(world, driver, [one, two], []);
      expect(await rowOf(world, three.id)).toMatchObject({
        ...{ state: "running", activity: shows.tool, process: { pid: three.pid }, cwd: place, link: links.plain },
      });
      process.kill(one.pid, "SIGKILL");
      await ended(world, one);
      await expectTwins(world, driver, [two], [one]);
      for (const life of [two, three]) {
        life.goOn();
        await ended(world, life);
      }
      await expectRows(world, driver, [
        { id: one.id, state: "stopped", outcome: effects(ends.SIGKILL.tool) },
        { id: two.id, state: "stopped", outcome: completed(driver) },
        { id: three.id, state: "stopped", outcome: completed(driver) },
      ]);
    });

    const { freshId } = driver;
    if (links.withId !== null && freshId !== undefined)
      here("two sessions in one directory, each with an id chosen by the caller", async (world) => {
        const one = await inTool(world, driver, { name: "one", session: freshId(1) });
        const two = await inTool(world, driver, { name: "two", session: freshId(2) });
        const link = links.withId ?? links.plain;
        const both = [one, two].map((life) => liveRow(world, driver, life, shows.tool, link));
        await expectRows(world, driver, both);
        process.kill(one.pid, "SIGKILL");
        await ended(world, one);
        await expectRows(world, driver, [
          { id: one.id, state: "stopped", outcome: effects(ends.SIGKILL.tool) },
          liveRow(world, driver, two, shows.tool, link),
        ]);
      });

    // What fixtures are captured from, tried with the living agent.
    for (const { name, run } of isFull ? (driver.cases?.() ?? []) : [])
      here(`at the moment of ${name}`, async (world) => {
        const { sessions, nameless } = await run(world);
        await expectList(world, driver.agent, sessions, nameless);
      });

    const screen = driver.interface;
    if (screen !== null) {
      const turn = screen.turn ?? shows.laterTurn;
      const link = screen.link ?? links.plain;
      const resumed = screen.resumed ?? links.resumed;
      here("in a terminal: fresh, idle, working, escaped, terminal closed", async (world) => {
        const { tui, pid } = await openInterface(world, driver, screen.command(world));
        if (screen.freshId) await waitFor("its id", async () => (await list(world)).sessions[0]?.id);
        const [fresh, ...others] = (await list(world)).sessions;
        expect(others).toEqual([]);
        expect(fresh).toMatchObject({ state: "running", process: { pid }, cwd: world.cwd });
        expect(["idle", "unclear"]).toContain(fresh?.activity ?? "");
        if (!screen.freshId) expect(fresh?.id).toBeNull();

        await say(driver, tui, "hello ;; SAY=the answer");
        await tui.shows(/(?<!SAY=)the answer/);
        const id = await recorded(world, driver, [], {}, "ended");
        await expectRows(world, driver, [liveRow(world, driver, { id, pid }, idle(driver), link)]);

        await say(driver, tui, "again ;; HOLD=again");
        await asked(world, "HOLD=again");
        await waitFor("its prompt", () => driver.sign(world, id) === "prompted");
        await expectRows(world, driver, [liveRow(world, driver, { id, pid }, turn, link)]);

        if (screen.escape !== null) {
          if (screen.escape.after !== undefined) await tui.shows(screen.escape.after);
          tui.press(...screen.escape.keys);
          if (screen.escape.shows === "idle") await waitFor("its end", () => driver.sign(world, id) === "ended");
          await expectRows(world, driver, [liveRow(world, driver, { id, pid }, screen.escape.shows, link)]);
          await say(driver, tui, "more ;; HOLD=more");
          await asked(world, "HOLD=more");
          await waitFor("its prompt", () => driver.sign(world, id) === "prompted");
        }
        tui.close();
        if (screen.closed === "survives") {
          await Bun.sleep(patienceMs);
          expect(await rowOf(world, id)).toMatchObject({ state: "running", process: { pid } });
          return;
        }
        await ended(world, { agent: tui, pid });
        await expectRows(world, driver, [{ id, state: "stopped", outcome: effects(screen.closed) }]);
      });

      const { approval } = screen;
      if (approval !== null)
        here("in a terminal it asks before a tool call", async (world) => {
          approval.setUp?.(world);
          const { tui, pid } = await openInterface(world, driver, approval.command?.(world) ?? screen.command(world));
          await say(driver, tui, approval.prompt(world));
          await tui.shows(approval.asks);
          const id = await recorded(world, driver, [], {}, approval.sign ?? null);
          await waitFor(`${approval.activity}`, async () => (await rowOf(world, id)).activity === approval.activity, {
            explain: () => tui.screen(),
          });
          const [row] = await expectRows(world, driver, [liveRow(world, driver, { id, pid }, approval.activity, link)]);
          expect(row?.waiting === null).toBe(approval.activity !== "waiting");
        });

      if (driver.sendRefused !== undefined)
        here("killed in a tool, then opened in a terminal: no call of the dead turn is pending", async (world) => {
          const { id, ...first } = await inTool(world, driver);
          process.kill(first.pid, "SIGKILL");
          await ended(world, first);
          await expectRows(world, driver, [{ id, state: "stopped", outcome: effects(ends.SIGKILL.tool) }]);
          const { tui, pid } = await openInterface(world, driver, screen.command(world, { resume: id }));
          const owned = { state: "running", process: { pid }, link: resumed };
          expect(await rowOf(world, id)).toMatchObject({ ...owned, activity: expect.stringMatching(/idle|unclear/) });
          await say(driver, tui, "more ;; HOLD=more ;; SAY=the second answer");
          await asked(world, "HOLD=more");
          // A prompt may be written with its answer: until then the record shows the dead turn.
          expect(await rowOf(world, id)).toMatchObject({
            ...owned,
            activity: expect.stringMatching(/working|unclear/),
          });
          world.model.release("more");
          await tui.shows(/(?<!SAY=)the second answer/);
          await waitFor("its end", () => driver.sign(world, id) === "ended");
          await expectRows(world, driver, [liveRow(world, driver, { id, pid }, idle(driver), resumed)]);
        });

      here("in a terminal with an old session", async (world) => {
        await world.start(driver.headless(world, "hello ;; SAY=one")).exited;
        const [id = ""] = driver.sessions(world);
        const { tui, pid } = await openInterface(world, driver, screen.command(world, { resume: id }));
        // Nothing of it is written before the first prompt: without an id in sight, it may not be known until then.
        const { sessions } = await list(world);
        expect(sessions.filter(({ state }) => state === "running").map(({ process }) => process?.pid)).toEqual(
          sessions.some(({ state }) => state === "unknown") ? expect.anything() : [pid],
        );
        await say(driver, tui, "more ;; HOLD=more ;; SAY=the second answer");
        await asked(world, "HOLD=more");
        await waitFor("its prompt", () => driver.sign(world, id) === "prompted");
        await expectRows(world, driver, [liveRow(world, driver, { id, pid }, turn, resumed)]);
        world.model.release("more");
        await tui.shows(/(?<!SAY=)the second answer/);
        await waitFor("its end", () => driver.sign(world, id) === "ended");
        await expectRows(world, driver, [liveRow(world, driver, { id, pid }, idle(driver), resumed)]);
        process.kill(pid, "SIGKILL");
        await ended(world, { agent: tui, pid });
        await expectRows(world, driver, [{ id, state: "stopped", outcome: completed(driver) }]);
      });
    }
  });

/** How long something that ignores a signal is watched. */
const patienceMs = 2_000;

const effects = (effect: Effect) => oneOf(effect).filter((each) => each !== "survives");

async function signalled(
  world: TestHome,
  driver: RealAgent,
  life: Life,
  signal: Signal,
  effect: Effect,
  killed: Effect,
): Promise<void> {
  process.kill(life.pid, signal);
  if (effect === "survives") {
    await Bun.sleep(patienceMs);
    expect(isAlive(world, life.pid)).toBe(true);
    const running = (await list(world)).sessions.filter(({ state }) => state === "running");
    expect(running.map(({ process }) => process?.pid)).toEqual([life.pid]);
    process.kill(life.pid, "SIGKILL");
  }
  await ended(world, life);
  // A tool that outlives its agent is no session.
  await expectRows(world, driver, stoppedRows(world, driver, effects(effect === "survives" ? killed : effect)));
}

/** Right, or unknown: never another one's, never stopped while it lives. */
async function expectTwins(
  world: TestHome,
  driver: RealAgent,
  live: readonly (Life & { id: string })[],
  dead: readonly { id: string }[],
): Promise<void> {
  const { sessions } = await list(world);
  const isExact = driver.links.plain !== "cwd";
  for (const { id, pid } of live) {
    const row = sessions.find((each) => each.id === id);
    expect([id, row?.state]).toEqual([id, isExact ? "running" : expect.stringMatching(/^(running|unknown)$/)]);
    if (row?.state === "running") expect([id, row.process?.pid]).toEqual([id, pid]);
    else expect(sessions.filter(({ process }) => process?.pid === pid).map((each) => each.id)).toEqual([null]);
  }
  for (const { id } of dead) {
    const row = sessions.find((each) => each.id === id);
    expect([id, row?.state]).toEqual([id, isExact ? "stopped" : expect.stringMatching(/^(stopped|unknown)$/)]);
  }
}
