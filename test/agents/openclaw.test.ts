// OpenClaw's gateway: the status of its sessions at each moment that fixtures are captured from, and the acting commands.
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expectList, type Listed, list } from "./check-answers.ts";
import { openclaw, patienceMs, sleeping, startGateway, token, untilStatus } from "./drivers/openclaw.ts";
import { openclawCases, toolPrompt, untilDraining } from "./openclaw-cases.ts";
import { act, acted, begin as beginAgentctl } from "./run-commands.ts";
import { createTestHome, filesBelow, type Headless, type TestHome, waitFor } from "./test-home.ts";

const isMeant = process.env["ONLY"] === undefined || process.env["ONLY"].split(",").includes("openclaw");
const world = () => createTestHome({ agents: [openclaw] });
const longMs = 400_000;

describe.if(isMeant)("openclaw", () => {
  describe("at the moment of", () => {
    for (const { name, run } of openclawCases())
      test(
        name,
        async () => {
          await using here = await world();
          const { sessions } = await run(here);
          const known = async () => (await list(here)).problems.length === 0;
          await waitFor("a gateway that has time", known, { deadlineMs: patienceMs });
          await expectList(here, "openclaw", sessions);
        },
        longMs,
      );
  });

  // One gateway for all of it: starting one takes longer than most of what is done here.
  describe("in a gateway", () => {
    let shared: Promise<{ here: TestHome; gateway: Headless }> | null = null;
    const there = () => {
      shared ??= startShared();
      return shared;
    };
    afterAll(async () => await (await shared)?.here[Symbol.asyncDispose]());

    test(
      "a session is launched, waited for, continued, interrupted and stopped",
      async () => {
        const { here, gateway } = await there();
        const flags = ["--name", "painter", "--permission", "read"];
        const id = await acted(here, ["launch", "openclaw", "please ;; SAY=one", ...flags]);
        await acted(here, ["wait", "painter", "--timeout", "300s"]);
        expect(await outcomeOf(here, id)).toMatchObject({
          status: "completed",
          permission: "read-only",
          cwd: here.cwd,
        });
        expect(await acted(here, ["result", id])).toBe("one");
        for (const command of ["peek", "logs"]) {
          const out = await acted(here, [command, id]);
          expect(out).toContain("please ;; SAY=one");
          expect(out.trimEnd()).toEndWith("one");
        }

        await acted(here, ["send", id, toolPrompt(4321), "--permission", "bypass"]);
        const tool = await sleeping(here, 4321);
        expect(await settled(here, (row) => row.state === "running", id)).toMatchObject({
          ...{ status: "working", served: true, permission: "full", process: { pid: gateway.pid } },
        });
        expect(await acted(here, ["interrupt", id])).toMatch(/is (?:interrupted|cut-off)$/);
        await untilStatus(here, id, "killed");
        expect((await outcomeOf(here, id)).status).toBe("interrupted");
        await waitFor("the tool's end", () => !here.processes().some(({ pid }) => pid === tool.pid));

        await acted(here, ["send", id, toolPrompt(4322)]);
        await sleeping(here, 4322);
        // During a turn it is handed to the gateway, which takes it up afterwards; stopping takes that back, too.
        await acted(here, ["send", id, "please ;; SAY=never"]);
        await acted(here, ["stop", id]);
        await untilStatus(here, id, "killed");
        expect((await outcomeOf(here, id)).status).toBe("interrupted");
        expect(here.model.requests.some(({ text }) => text.includes("SAY=never"))).toBe(false);
        expect(here.processes().some(({ pid }) => pid === gateway.pid)).toBe(true);
        expect(await acted(here, ["resume", id, "--print"])).toContain("tui --session agent:main:");
      },
      longMs,
    );

    test(
      "run ends its session when agentctl ends",
      async () => {
        const { here } = await there();
        expect(await acted(here, ["run", "openclaw", "please ;; SAY=forty-two"])).toBe("forty-two");
        const running = beginAgentctl(here, ["run", "openclaw", toolPrompt(4323)]);
        await sleeping(here, 4323);
        running.kill("SIGINT");
        expect(await running.exited).toBe(130);
        expect(await running.stderr.text()).toMatch(
          /stays in its server: (its turn was interrupted|no turn was running)/,
        );
        await waitFor("the tool's end", () => !isSleeping(here, 4323));
        for (const prompt of [toolPrompt(4324), "please ;; HOLD=never"]) {
          const late = await act(here, ["run", "openclaw", prompt, "--max-time", "5s", "--json"]);
          expect([late.code, JSON.parse(late.out).status]).toEqual([10, "failed"]);
          expect(late.err).toContain("--max-time 5s was reached");
        }
        expect(isSleeping(here, 4324)).toBe(false);
      },
      longMs,
    );

    const permissions: [value: string, edited: boolean, ran: boolean, beyond: boolean][] = [
      ["read", false, false, false],
      ["edit", true, false, false],
      ["bypass", true, true, true],
      ["its own setting", true, true, true],
    ];
    test.each(permissions)(
      "permission %s is kept",
      async (value, edited, ran, beyond) => {
        const { here } = await there();
        const name = value.replaceAll(" ", "-");
        const outside = join(here.home, `outside-${name}`);
        const calls = [
          `TOOL=write ${JSON.stringify({ path: `edited-${name}`, content: "x" })}`,
          `BASH=touch ran-${name}`,
          `TOOL=write ${JSON.stringify({ path: outside, content: "x" })}`,
        ];
        const flags = value.includes(" ") ? [] : ["--permission", value];
        const answer = await act(here, ["run", "openclaw", ["please", ...calls, "SAY=done"].join(" ;; "), ...flags]);
        expect([answer.code, answer.out.trim()]).toEqual([0, "done"]);
        const paths = [join(here.cwd, `edited-${name}`), join(here.cwd, `ran-${name}`), outside];
        expect(paths.map((path) => existsSync(path))).toEqual([edited, ran, beyond]);
      },
      longMs,
    );

    test(
      "its token is printed nowhere; while it is suspended, sessions written since its start are unknown",
      async () => {
        const { here, gateway } = await there();
        const id = await acted(here, ["launch", "openclaw", "please ;; HOLD=never"]);
        await settled(here, (row) => row.state === "running", id);
        expect(await shownToPeople(here, id)).not.toContain(token);

        gateway.signal("SIGSTOP");
        const { sessions, problems } = await list(here);
        expect(problems.map(({ message }) => message)).toEqual(["the server is suspended"]);
        expect([...new Set(sessions.map(({ state }) => state))]).toEqual(["unknown"]);
        expect(sessions[0]?.reasonCode).toBe("server-silent");
        expect((await act(here, ["stop", id])).code).toBe(8);
        expect((await act(here, ["launch", "openclaw", "hello", "--share"])).code).toBe(7);
        expect(await shownToPeople(here, id)).not.toContain(token);
        gateway.signal("SIGCONT");
        await settled(here, (row) => row.state === "running", id);
        await acted(here, ["stop", id]);
      },
      longMs,
    );

    test(
      "a gateway that is shutting down finishes its turn and answers no requests",
      async () => {
        const { here, gateway } = await there();
        const id = await acted(here, ["launch", "openclaw", toolPrompt(4326)]);
        const tool = await sleeping(here, 4326);
        gateway.signal("SIGTERM");
        await untilDraining(gateway);
        const row = (await list(here)).sessions.find((session) => session.id === id);
        expect([row?.state, row?.reasonCode]).toEqual(["unknown", "server-silent"]);
        process.kill(tool.pid);
        await gateway.exited;
        const { sessions, problems } = await list(here);
        expect(problems).toEqual([]);
        expect([...new Set(sessions.map(({ state }) => state))]).toEqual(["stopped"]);
        expect(sessions.find((session) => session.id === id)?.status).toBe("completed");
      },
      longMs,
    );
  });

  test("without a gateway launch fails", async () => {
    await using here = await world();
    const { code, err } = await act(here, ["launch", "openclaw", "hello"]);
    expect(code).toBe(7);
    expect(err).toContain("start one first: openclaw gateway run");
    const extra = await act(here, ["launch", "openclaw", "hello", "--", "--own"]);
    expect(extra.code).toBe(7);
    expect(extra.err).toContain("takes no arguments");
  });

  test(
    "a local agent without a gateway makes sessions unknown, and is not a row of its own",
    async () => {
      await using here = await world();
      const id = "11111111-2222-4333-8444-555555555555";
      const said = ["--session-id", id, "--message", toolPrompt(4325)];
      const alone = here.start(["openclaw", "agent", "--local", "--agent", "main", ...said]);
      const tool = await sleeping(here, 4325);
      const { sessions } = await list(here);
      expect(sessions.map((row) => [row.id, row.state])).toEqual([[id, "unknown"]]);
      expect(sessions[0]?.reasonCode).toBe("server-silent");
      process.kill(tool.pid);
      await alone.exited;
      expect(await outcomeOf(here, id)).toMatchObject({ status: "completed" });
    },
    longMs,
  );
});

