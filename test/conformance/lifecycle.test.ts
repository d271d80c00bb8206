// Starts each agent in a temporary home, takes it through its states, and asks the built binary after each step.
// It needs a pid namespace: scripts/test ./test/conformance/lifecycle.test.ts
import { describe, expect, test } from "bun:test";
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { adapters } from "../../src/agents/registry.ts";
import { drivers, endings, realAgents, type Step } from "./driver.ts";
import { expectRows, rowsOf } from "./expected-rows.ts";
import { type Agent, TestHome } from "./test-home.ts";
import { waitFor } from "./wait.ts";

/** Two looks at a server that stays silent take 4 s. */
const patienceMs = 30_000;

/** Start times are known to a tick of 10 ms, by a clock that is steered. */
const clockErrorMs = 150;

const prompt: Step = { do: "prompt", text: "Fix the login test" };
const work: Step = { do: "work", name: "work" };
const end: Step = { do: "end", outcome: "completed" };
const stay: Step = { do: "stay" };

test("every adapter has a driver here or in test/agents", () => {
  const driven = [...drivers.map(({ agent }) => agent), ...Object.keys(realAgents)];
  expect(driven.sort()).toEqual(adapters.map(({ agent }) => agent).sort());
  const files = Object.values(realAgents).map((name) => join(import.meta.dir, "..", "agents", name));
  expect(files.filter((path) => !existsSync(path))).toEqual([]);
});

