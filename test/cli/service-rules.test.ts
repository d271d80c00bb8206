// Calls of the service without a command line and without a terminal obey the same rules.
import { describe, expect, test } from "bun:test";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gemini } from "../../src/agents/gemini/index.ts";
import type { Confirmed } from "../../src/core/confirmation.ts";
import type { Failure } from "../../src/core/failure.ts";
import { annotate } from "../../src/service/annotate.ts";
import type { Call } from "../../src/service/call.ts";
import { compare } from "../../src/service/compare.ts";
import { ConfirmationRequired } from "../../src/service/confirmation.ts";
import { interrupt } from "../../src/service/interrupt.ts";
import { launch } from "../../src/service/launch.ts";
import type { LaunchRequest } from "../../src/service/launch-plan.ts";
import { unlock } from "../../src/service/lock.ts";
import { pruneLaunches } from "../../src/service/prune.ts";
import type { SessionFilter } from "../../src/service/select.ts";
import { send } from "../../src/service/send.ts";
import { type StopRequest, stop } from "../../src/service/stop.ts";
import { pruneWorktrees, removeWorktrees } from "../../src/service/worktrees.ts";
import { binary } from "./test-home.ts";
import { isAlive, type LaunchTestHome } from "./test-home-launch.ts";
import { until } from "./test-home-servers.ts";
import { StopTestHome } from "./test-home-stop.ts";
import { createWorktreeHome } from "./test-home-worktrees.ts";

const callIn = (world: LaunchTestHome, change: Partial<Call> = {}): Call => ({
  caller: { kind: "person" },
  env: world.env,
  cwd: world.work,
  signal: new AbortController().signal,
  onNotice: () => {},
  onProblems: () => {},
  ...change,
});

const stopRequest = (id: string, change: Partial<StopRequest> = {}): StopRequest => ({
  sessions: { references: [id], filter: null },
  ...{ graceMs: 5_000, now: false, leftovers: false, server: false, confirmed: [] },
  ...change,
});

const failureOf = async (act: Promise<unknown>): Promise<Failure> =>
  await act.then(
    () => {
      throw new Error("it did not fail");
    },
    (error) => error,
  );

test("stop of a weakly linked session needs the confirmation that its failure names", async () => {
  await using world = new StopTestHome();
  const agent = world.start(["--no-announce", "prompt:x", "work:600"], { cwd: world.folder("elsewhere") });
  await world.until(agent.id, "working");
  const failure = await failureOf(stop(stopRequest(agent.id), callIn(world)));
  if (!(failure instanceof ConfirmationRequired)) throw failure;
  const { confirmations } = failure.facts;
  expect(confirmations.map(({ code }) => code)).toEqual(["weak-link"]);
  await world.until(agent.id, "working");
  const confirmed = confirmations.map(({ key }) => key);
  const { exitCode, stopped } = await stop(stopRequest(agent.id, { confirmed }), callIn(world));
  expect([exitCode, stopped[0]?.answer.result]).toEqual([0, "stopped"]);
});

const everything: SessionFilter = {
  ...{ agents: [], statuses: [], group: null, labels: [], cwd: null, needsPerson: false, served: false, text: null },
};
const all = { references: [], filter: everything };

test("a confirmation of many sessions counts for these sessions only", async () => {
  await using world = new StopTestHome();
  const start = () => world.working([], { cwd: world.folder("elsewhere") });
  const [first] = await Promise.all([start(), start(), start(), start()]);
  const failure = await failureOf(stop(stopRequest("", { sessions: all }), callIn(world)));
  if (!(failure instanceof ConfirmationRequired)) throw failure;
  expect(failure.facts.confirmations).toMatchObject([{ code: "many-sessions", count: 4 }]);
  const confirmed = failure.facts.confirmations.map(({ key }) => key);
  await stop(stopRequest(first?.id ?? "", { now: true }), callIn(world));
  const late = await start();
  expect(await failureOf(stop(stopRequest("", { sessions: all, confirmed }), callIn(world)))).toMatchObject({
    facts: { confirmations: [{ code: "many-sessions", count: 4 }] },
  });
  expect(isAlive(late.pid)).toBe(true);
});