/** Its token stands in its environment alone. */
async function startShared(): Promise<{ here: TestHome; gateway: Headless }> {
  const here = await world();
  const settings = join(openclaw.home(here), "openclaw.json");
  const own = JSON.parse(readFileSync(settings, "utf8"));
  writeFileSync(settings, JSON.stringify({ ...own, gateway: { ...own.gateway, auth: { mode: "token" } } }));
  return { here, gateway: await startGateway(here, { OPENCLAW_GATEWAY_TOKEN: token }) };
}

/** Everything that agentctl says and keeps. */
async function shownToPeople(here: TestHome, id: string): Promise<string> {
  const shown: string[] = [];
  const questions = [["why", id], ["status", id, "--json"], ["list", "-a", "--json"], ["doctor"], ["logs", id]];
  for (const args of [...questions, ["adapters"]]) {
    const { out, err } = await act(here, args);
    shown.push(out, err);
  }
  const kept = join(here.dir, "agentctl");
  shown.push(...filesBelow(kept, "**").map((path) => readFileSync(join(kept, path), "utf8")));
  return shown.join("\n");
}

/** A busy gateway may not answer in time. agentctl then reports unknown, so this asks agentctl again. */
const settled = (here: TestHome, isDone: (row: Listed) => boolean, id: string): Promise<Listed> =>
  waitFor(
    `a word about ${id}`,
    async () => {
      const row = (await list(here)).sessions.find((session) => session.id === id);
      return row !== undefined && isDone(row) ? row : null;
    },
    { deadlineMs: patienceMs },
  );

const outcomeOf = (here: TestHome, id: string): Promise<Listed> => settled(here, (row) => row.state === "stopped", id);

const isSleeping = (here: TestHome, seconds: number): boolean =>
  here.processes().some(({ argv }) => argv.join(" ") === `sleep ${seconds}`);
