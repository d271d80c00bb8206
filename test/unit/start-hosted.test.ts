// A session that is begun in a host: what is said where somebody interrupts that is what is true.
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Adapter, HostProtocol } from "../../src/adapters/adapter.ts";
import { demo } from "../../src/adapters/demo.ts";
import type { LaunchOrder } from "../../src/control/launch.ts";
import { readNotes, unsaid } from "../../src/control/notes.ts";
import { MayStillBegin, startInHost } from "../../src/control/start-hosted.ts";
import { AgentctlError } from "../../src/core/problem.ts";

const folder = mkdtempSync(join(tmpdir(), "agentctl-hosted-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const host: HostProtocol = {
  ...(demo.host as HostProtocol),
  create: () => ({ opening: ["create\n"], next: (heard) => ({ answer: { ok: true, value: heard.join("") } }) }),
};
const adapter: Adapter = { ...demo, title: "Demo", host };

let count = 0;

/** Listens as a host of this process, and tells what it was asked; null: nothing is answered to that. */
function hostThat(answers: Record<string, string | null>) {
  count += 1;
  const home = join(folder, String(count));
  mkdirSync(join(home, "hosts"), { recursive: true });
  const heard = Promise.withResolvers<void>();
  const server = Bun.listen({
    unix: join(home, "hosts", `${process.pid}.sock`),
    socket: {
      data(socket, bytes) {
        const answer = answers[bytes.toString().trim()] ?? null;
        if (answer === null) heard.resolve();
        else socket.end(answer);
      },
    },
  });
  const order: LaunchOrder = {
    adapter,
    command: [],
    order: { kind: "new", session: null, model: null, permission: null, prompt: "x", extra: [] },
    cwd: folder,
    home,
    env: { HOME: home },
    note: { ...unsaid },
    maxTimeMs: null,
    startTimeoutMs: 10_000,
    tied: false,
    before: null,
  };
  return { heard: heard.promise, order, [Symbol.dispose]: () => server.stop(true) };
}

/** Interrupted when the host has heard something that it does not answer. */
async function interruptedIn(answers: Record<string, string | null>): Promise<AgentctlError> {
  using there = hostThat(answers);
  const interrupted = there.heard.then(() => {
    throw new AgentctlError("interrupted", "interrupted; what was started was ended");
  });
  try {
    await startInHost(there.order, host, interrupted);
  } catch (error) {
    if (error instanceof AgentctlError) return error;
    throw error;
  }
  throw new Error("it has begun");
}

test("interrupted when the host was asked to begin: it may begin all the same", async () => {
  const error = await interruptedIn({ "?": '{"sessions":[]}' });
  expect(error).toBeInstanceOf(MayStillBegin);
  expect([error.code, error.message]).toEqual([
    "interrupted",
    "interrupted; Demo was asked already and may begin all the same",
  ]);
});

test("interrupted while it is looked for: nothing was started", async () => {
  const error = await interruptedIn({});
  expect(error).not.toBeInstanceOf(MayStillBegin);
  expect([error.code, error.message]).toEqual(["interrupted", "interrupted; nothing was started"]);
});

test("not interrupted, it has begun", async () => {
  using there = hostThat({ "?": '{"sessions":[]}', create: "its-id" });
  const { id, holder, at } = await startInHost(there.order, host, Promise.withResolvers<never>().promise);
  expect([id, holder]).toEqual(["its-id", null]);
  // The note has the time before the host was asked: from then on its session may write.
  expect(readNotes(there.order.env).notes.map((note) => note.at)).toEqual([new Date(at).toISOString()]);
});
