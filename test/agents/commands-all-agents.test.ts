// launch, run, send, interrupt, stop, wait and resume with every real agent. ONLY=<agent> selects one.
import { describe, expect } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Listed, list, rowOf } from "./check-answers.ts";
import { type After, chosen, completed, type RealAgent } from "./driver.ts";
import { drivers } from "./drivers/index.ts";
import {
  agentsOf,
  asked,
  casesOf,
  ended,
  inTool,
  inTurn,
  liveRow,
  openInterface,
  over,
  recorded,
  toolSign,
} from "./lifecycle-steps.ts";
import { act, acted, begin, endlessTool, inArguments, nothingLeft, toolBegun } from "./run-commands.ts";
import { type TestHome, waitFor } from "./test-home.ts";

const bypass = ["--permission", "bypass"];

for (const driver of chosen(drivers))
  describe(driver.name, () => {
    const here = casesOf(driver);
    const { agent, shows, links } = driver;
    const allGone = (world: TestHome) => nothingLeft(world, driver.stays);

    here("launch prints the agent's own id and passes the whole prompt; stop ends all processes", async (world) => {
      const lines = `"quotes" 'and' $such \`things\` \\ äöü\n`.repeat(driver.promptBy === "stdin" ? 20_000 : 40);
      const prompt = `--version is not what I mean\nHOLD=answer\n${endlessTool(world, "tool")}\nFIRST=I look.\n${lines}the last line`;
      const id = await acted(world, ["launch", agent, "-", ...bypass, "--name", "big"], { input: prompt });
      await asked(world, "the last line");
      const [request] = world.model.requests.filter(({ text }) => text.includes("the last line"));
      expect(request?.text.includes(prompt.trim())).toBe(true);
      if (driver.promptBy === "stdin") expect(inArguments(world, "the last line")).toEqual([]);
      const row = await rowOf(world, id);
      expect(row).toMatchObject({ id, state: "running", link: links.launched, cwd: world.cwd });
      expect([shows.launchedTurn, "unclear"]).toContain(row.activity ?? "");
      expect(agents(world, driver)).toContain(row.process?.pid ?? 0);
      world.model.release("answer");
      await toolBegun(world, "tool");
      await recorded(world, driver, [], { session: id }, toolSign(driver));
      expect(await rowOf(world, id)).toMatchObject({ state: "running", activity: shows.tool, process: row.process });
      const stopped = JSON.parse(await acted(world, ["stop", "big", "--json"])) as Listed & { ended: number[] };
      expect(stopped).toMatchObject({ id, state: "stopped", leftovers: [] });
      expectOutcome(driver.stopped, stopped);
      expect(stopped.ended).toContain(row.process?.pid ?? 0);
      await allGone(world);
      expect(driver.sessions(world)).toEqual([id]);
      expect(JSON.parse(await acted(world, ["stop", "big", "--json"]))).toMatchObject({ state: "stopped", ended: [] });
    });

    here("stop while the model answers the first prompt", async (world) => {
      const id = await acted(world, ["launch", agent, "hello ;; HOLD=answer", ...bypass]);
      await asked(world, "HOLD=answer");
      const stopped = JSON.parse(await acted(world, ["stop", id, "--json"])) as Listed;
      expect(stopped).toMatchObject({ state: "stopped", leftovers: [] });
      await allGone(world);
    });

    /** The name of a case in which a session goes on; else of what is left of it. */
    const named = (goesOn: string, ends: string): string => (driver.sendRefused === undefined ? goesOn : ends);
    const overAtOnce = named(
      "a session that ends at once: launch, wait, result, send, wait, result, peek, logs",
      "a session that ends at once: launch, wait, result, peek, logs; send is refused with the reason",
    );
    here(overAtOnce, async (world) => {
      const id = await acted(world, ["launch", agent, "one ;; SAY=the first answer", "--name", "quick"]);
      expect(await over(world, driver, ["wait", "quick"])).toMatch(shows.endUnsaid ? /stopped/ : /completed|idle/);
      expect(await over(world, driver, ["result", id])).toBe("the first answer");
      const isSent = await sent(world, driver, id, "two ;; SAY=the second answer");
      if (isSent) {
        expect(await over(world, driver, ["wait", "quick"])).toMatch(shows.endUnsaid ? /stopped/ : /completed|idle/);
        expect(await over(world, driver, ["result", "quick"])).toBe("the second answer");
        expect(world.model.requests.findLast(({ tools }) => tools.length > 0)?.text).toContain("two ;;");
      }
      await allGone(world);
      expect(await rowOf(world, id)).toMatchObject({ state: "stopped", outcome: completed(driver) });
      expect(driver.sessions(world)).toEqual([id]);
      const [prompt, answer] = isSent ? ["two", "the second answer"] : ["one", "the first answer"];
      for (const command of ["peek", "logs"]) {
        const out = await acted(world, [command, id]);
        expect(out).toContain(`${prompt} ;; SAY=${answer}`);
        expect(out.trimEnd()).toEndWith(answer);
      }
    });

    here("send to a live session is refused with its terminal; of five at once one wins", async (world) => {
      const id = await acted(world, ["launch", agent, "one ;; SAY=one"]);
      await over(world, driver, ["wait", id]);
      await allGone(world);
      const sends = Array.from({ length: 5 }, (_, index) =>
        act(world, ["send", id, `HOLD=more ;; number ${index}`, "--share"]),
      );
      const answers = await Promise.all(sends);
      expect(answers.map(({ code }) => code).sort()).toEqual([0, 5, 5, 5, 5]);
      await asked(world, "HOLD=more");
      const row = await rowOf(world, id);
      expect(row).toMatchObject({ state: "running" });
      const { code, err } = await act(world, ["send", id, "one more"]);
      expect([code, err]).toEqual([5, expect.stringContaining(`pid ${row.process?.pid}`)]);
      world.model.release("more");
      await over(world, driver, ["wait", id]);
      const sent = world.model.requests.filter(({ text }) => text.includes("HOLD=more")).map(({ text }) => text);
      expect(new Set(sent).size).toBe(1);
      await allGone(world);
    });

    here(
      named("interrupt ends the turn, and the session can continue", "interrupt: the turn is over"),
      async (world) => {
        const id = await acted(world, ["launch", agent, endlessTool(world, "tool"), ...bypass]);
        await toolBegun(world, "tool");
        const now = JSON.parse(await acted(world, ["interrupt", id, "--json"])) as Listed;
        // One that takes long to leave is idle until then.
        if (now.state !== "running") expectOutcome(driver.interrupted, now);
        await allGone(world);
        expectOutcome(driver.interrupted, await rowOf(world, id));
        if (!(await sent(world, driver, id, "again ;; SAY=still here"))) return;
        await over(world, driver, ["wait", id]);
        expect(await over(world, driver, ["result", id])).toBe("still here");
      },
    );

    here("run prints the answer; SIGINT, SIGTERM and SIGKILL of agentctl end the agent and its tool", async (world) => {
      const { code, out, err } = await act(world, [
        "run",
        agent,
        "FIRST=I look ;; BASH=true ;; SAY=the answer",
        ...bypass,
      ]);
      expect({ code, out }).toEqual({ code: 0, out: "the answer\n" });
      expect(err).toContain("I look");
      const json = JSON.parse(await acted(world, ["run", agent, "SAY=as json", "--json"])) as Listed;
      expect(json).toMatchObject({ state: "stopped", outcome: completed(driver), result: "as json" });
      for (const signal of ["SIGINT", "SIGTERM", "SIGKILL"] as const) {
        const running = begin(world, ["run", agent, endlessTool(world, signal), ...bypass]);
        await toolBegun(world, signal);
        running.kill(signal);
        await running.exited;
        if (signal !== "SIGKILL") expect(running.exitCode).toBe(130);
        await allGone(world);
      }
      const failed = await act(world, ["run", agent, "ERR=400"]);
      expect(failed.code).not.toBe(0);
      await allGone(world);
    });

    const leavesTool = named(
      "stop ends the tool that a killed agent left behind, and the next turn is right",
      "stop ends the tool of a killed agent",
    );
    here(leavesTool, async (world) => {
      const id = await acted(world, ["launch", agent, endlessTool(world, "tool"), ...bypass]);
      await toolBegun(world, "tool");
      // Some write down a moment later what they have begun; killed before, they leave no session.
      await recorded(world, driver, [], { session: id }, toolSign(driver));
      process.kill((await rowOf(world, id)).process?.pid ?? 0, "SIGKILL");
      await waitFor("its end", async () => (await rowOf(world, id)).state === "stopped");
      await acted(world, ["stop", id]);
      await allGone(world);
      if (!(await sent(world, driver, id, "HOLD=answer"))) return;
      await asked(world, "HOLD=answer");
      if (shows.laterTurn === "working")
        await waitFor("work", async () => (await rowOf(world, id)).activity === "working");
      expect(await rowOf(world, id)).toMatchObject({ state: "running", activity: shows.laterTurn });
      world.model.release("answer");
      await over(world, driver, ["wait", id]);
      await allGone(world);
    });

    here("stop ends a session started by hand that is suspended in a tool", async (world) => {
      const life = await inTool(world, driver);
      process.kill(life.pid, "SIGSTOP");
      // R8: where only arguments or the directory name its session, a person has to say that this process is meant.
      const sure = links.plain === "announced" ? [] : ["--yes"];
      const { code, out, err } = await act(world, ["stop", `pid:${life.pid}`, "--json", ...sure]);
      if (code !== 0) throw new Error(`stop: exit ${code}\n${err}`);
      expect(JSON.parse(out)).toMatchObject({ state: "stopped" });
      await ended(world, life);
      await allGone(world);
    });

    here("a launched session beside one started by hand in the same directory", async (world) => {
      const life = await inTool(world, driver, { name: "hand" });
      const id = await acted(world, ["launch", agent, endlessTool(world, "tool"), "--share", ...bypass]);
      await toolBegun(world, "tool");
      const row = await rowOf(world, id);
      expect(row).toMatchObject({ state: "running", link: links.launched });
      expect(agents(world, driver)).toContain(row.process?.pid ?? 0);
      expect(row.process?.pid).not.toBe(life.pid);
      const expected = liveRow(world, driver, life, shows.tool);
      expect(await rowOf(world, life.id)).toMatchObject({ state: "running", link: expected.link ?? null });
      expect((await rowOf(world, life.id)).process?.pid).toBe(life.pid);
      const { code } = await act(world, ["stop", id]);
      expect(agents(world, driver)).toEqual([life.pid]);
      // R9: the other one, known by its directory alone, might have either of the two records now.
      const isExact = links.plain !== "cwd";
      expect(isExact ? [0] : [0, 8]).toContain(code);
      const states = [(await rowOf(world, life.id)).state, (await rowOf(world, id)).state];
      const right = ["running", "stopped"];
      expect(states).toEqual(
        isExact ? right : right.map((state) => expect.stringMatching(new RegExp(`^(${state}|unknown)$`))),
      );
    });

    const { wrong } = driver;
    if (wrong !== null)
      here("a wrong setting fails the launch with the agent's own error, and leaves nothing", async (world) => {
        const answer = await act(world, ["launch", agent, "hello", "--", ...wrong.args]);
        expect(answer).toMatchObject({ code: 7, err: expect.stringMatching(wrong.says) });
        await allGone(world);
        expect((await list(world)).sessions.filter(({ state }) => state !== "stopped")).toEqual([]);
        expect(driver.sessions(world)).toEqual([]);
      });

    here(
      "resume --print prints the command that opens a terminal, and is refused for a live session",
      async (world) => {
        const id = await acted(world, ["launch", agent, "one ;; SAY=one"]);
        await over(world, driver, ["wait", id]);
        await allGone(world);
        const printed = await act(world, ["resume", id, "--print"]);
        expect([printed.code, printed.err]).toEqual(driver.resumes ? [0, ""] : [expect.any(Number), expect.anything()]);
        if (!driver.resumes) return;
        expect(printed.out).toContain(world.cwd);
        if (driver.sendRefused !== undefined && driver.interface !== null) {
          await openInterface(world, driver, driver.interface.command(world, { resume: id }));
          expect((await act(world, ["resume", id, "--print"])).code).toBe(5);
          return;
        }
        const life = await inTurn(world, driver, { resume: id });
        const state = (await rowOf(world, id)).state;
        expect((await act(world, ["resume", id, "--print"])).code).toBe(state === "unknown" ? 4 : 5);
        life.goOn();
        await ended(world, life);
      },
    );

    here("inside a session @self is that session", async (world) => {
      const file = join(world.dir, "self");
      const binary = process.env["AGENTCTL_BIN"] ?? join(import.meta.dir, "../../dist/agentctl");
      const command = `AGENTCTL_HOME=${world.dir}/agentctl ${binary} status @self --json >${file} 2>${file}.err; touch ${file}.done`;
      const id = await acted(world, ["launch", agent, `BASH=${command} ;; SAY=done`, ...bypass]);
      await over(world, driver, ["wait", id]);
      expect(existsSync(`${file}.done`)).toBe(true);
      expect(await Bun.file(`${file}.err`).text()).toBe("");
      expect(JSON.parse(await Bun.file(file).text())).toMatchObject({ id, state: "running" });
    });
  });

const agents = (world: TestHome, driver: RealAgent): number[] => agentsOf(world, driver).map(({ pid }) => pid);

/** One more prompt for a session that is over; false: there is none, for the reason that agentctl gives. */
async function sent(world: TestHome, { sendRefused }: RealAgent, id: string, prompt: string): Promise<boolean> {
  if (sendRefused === undefined) {
    expect(await acted(world, ["send", id, prompt])).toBe(id);
    return true;
  }
  const before = world.model.requests.length;
  expect(await act(world, ["send", id, prompt])).toMatchObject({ code: 7, err: expect.stringMatching(sendRefused) });
  expect(world.model.requests.length).toBe(before);
  return false;
}

const expectOutcome = (expected: readonly After[], { outcome }: Listed): void => {
  expect(expected).toContain(outcome as After);
};