test("interrupt by a filter needs a confirmation for a process that has not named its session", async () => {
  await using world = new StopTestHome();
  const agent = world.begin([binary, "demo-agent", "--announce-after", "600000", "work:600"]);
  await until("the process", async () => (await world.list()).sessions.length === 1);
  const request = { sessions: all, timeoutMs: 1_000, confirmed: [] };
  expect(await failureOf(interrupt(request, callIn(world)))).toMatchObject({
    facts: { confirmations: [{ code: "weak-link", pid: agent.pid }] },
  });
  expect(isAlive(agent.pid)).toBe(true);
});

test("a filter by a directory that is not absolute selects nothing", async () => {
  await using world = new StopTestHome();
  await world.working();
  const sessions = { references: [], filter: { ...everything, cwd: "work" } };
  expect(await failureOf(stop(stopRequest("", { sessions }), callIn(world)))).toMatchObject({ code: "no-match" });
});

test("an aborted message does not reach the server", async () => {
  await using world = new StopTestHome();
  const id = crypto.randomUUID();
  await world.serving(id);
  const start = { model: null, permission: null, extra: [], maxTimeMs: null, startTimeoutMs: null, share: false };
  const call = callIn(world, { signal: AbortSignal.abort() });
  expect(await failureOf(send({ ...start, reference: id, prompt: "unwanted" }, call))).toMatchObject({
    ...{ code: "interrupted", facts: { result: "nothing-started" } },
  });
  expect((await world.run(["logs", id])).out).not.toContain("unwanted");
});

test("a caller that is an agent may stop only sessions that it started", async () => {
  await using world = new StopTestHome();
  const inside = await world.working();
  const other = await world.working([], { cwd: world.folder("elsewhere") });
  const call = callIn(world, { caller: { kind: "process", pid: inside.pid, env: {} } });
  expect(await failureOf(stop(stopRequest(other.id, { confirmed: "all" }), call))).toMatchObject({
    code: "guarded-caller",
    facts: { rule: "session-of-others" },
  });
  await world.until(other.id, "working");
});

const launchRequest = (change: Partial<LaunchRequest> = {}): LaunchRequest => ({
  ...{ prompt: "say:x", model: null, permission: null, extra: [], maxTimeMs: null, startTimeoutMs: null },
  ...{ name: null, group: null, labels: {}, spec: null, context: [], hooks: { start: null, exit: null } },
  ...{ agent: "demo", cwd: null, share: false, worktree: null },
  ...change,
});

test("a launch in an occupied directory is refused", async () => {
  await using world = new StopTestHome();
  await world.working();
  expect(await failureOf(launch(launchRequest(), callIn(world)))).toMatchObject({ code: "place-occupied" });
});

test("a launch with a permission that a file of the host makes void is refused", async () => {
  await using world = new StopTestHome();
  const policies = world.folder("policies");
  writeFileSync(join(policies, "ours.toml"), "");
  const call = callIn(world, { env: { ...world.env, AGENTCTL_GEMINI_BIN: "/bin/true" } });
  const request = launchRequest({ agent: "gemini", permission: "read" });
  const folders = gemini.invocation.permissions.read.voidedBy?.folders as string[];
  folders.push(policies);
  try {
    expect(await failureOf(launch(request, call))).toMatchObject({ code: "permission-void" });
  } finally {
    folders.pop();
  }
});

test("a session whose state is unknown is not acted on, even if everything is confirmed", async () => {
  await using world = new StopTestHome();
  const agent = await world.working();
  const id = world.record([{ type: "prompt", text: "x" }]);
  rmSync(join(world.home, "live"), { recursive: true });
  writeFileSync(join(world.home, "live"), "not a folder");
  const request = stopRequest(id, { confirmed: "all", now: true, leftovers: true });
  expect(await failureOf(stop(request, callIn(world)))).toMatchObject({ code: "status-unknown" });
  expect(isAlive(agent.pid)).toBe(true);
});