for (const adapter of adapters)
  for (const driver of drivers.filter(({ agent }) => agent === adapter.agent))
    describe(`the lifecycle of ${adapter.agent}`, () => {
      const schedule = (name: string, play: (world: TestHome) => Promise<void>): void => {
        const lack = driver.lacks[name];
        if (lack !== undefined) test.skip(`${name} (${lack})`, () => {});
        else
          test(
            name,
            async () => {
              using world = new TestHome(driver);
              await play(world);
            },
            patienceMs,
          );
      };

      schedule("working, waiting, answered, idle, prompted again", async (world) => {
        const { running, stopped } = rowsOf(world);
        const id = randomUUID();
        const ask: Step = { do: "ask", kind: "permission", text: "May I run make?" };
        const steps = [prompt, work, ask, { do: "work", name: "more" } as const, end, stay];
        const agent = world.start({ id, steps });
        await world.reaches(id, "tool");
        await expectRows(world, [running(id, agent.pid, "working")]);
        driver.release(world.place, "work");
        await world.reaches(id, "asking");
        const waiting = driver.waiting("permission", "May I run make?");
        await expectRows(world, [running(id, agent.pid, "waiting", { waiting })]);
        agent.tell(driver.answer("yes"));
        await world.reaches(id, "tool");
        await expectRows(world, [running(id, agent.pid, "working")]);
        driver.release(world.place, "more");
        await world.reaches(id, "ended");
        await expectRows(world, [running(id, agent.pid, "idle")]);
        agent.tell(driver.prompt("And the logout test"));
        await waitFor("a second turn", () => world.turns(id) === 2);
        await expectRows(world, [running(id, agent.pid, "idle")]);
        await agent.kill("SIGTERM");
        await expectRows(world, [stopped(id, "completed")]);
      });

      for (const outcome of ["completed", "failed"] as const)
        schedule(`${outcome} and gone`, async (world) => {
          const id = randomUUID();
          await world.start({ id, steps: [prompt, { do: "end", outcome }] }).ended();
          await expectRows(world, [rowsOf(world).stopped(id, outcome)]);
        });

      for (const signal of endings)
        schedule(`${signal} while working`, async (world) => {
          const id = randomUUID();
          const agent = world.start({ id, steps: [prompt, work] });
          await world.reaches(id, "tool");
          await agent.kill(signal);
          await expectRows(world, [rowsOf(world).stopped(id, driver.outcomes[signal])]);
        });

      schedule("SIGKILL while waiting", async (world) => {
        const id = randomUUID();
        const agent = world.start({ id, steps: [prompt, { do: "ask", kind: "question", text: "Which one?" }] });
        await world.reaches(id, "asking");
        await agent.kill("SIGKILL");
        await expectRows(world, [rowsOf(world).stopped(id, "cut-off")]);
      });

      schedule("SIGSTOP and SIGCONT", async (world) => {
        const { running, stopped } = rowsOf(world);
        const id = randomUUID();
        const agent = world.start({ id, steps: [prompt, work] });
        await world.reaches(id, "tool");
        await agent.pause("SIGSTOP");
        await expectRows(world, [running(id, agent.pid, "working", { suspended: true })]);
        await agent.pause("SIGCONT");
        await expectRows(world, [running(id, agent.pid, "working")]);
        await agent.pause("SIGSTOP");
        await agent.kill("SIGKILL");
        await expectRows(world, [stopped(id, "cut-off")]);
      });

      schedule("a zombie is dead", async (world) => {
        const { running, stopped } = rowsOf(world);
        const id = randomUUID();
        const agent = await world.startUnreaped({ id, steps: [prompt, work] });
        await world.reaches(id, "tool");
        await expectRows(world, [running(id, agent.pid, "working")]);
        await agent.kill("SIGKILL");
        await expectRows(world, [stopped(id, "cut-off")]);
      });

      schedule("resumed after an end and after SIGKILL", async (world) => {
        const { running, stopped } = rowsOf(world);
        const id = randomUUID();
        await world.start({ id, steps: [prompt, end] }).ended();
        const once = world.start({ id, resume: true, steps: [prompt, work] });
        await world.reaches(id, "tool");
        await expectRows(world, [running(id, once.pid, "working")]);
        await once.kill("SIGKILL");
        await expectRows(world, [stopped(id, "cut-off")]);
        const again = world.start({ id, resume: true, steps: [prompt, end, stay] });
        await world.reaches(id, "ended");
        await expectRows(world, [running(id, again.pid, "idle")]);
        await again.kill("SIGKILL");
        await expectRows(world, [stopped(id, "completed")]);
      });

      schedule("two in one directory", async (world) => {
        const { running, stopped } = rowsOf(world);
        const [one, two] = [randomUUID(), randomUUID()];
        const first = world.start({ id: one, steps: [prompt, work] });
        const second = world.start({ id: two, steps: [prompt, end, stay] });
        await world.reaches(one, "tool");
        await world.reaches(two, "ended");
        await expectRows(world, [running(one, first.pid, "working"), running(two, second.pid, "idle")]);
        await first.kill("SIGKILL");
        await expectRows(world, [stopped(one, "cut-off"), running(two, second.pid, "idle")]);
      });

      schedule("one below the other", async (world) => {
        const { running, stopped } = rowsOf(world);
        const [outer, inner] = [randomUUID(), randomUUID()];
        const command = driver.command(world.place, { id: inner, steps: [prompt, work, end] });
        const agent = world.start({ id: outer, steps: [prompt, { do: "run", command }, end, stay] });
        await world.reaches(inner, "tool");
        const rows = await world.list();
        const pid = world.pidOf(rows, inner);
        expect(pid).not.toBe(agent.pid);
        await expectRows(world, [
          running(outer, agent.pid, "working"),
          running(inner, pid, "working", { parent: outer }),
        ]);
        driver.release(world.place, "work");
        await world.reaches(outer, "ended");
        await expectRows(world, [running(outer, agent.pid, "idle"), stopped(inner, "completed")]);
      });

      schedule("a parent in the record", async (world) => {
        const [parent, id] = [randomUUID(), randomUUID()];
        await world.start({ id, parent, steps: [prompt, end] }).ended();
        await expectRows(world, [rowsOf(world).stopped(id, "completed", { parent })]);
      });

      schedule("two writers of one session", async (world) => {
        const { running, stopped } = rowsOf(world);
        const id = randomUUID();
        const first = world.start({ id, steps: [prompt, end, stay] });
        await world.reaches(id, "ended");
        const second = world.start({ id, resume: true, steps: [prompt, work] });
        await world.reaches(id, "tool");
        const pids = [first.pid, second.pid].sort((a, b) => a - b);
        await expectRows(world, [running(id, pids[0] ?? 0, "working", { pids, conflicts: 1 })]);
        await first.kill("SIGKILL");
        await expectRows(world, [running(id, second.pid, "working")]);
        await second.kill("SIGKILL");
        await expectRows(world, [stopped(id, "cut-off")]);
      });

      schedule("silent, known by its arguments", async (world) => {
        const { running, stopped } = rowsOf(world);
        const id = randomUUID();
        const agent = world.start({ id, silent: true, steps: [prompt, work] });
        await world.reaches(id, "tool");
        await expectRows(world, [running(id, agent.pid, "working", { link: "argv" })]);
        await agent.kill("SIGKILL");
        await expectRows(world, [stopped(id, "cut-off")]);
      });

      schedule("silent, known by its directory", async (world) => {
        const { running, stopped, unknown } = rowsOf(world);
        const one = await startNameless(world);
        const near = running(one.id, one.agent.pid, "working", { link: "cwd" });
        await expectRows(world, [near]);

        const elsewhere = join(world.place.root, "elsewhere");
        mkdirSync(elsewhere);
        const two = await startNameless(world, elsewhere);
        const far = running(two.id, two.agent.pid, "working", { link: "cwd", cwd: elsewhere });
        await expectRows(world, [near, far]);

        // Two processes without a session and two records in one directory: the owners are not known.
        const three = await startNameless(world);
        const nameless = [one, three].map(({ agent }) => running(null, agent.pid, "unclear"));
        await expectRows(world, [unknown(one.id), unknown(three.id), far, ...nameless]);

        for (const { agent } of [one, two, three]) await agent.kill("SIGKILL");
        const farStopped = stopped(two.id, "cut-off", { cwd: elsewhere });
        await expectRows(world, [stopped(one.id, "cut-off"), stopped(three.id, "cut-off"), farStopped]);
      });

      schedule("nothing happens, nothing changes", async (world) => {
        // Nameless, so that all there is to say comes from the process table.
        for (const _time of [1, 2]) world.start({ id: null, silent: true, steps: [prompt, work] });
        await waitFor("two records", () => driver.recorded(world.place).length === 2);
        for (const id of driver.recorded(world.place)) await world.reaches(id, "tool");
        const first = await world.list();
        for (let time = 0; time < 12; time += 1) expect((await world.list())["sessions"]).toEqual(first["sessions"]);
      });

      schedule("a tool outlives its agent and owns nothing", async (world) => {
        const { running, stopped } = rowsOf(world);
        const id = randomUUID();
        const sign = join(world.place.root, "tool-lives");
        const script = `while [ -d ${world.place.root} ]; do : >${sign}; sleep 0.02; done`;
        const agent = world.start({ id, steps: [prompt, { do: "run", command: ["/bin/sh", "-c", script] }] });
        await world.reaches(id, "tool");
        await waitFor("the tool", () => world.exists(sign));
        await expectRows(world, [running(id, agent.pid, "working")]);
        await agent.kill("SIGKILL");
        rmSync(sign);
        await waitFor("the tool, still alive", () => world.exists(sign));
        await expectRows(world, [stopped(id, "cut-off")]);
      });

      schedule("a child between fork and exec is no agent", async (world) => {
        const { running, stopped } = rowsOf(world);
        const id = randomUUID();
        await world.start({ id, steps: [prompt, end] }).ended();
        const { command, hasForked } = driver.forking(world.place, id);
        const agent = world.spawn(command);
        await waitFor("the fork", hasForked);
        await expectRows(world, [running(id, agent.pid, "idle", { link: "argv" })]);
        await agent.kill("SIGKILL");
        await expectRows(world, [stopped(id, "completed")]);
      });

      schedule("alive with a store that cannot be read", async (world) => {
        const { running, stopped } = rowsOf(world);
        const [id, other] = [randomUUID(), randomUUID()];
        await world.start({ id: other, steps: [prompt, end] }).ended();
        const agent = world.start({ id, steps: [prompt, work] });
        await world.reaches(id, "tool");
        const folder = join(world.place.agentHome, adapter.records[0]?.folder.split("/")[0] ?? "");
        renameSync(folder, `${folder}-aside`);
        writeFileSync(folder, "not a folder");
        await expectRows(world, [running(id, agent.pid, "unclear")], "incomplete");
        rmSync(folder);
        renameSync(`${folder}-aside`, folder);
        await expectRows(world, [running(id, agent.pid, "working"), stopped(other, "completed")]);
      });

      schedule("served", async (world) => {
        const { server: serving } = driver;
        if (serving === null) throw new Error("a driver without a server must say so in `lacks`");
        const { running, stopped, unknown } = rowsOf(world);
        const [before, one, two] = [randomUUID(), randomUUID(), randomUUID()];
        await world.start({ id: before, steps: [prompt, end] }).ended();
        world.age();
        const server = world.spawn(serving.command(world.place));
        await waitFor("the server", () => serving.isReady(world.place, server.pid));
        const old = stopped(before, "completed");
        await expectRows(world, [old]);
        server.tell(serving.start(one, "Fix the login test"));
        server.tell(serving.start(two, "And the logout test"));
        await world.reaches(two, "prompted");
        const served = { served: true };
        const second = running(two, server.pid, "working", served);
        await expectRows(world, [old, running(one, server.pid, "working", served), second]);
        server.tell(serving.ask(one, "Which one?"));
        await world.reaches(one, "asking");
        const waiting = { kind: "question", text: "Which one?", tool: null, options: [] };
        await expectRows(world, [old, running(one, server.pid, "waiting", { ...served, waiting }), second]);
        server.tell(serving.end(one));
        await world.reaches(one, "ended");
        await expectRows(world, [old, stopped(one, "completed"), second]);

        await server.pause("SIGSTOP");
        const asked = performance.now();
        await expectRows(world, [old, unknown(one), unknown(two)], "incomplete");
        expect(performance.now() - asked).toBeLessThan(6_000);
        await server.pause("SIGCONT");
        await expectRows(world, [old, stopped(one, "completed"), second]);
        await server.kill("SIGKILL");
        await expectRows(world, [old, stopped(one, "completed"), stopped(two, "cut-off")]);
      });
    });

/** Neither says nor was told its session. Its last message is younger than its start by more than clocks can err. */
async function startNameless(world: TestHome, cwd?: string): Promise<{ id: string; agent: Agent }> {
  const { driver, place } = world;
  const before = driver.recorded(place);
  const steps: Step[] = [prompt, { do: "ask", kind: "question", text: "Which one?" }, work];
  const agent = world.spawn(driver.command(place, { id: null, silent: true, steps }), cwd);
  const startedAt = Date.now();
  await waitFor("a record", () => driver.recorded(place).length > before.length);
  const id = driver.recorded(place).find((each) => !before.includes(each)) ?? "";
  await world.reaches(id, "asking");
  await waitFor("a later time", () => Date.now() > startedAt + clockErrorMs);
  agent.tell(driver.answer("This one"));
  await world.reaches(id, "tool");
  return { id, agent };
}
