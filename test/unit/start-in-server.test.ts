// Beginning a session in a server: the failure after an interruption says whether the session may still begin.
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Adapter, ServerProtocol } from "../../src/agents/adapter.ts";
import { demo } from "../../src/agents/demo/index.ts";
import { readNotes, unsaid } from "../../src/control/notes.ts";
import type { LaunchPlan } from "../../src/control/start-agent.ts";
import { mayStillBegin, startInServer } from "../../src/control/start-in-server.ts";
import { Failure } from "../../src/core/failure.ts";

const folder = mkdtempSync(join(tmpdir(), "agentctl-served-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const server: ServerProtocol = {
  ...(demo.server as ServerProtocol),
  create: () => ({ opening: ["create\n"], next: (heard) => ({ answer: { ok: true, value: heard.join("") } }) }),
};
const adapter: Adapter = { ...demo, title: "Demo", server };

let count = 0;

/** Listens as a server of this process, and tells what it was asked; null: nothing is answered to that. */
function serverThat(answers: Record<string, string | null>) {
  count += 1;
  const home = join(folder, String(count));
  mkdirSync(join(home, "servers"), { recursive: true });
  const heard = Promise.withResolvers<void>();
  const server = Bun.listen({
    unix: join(home, "servers", `${process.pid}.sock`),
    socket: {
      data(socket, bytes) {
        const answer = answers[bytes.toString().trim()] ?? null;
        if (answer === null) heard.resolve();
        else socket.end(answer);
      },
    },
  });
  const order: LaunchPlan = {
    caller: { kind: "person" },
    adapter,
    command: [],
    ...{ kind: "new", session: null, model: null, permission: null, prompt: "x", extra: [] },
    ...{ cwd: folder, home, supportFolder: folder, at: 0 },
    env: { HOME: home },
    note: { ...unsaid },
    newWorktree: null,
    maxTimeMs: null,
    startTimeoutMs: 10_000,
    tied: false,
    before: null,
    ref: null,
    share: false,
    ownIsBypass: false,
  };
  return { heard: heard.promise, order, [Symbol.dispose]: () => server.stop(true) };
}

/** Interrupted when the server has heard something that it does not answer. */
async function interruptedIn(answers: Record<string, string | null>): Promise<Failure> {
  using there = serverThat(answers);
  const controller = new AbortController();
  void there.heard.then(() => controller.abort(new Failure("interrupted", { result: "stopped" })));
  try {
    await startInServer(there.order, server, controller.signal);
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error("it has begun");
}

test("an interruption after the request to the server warns that the session may still start", async () => {
  const error = await interruptedIn({ "?": '{"sessions":[]}' });
  expect(mayStillBegin(error)).toBe(true);
  expect([error.code, error.facts]).toEqual(["interrupted-after-request", { agent: "Demo" }]);
});

test("an interruption before the request to the server starts nothing", async () => {
  const error = await interruptedIn({});
  expect(mayStillBegin(error)).toBe(false);
  expect([error.code, error.facts]).toEqual(["interrupted", { result: "nothing-started" }]);
});

test("a start that is not interrupted succeeds", async () => {
  using there = serverThat({ "?": '{"sessions":[]}', create: "its-id" });
  const { id, holder, at } = await startInServer(there.order, server, new AbortController().signal);
  expect([id, holder]).toEqual(["its-id", null]);
  // The note has the time before the server was asked: from then on its session may write.
  expect(readNotes(there.order.env).notes.map((note) => note.at)).toEqual([new Date(at).toISOString()]);
});