test("stop of a server with other sessions needs a confirmation that names them", async () => {
  await using world = new StopTestHome();
  const [id, other] = [crypto.randomUUID(), crypto.randomUUID()];
  const server = await world.serving(id, other);
  const request = stopRequest(id, { server: true });
  const failure = await failureOf(stop(request, callIn(world)));
  if (!(failure instanceof ConfirmationRequired)) throw failure;
  expect(failure.facts.confirmations).toMatchObject([
    { code: "server-sessions", others: [{ agent: "demo", ref: other.slice(0, 8) }] },
  ]);
  expect(isAlive(server)).toBe(true);
  const confirmed = failure.facts.confirmations.map(({ key }) => key);
  expect(await stop({ ...request, confirmed }, callIn(world))).toMatchObject({ exitCode: 0 });
  expect(isAlive(server)).toBe(false);
});

describe("a worktree", () => {
  test("with uncommitted files is not removed", async () => {
    await using home = await createWorktreeHome();
    writeFileSync(join(await home.add("a"), "new"), "");
    const call = callIn(home, { cwd: home.repository });
    expect(await failureOf(removeWorktrees({ names: ["a"], discard: false }, call, () => {}))).toMatchObject({
      ...{ code: "worktree-kept", facts: { reasons: [{ code: "uncommitted" }] } },
    });
    expect(existsSync(join(home.at("a"), "new"))).toBe(true);
  });

  test("that is merged is pruned only after a confirmation of this worktree", async () => {
    await using home = await createWorktreeHome();
    const path = await home.add("a");
    const call = callIn(home, { cwd: home.repository });
    const prune = (confirmed: Confirmed) => pruneWorktrees({ paths: [path], confirmed }, call, () => {});
    expect(await failureOf(prune(["remove-worktrees"]))).toMatchObject({ code: "confirmation-required" });
    expect(existsSync(path)).toBe(true);
    expect(await prune([`remove-worktrees ${path}`])).toMatchObject({ exitCode: 0 });
    expect(existsSync(path)).toBe(false);
  });
});

test("a caller that is an agent may not remove locks and files of launches", async () => {
  await using world = new StopTestHome();
  const inside = await world.working();
  const call = callIn(world, { caller: { kind: "process", pid: inside.pid, env: {} } });
  const plan = { over: [], inUse: 0, cacheBytes: 0 };
  for (const act of [unlock(".", call), pruneLaunches({ plan, olderMs: 0, confirmed: "all" }, call)])
    expect(await failureOf(act)).toMatchObject({ code: "guarded-caller", facts: { rule: "command" } });
});

test("@self is the session of the caller, not of the process that answers", async () => {
  await using world = new StopTestHome();
  const agent = await world.working();
  const named = (caller: Call["caller"]) => annotate("@self", { name: "me", labels: {} }, callIn(world, { caller }));
  expect((await named({ kind: "process", pid: agent.pid, env: {} })).session.id).toBe(agent.id);
  expect(await failureOf(named({ kind: "person" }))).toMatchObject({ code: "session-not-found" });
});

test("an aborted comparison reads no repository", async () => {
  await using world = new StopTestHome();
  const { id } = await world.working();
  world.note(id, { group: "night" });
  const reason = new Error("no longer wanted");
  const call = callIn(world, { signal: AbortSignal.abort(reason) });
  const request = { group: "night", check: null, wantsPatches: false };
  expect(await failureOf(compare(request, call, () => {}))).toBe(reason as Failure);
});

test("an aborted stop signals nothing", async () => {
  await using world = new StopTestHome();
  const agent = await world.working();
  const reason = new Error("no longer wanted");
  expect(await failureOf(stop(stopRequest(agent.id), callIn(world, { signal: AbortSignal.abort(reason) })))).toBe(
    reason as Failure,
  );
  await world.until(agent.id, "working");
});
