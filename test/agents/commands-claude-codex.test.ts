// launch, run, send, interrupt, stop and wait with Claude Code and Codex: the same cases for each.
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Listed, rowOf } from "./check-answers.ts";
import { act, acted, actors, begin, endlessTool, inArguments, nothingLeft, toolBegun } from "./run-commands.ts";
import { createTestHome, waitFor } from "./test-home.ts";

const bypass = ["--permission", "bypass"];

for (const { name, agent, world: options, isAgent, interrupted } of actors)
  describe(name, () => {
    test("launch prints the agent's own id; the prompt arrives complete and is in no arguments; stop ends all processes", async () => {
      await using world = await createTestHome(options);
      const filler = `"quotes" 'and' $such \`things\`\n`.repeat(30_000);
      const prompt = `--version is not what I mean\n${endlessTool(world, "tool")}\n${filler}the last line`;
      const id = await acted(world, ["launch", agent, "-", ...bypass, "--name", "big"], { input: prompt });
      await toolBegun(world, "tool");
      expect(await rowOf(world, id)).toMatchObject({ id, state: "running", link: "announced", cwd: world.cwd });
      const [request] = world.model.requests.filter(({ answer }) => answer === "tool");
      expect(request?.text.includes(prompt.trim())).toBe(true);
      expect(inArguments(world, "the last line")).toEqual([]);
      const row = await rowOf(world, id);
      expect(
        world
          .processes()
          .filter(isAgent)
          .map(({ pid }) => pid),
      ).toContain(row.process?.pid ?? 0);
      const stopped = JSON.parse(await acted(world, ["stop", "big", "--json"])) as Listed & { ended: number[] };
      expect(stopped).toMatchObject({ id, state: "stopped", leftovers: [] });
      expect(interrupted).toContain(stopped.outcome ?? "");
      expect(stopped.ended).toContain(row.process?.pid ?? 0);
      await nothingLeft(world);
      expect(JSON.parse(await acted(world, ["stop", "big", "--json"]))).toMatchObject({ state: "stopped", ended: [] });
    });

    test("a session that ends at once: launch, wait, result, send, wait, result", async () => {
      await using world = await createTestHome(options);
      const id = await acted(world, ["launch", agent, "one ;; SAY=the first answer", "--name", "quick"]);
      expect(await acted(world, ["wait", "quick"])).toMatch(/completed|idle/);
      expect(await acted(world, ["result", id])).toBe("the first answer");
      expect(await acted(world, ["send", "quick", "two ;; SAY=the second answer"])).toBe(id);
      expect(await acted(world, ["wait", "quick"])).toMatch(/completed|idle/);
      expect(await acted(world, ["result", "quick"])).toBe("the second answer");
      const asked = world.model.requests.filter(({ tools }) => tools.length > 0).map(({ text }) => text);
      expect(asked.some((text) => text.includes("one ;;"))).toBe(true);
      expect(asked.at(-1)).toContain("two ;; SAY=the second answer");
      await nothingLeft(world);
      expect(await rowOf(world, id)).toMatchObject({ state: "stopped", outcome: "completed" });
    });

    test("send to a live session is refused with its terminal; of twenty at once one wins", async () => {
      await using world = await createTestHome(options);
      const id = await acted(world, ["launch", agent, "one ;; SAY=one"]);
      await acted(world, ["wait", id]);
      const sends = Array.from({ length: 20 }, (_, index) =>
        act(world, ["send", id, `HOLD=more ;; number ${index}`, "--share"]),
      );
      const answers = await Promise.all(sends);
      expect(answers.map(({ code }) => code).sort()).toEqual([0, ...Array.from({ length: 19 }, () => 5)]);
      const row = await rowOf(world, id);
      const { err } = await act(world, ["send", id, "one more"]);
      expect(err).toContain(`pid ${row.process?.pid}`);
      world.model.release("more");
      await acted(world, ["wait", id]);
      expect(
        new Set(world.model.requests.filter(({ text }) => text.includes("HOLD=more")).map(({ text }) => text)).size,
      ).toBe(1);
      await nothingLeft(world);
    });

    test("interrupt ends the turn, and the session can continue", async () => {
      await using world = await createTestHome(options);
      const id = await acted(world, ["launch", agent, endlessTool(world, "tool"), ...bypass]);
      await toolBegun(world, "tool");
      const now = JSON.parse(await acted(world, ["interrupt", id, "--json"])) as Listed;
      // An agent that takes long to leave is idle until then.
      expect([...interrupted, "idle"]).toContain(now.status);
      await nothingLeft(world);
      expect(interrupted).toContain((await rowOf(world, id)).outcome ?? "");
      await acted(world, ["send", id, "again ;; SAY=still here"]);
      await acted(world, ["wait", id]);
      expect(await acted(world, ["result", id])).toBe("still here");
    });

    test("run prints the answer; SIGINT and SIGKILL of agentctl end the agent and its tool", async () => {
      await using world = await createTestHome(options);
      const { code, out, err } = await act(world, [
        "run",
        agent,
        "FIRST=I look ;; BASH=true ;; SAY=the answer",
        ...bypass,
      ]);
      expect({ code, out }).toEqual({ code: 0, out: "the answer\n" });
      expect(err).toContain("I look");
      const json = JSON.parse(await acted(world, ["run", agent, "SAY=as json", "--json"])) as Listed;
      expect(json).toMatchObject({ state: "stopped", outcome: "completed", result: "as json" });
      for (const signal of ["SIGINT", "SIGTERM", "SIGKILL"] as const) {
        const running = begin(world, ["run", agent, endlessTool(world, signal), ...bypass]);
        await toolBegun(world, signal);
        running.kill(signal);
        await running.exited;
        if (signal !== "SIGKILL") expect(running.exitCode).toBe(130);
        await nothingLeft(world);
      }
    });

    test("run --max-time ends the agent even if agentctl and its group are killed", async () => {
      await using world = await createTestHome(options);
      const { code, err } = await act(world, ["run", agent, endlessTool(world, "one"), "--max-time", "8s", ...bypass]);
      expect(code).toBe(10);
      expect(err).toContain("--max-time 8s was reached");
      await nothingLeft(world);
      const id = await acted(world, ["launch", agent, endlessTool(world, "two"), "--max-time", "8s", ...bypass]);
      expect((await act(world, ["wait", id])).code).toBe(10);
      await nothingLeft(world);
    });

    test("after the holder is killed the agent keeps working, is listed, and can be stopped", async () => {
      await using world = await createTestHome(options);
      const id = await acted(world, ["launch", agent, endlessTool(world, "tool"), ...bypass]);
      await toolBegun(world, "tool");
      const holder = world.processes().find(({ argv }) => argv[3] === "agentctl-holder");
      if (holder === undefined) throw new Error("no holder");
      process.kill(holder.pid, "SIGKILL");
      await waitFor("its end", () => !world.processes().some(({ pid }) => pid === holder.pid));
      expect(await rowOf(world, id)).toMatchObject({ state: "running" });
      await acted(world, ["stop", id]);
      expect(interrupted).toContain((await rowOf(world, id)).outcome ?? "");
      await nothingLeft(world);
    });

    test("stop ends the tool that a killed agent left behind", async () => {
      await using world = await createTestHome(options);
      const id = await acted(world, ["launch", agent, endlessTool(world, "tool"), ...bypass]);
      await toolBegun(world, "tool");
      process.kill((await rowOf(world, id)).process?.pid ?? 0, "SIGKILL");
      await waitFor("its end", async () => (await rowOf(world, id)).state === "stopped");
      await acted(world, ["stop", id]);
      await nothingLeft(world);
      // A call that was never answered is not pending in the next turn.
      await acted(world, ["send", id, "HOLD=answer"]);
      await waitFor("its request", () => world.model.requests.some(({ text }) => text.includes("HOLD=answer")));
      await waitFor("work", async () => (await rowOf(world, id)).activity === "working");
      world.model.release("answer");
      await nothingLeft(world);
    });

    test("stop ends a session started by hand that is suspended in a tool", async () => {
      await using world = await createTestHome(options);
      const command =
        agent === "codex" ? ["codex", "exec", "--json"] : ["claude", "-p", "--dangerously-skip-permissions"];
      const hand = world.start([...command, endlessTool(world, "tool")]);
      await toolBegun(world, "tool");
      const pid = world.processes().find(isAgent)?.pid ?? 0;
      process.kill(pid, "SIGSTOP");
      const stopped = JSON.parse(await acted(world, ["stop", `pid:${pid}`, "--json"])) as Listed;
      expect(stopped.state).toBe("stopped");
      await hand.exited;
      await nothingLeft(world);
    });

    test("an early model error (529) is not a failed launch, a wrong flag is one", async () => {
      await using world = await createTestHome(options);
      const id = await acted(world, ["launch", agent, agent === "codex" ? "SAY=fine" : "ERR=529*1 ;; SAY=fine"]);
      expect(await acted(world, ["wait", id])).toMatch(/completed|idle/);
      const wrong = await act(world, ["launch", agent, "hello", "--", "--no-such-flag"]);
      expect(wrong.code).toBe(7);
      expect(wrong.err).toContain("--no-such-flag");
      await nothingLeft(world);
      expect(existsSync(join(world.dir, "agentctl", "launches", "x"))).toBe(false);
    });

    test("inside a session: @self works, permission is at most edit, other sessions are refused", async () => {
      await using world = await createTestHome(options);
      const other = await acted(world, ["launch", agent, "HOLD=other", "--share"]);
      const script = join(world.dir, "inside.sh");
      writeFileSync(
        script,
        `PATH=${world.dir}/bin:$PATH; agentctl status @self --json >${world.dir}/self; agentctl stop ${other} >${world.dir}/stop 2>&1; echo $? >>${world.dir}/stop
agentctl launch demo 'SAY=x' --permission bypass --share >${world.dir}/bypass 2>&1; echo $? >>${world.dir}/bypass
mine=$(agentctl launch demo 'work:600' --permission edit --share 2>/dev/null); agentctl stop $mine >${world.dir}/mine 2>&1; echo $? >>${world.dir}/mine`,
      );
      mkdirSync(join(world.dir, "bin"), { recursive: true });
      writeFileSync(
        join(world.dir, "bin", "agentctl"),
        `#!/bin/sh\nexec ${join(import.meta.dir, "../../dist/agentctl")} "$@"\n`,
        { mode: 0o755 },
      );
      const id = await acted(world, ["launch", agent, `BASH=sh ${script} ;; SAY=done`, "--share", ...bypass]);
      expect(await acted(world, ["wait", id])).toMatch(/completed|idle/);
      const read = (file: string) => Bun.file(join(world.dir, file)).text();
      expect(JSON.parse(await read("self"))).toMatchObject({ id });
      expect((await read("stop")).trim().endsWith("5")).toBe(true);
      expect((await read("bypass")).trim().endsWith("5")).toBe(true);
      expect(await read("mine")).toMatch(/\n0\n$/);
      expect(await rowOf(world, other)).toMatchObject({ state: "running" });
      await acted(world, ["stop", other]);
    });
  });
