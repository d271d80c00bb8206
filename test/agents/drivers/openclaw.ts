// OpenClaw: sessions live in its gateway, so it has separate tests. This file sets up a gateway, asks it and reads its data.
import { Database } from "bun:sqlite";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Headless, installed, type TestHome, waitFor } from "../test-home.ts";

const port = 28_990;
/** A gateway starts slowly, and does everything in one thread. Shorter than a test may take: what waits in vain says so itself. */
export const patienceMs = 180_000;
/** Must never show anywhere. */
export const token = "a-token-that-nobody-may-see";

const home = (world: TestHome): string => join(world.home, ".openclaw");

export const openclaw = {
  agent: "openclaw",
  version: "2026.9.6",
  setUp,
  home,
  files: ["agents/*/agent/openclaw-agent.sqlite"],
};

function setUp(world: TestHome): void {
  const model = { id: "fake-model", name: "fake", reasoning: false, input: ["text"], contextWindow: 100_000 };
  const cost = { input: 1, output: 2, cacheRead: 0, cacheWrite: 0 };
  const fake = { baseUrl: `${world.model.url}/v1`, apiKey: "dummy", api: "openai-completions" };
  const settings = {
    gateway: { mode: "local", bind: "loopback", port, auth: { mode: "token", token } },
    models: { mode: "merge", providers: { fake: { ...fake, models: [{ ...model, maxTokens: 4000, cost }] } } },
    agents: { defaults: { model: { primary: "fake/fake-model" }, workspace: world.cwd, skipBootstrap: true } },
  };
  mkdirSync(home(world), { recursive: true });
  writeFileSync(join(home(world), "openclaw.json"), JSON.stringify(settings));
  world.useNewNode();
  world.addCommand("openclaw", join(installed, "openclaw/openclaw.mjs"));
}

export async function startGateway(world: TestHome, env: Record<string, string> = {}): Promise<Headless> {
  const gateway = world.start(["openclaw", "gateway", "run", "--allow-unconfigured"], { env });
  const said = () => Bun.stripANSI(gateway.stderr() + gateway.stdout());
  const isReady = (): boolean => /\[gateway\] ready/.test(said());
  await waitFor("a gateway", isReady, { deadlineMs: patienceMs, explain: said });
  await warmUp(world);
  return gateway;
}

/** On a busy machine the first turn of a gateway has been seen not to end well, once in many runs: this one is for that, and is deleted. */
async function warmUp(world: TestHome): Promise<void> {
  await using client = await Client.connect();
  const { key, id } = await begin(client, world, "warm up ;; SAY=warm");
  await untilStatus(world, id, "done", "failed");
  await client.ask("sessions.delete", { key, deleteTranscript: true });
}

interface Said {
  type: string;
  id?: string;
  event?: string;
  ok?: boolean;
  payload?: Record<string, unknown>;
  error?: { message: string };
}

/** A client that is connected to the gateway, as OpenClaw's interfaces are. */
export class Client implements AsyncDisposable {
  readonly greeting = Promise.withResolvers<Said>();
  private readonly socket = new WebSocket(`ws://127.0.0.1:${port}`);
  private readonly waiting = new Map<string, (said: Said) => void>();
  private count = 0;

  /** "approvals": it can show questions to a person, so the gateway waits for an answer. */
  static async connect(caps: string[] = []): Promise<Client> {
    const client = new Client();
    client.socket.onmessage = ({ data }) => client.hear(JSON.parse(String(data)) as Said);
    await client.greeting.promise;
    await client.ask("connect", {
      ...{ minProtocol: 4, maxProtocol: 4, role: "operator", caps, auth: { token } },
      scopes: ["operator.read", "operator.write", "operator.admin", "operator.approvals", "operator.questions"],
      client: { id: "cli", version: "1", platform: "linux", mode: "cli" },
    });
    return client;
  }

  async ask(method: string, params: Record<string, unknown>): Promise<Record<string, unknown>> {
    this.count += 1;
    const id = String(this.count);
    const { promise, resolve } = Promise.withResolvers<Said>();
    this.waiting.set(id, resolve);
    this.socket.send(JSON.stringify({ type: "req", id, method, params }));
    const { ok, payload, error } = await promise;
    if (ok !== true) throw new Error(`${method}: ${error?.message}`);
    return payload ?? {};
  }

  private hear(said: Said): void {
    if (said.event === "connect.challenge") this.greeting.resolve(said);
    if (said.type === "res") this.waiting.get(said.id ?? "")?.(said);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.close();
  }
}

export interface Begun {
  key: string;
  id: string;
}

export async function begin(client: Client, world: TestHome, text: string, mode = "full"): Promise<Begun> {
  const params = { message: text, permissionMode: mode, cwd: world.cwd };
  const { key, sessionId } = await client.ask("sessions.create", params);
  return { key: String(key), id: String(sessionId) };
}

/** Its rows as they are now; none while there is no database. */
export function rows(world: TestHome, sql: string, ...values: string[]): Record<string, unknown>[] {
  const path = join(home(world), "agents/main/agent/openclaw-agent.sqlite");
  if (!existsSync(path)) return [];
  using database = new Database(path, { readonly: true });
  return database.query<Record<string, unknown>, string[]>(sql).all(...values);
}

/** What its tables call the session's last run. */
const statusOf = (world: TestHome, id: string): unknown =>
  rows(world, "SELECT status FROM session_windows WHERE session_id = ?", id)[0]?.["status"] ?? null;

export const untilStatus = (world: TestHome, id: string, ...statuses: string[]): Promise<unknown> =>
  waitFor(`${id} ${statuses.join(" or ")}`, () => statuses.includes(String(statusOf(world, id))), {
    deadlineMs: patienceMs,
    explain: () => {
      const events = rows(world, "SELECT * FROM transcript_events WHERE session_id = ?", id);
      const told = { status: statusOf(world, id), requests: world.model.requests.length, events };
      return JSON.stringify(told, null, 1).slice(0, 8000);
    },
  });

/** The process of a tool that sleeps for so long. */
export const sleeping = (world: TestHome, seconds: number): Promise<{ pid: number }> =>
  waitFor(`sleep ${seconds}`, () => world.processes().find(({ argv }) => argv.join(" ") === `sleep ${seconds}`), {
    deadlineMs: patienceMs,
  });
