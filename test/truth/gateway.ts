// Gateways: one process that has every session of a data folder, and is asked over a WebSocket. The harness says what it has in
// mind; the process (gateway-process.ts) answers accordingly.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { overwriteArguments } from "./disguise.ts";
import { type FakeAgent, isSuspended, spawnQuiet } from "./fake-agent.ts";
import { absentAsNull, readProcName, until } from "./proc.ts";
import { parseObject } from "./read-record.ts";

export interface Run {
  sessionId: string;
  /** What it waits for, if a person is asked. */
  asks: { kind: "permission" | "question"; text: string } | null;
}

/**
 * "blind": it does not tell what waits for people. "odd": whether a session is at work stands elsewhere in its answers. "local":
 * a command that works without a gateway, and listens nowhere. "draining": it was asked to end.
 */
export type GatewayManner = (typeof quickManners)[number] | "silent" | "local" | "draining";

/** Those that answer, or fail, at once. */
export const quickManners = ["true", "blind", "odd", "refusing", "starting", "garbage", "hanging up"] as const;

export interface Memory {
  manner: GatewayManner;
  token: string;
  runs: Run[];
  /** Sessions that it names although they have no run. */
  others: string[];
  /** So many sessions in one answer. */
  page: number;
  database: string;
}

export interface GatewayFormat {
  /** What its process calls itself: the name in the process table, and the title over its arguments. */
  name(argv: readonly string[]): string;
  title(argv: readonly string[]): string;
  /** Below its home: the file whose lock is the data folder's, and the one that may hold the token. */
  lock: string;
  settings: string;
  tokenVariable: string;
  /** What a run is at after an event; null: it is over; undefined: as before. */
  runAfter(event: string, fields: Record<string, unknown>): Pick<Run, "asks"> | null | undefined;
}

export interface GatewayBirth {
  format: GatewayFormat;
  argv: string[];
  home: string;
  cwd: string;
  environment: Record<string, string>;
  memoryPath: string;
  memory: Memory;
  tokenIn: "environment" | "settings";
  /** A gateway that is starting has not got it yet. */
  hasLock: boolean;
}

/** Its arguments are not to be seen: some of them are words to us. */
export function birthOf(
  format: GatewayFormat,
  argv: string[],
  place: { home: string; cwd: string; path: string; environment: Record<string, string>; database: string },
): GatewayBirth {
  const { home, cwd, path: memoryPath, environment, database } = place;
  const manner = argv.includes("--local") ? "local" : "true";
  const memory: Memory = { manner, token: crypto.randomUUID(), runs: [], others: [], page: 1, database };
  const tokenIn = argv.includes("token in its settings") ? "settings" : "environment";
  const hasLock = !argv.includes("not yet");
  return { format, argv, home, cwd, environment, memoryPath, memory, tokenIn, hasLock };
}

const program = join(import.meta.dir, "gateway-process.ts");

export function spawnGateway(birth: GatewayBirth) {
  const { format, home, memory, memoryPath } = birth;
  const lock = join(home, format.lock);
  mkdirSync(dirname(lock), { recursive: true });
  writeMemory(memoryPath, memory);
  if (birth.tokenIn === "settings") writeSettings(join(home, format.settings), memory.token);
  const own = {
    ...{ FAKE_MEMORY: memoryPath, FAKE_LOCK: birth.hasLock ? lock : "", FAKE_NAME: format.name(birth.argv) },
    ...{ BUN_RUNTIME_TRANSPILER_CACHE_PATH: "0" },
    ...(birth.tokenIn === "environment" ? { [format.tokenVariable]: memory.token } : {}),
  };
  return spawnQuiet([process.execPath, program], birth.cwd, { ...birth.environment, ...own });
}

export async function untilReady(pid: number, { format, argv }: GatewayBirth): Promise<void> {
  await until("a gateway that is ready", () => readProcName(pid) === format.name(argv));
  overwriteArguments(pid, format.title(argv));
}

export function writeSettings(path: string, token: string): void {
  const settings = { gateway: { mode: "local", bind: "loopback", auth: { mode: "token", token } } };
  writeFileSync(path, `// settings\n${JSON.stringify(settings, null, 2)}\n`);
}

export function readMemory(path: string): Memory {
  return JSON.parse(readFileSync(path, "utf8"));
}

function writeMemory(path: string, memory: Memory): void {
  writeFileSync(`${path}.tmp`, JSON.stringify(memory));
  renameSync(`${path}.tmp`, path);
}

/** The state that it would report; null: it cannot be asked. */
export function answerOf(fake: FakeAgent, home: string): Memory | null {
  const { gateway } = fake.format;
  if (fake.memory === null || gateway === undefined || isSuspended(fake)) return null;
  const memory = readMemory(fake.memory.path);
  if (!["true", "blind", "odd"].includes(memory.manner) || !fake.memory.hasLock) return null;
  return fake.memory.tokenIn === "environment" || tokenIn(join(home, gateway.settings)) === memory.token
    ? memory
    : null;
}

/** What it says of a session that it works on. */
export function runOf(fake: FakeAgent, home: string, id: string): Run | null {
  return answerOf(fake, home)?.runs.find(({ sessionId }) => sessionId === id) ?? null;
}

/** It listens, and yet no answer of it can be had. */
export function isAskedInVain(fake: FakeAgent, home: string): boolean {
  if (fake.memory === null || !fake.memory.hasLock || answerOf(fake, home) !== null) return false;
  return readMemory(fake.memory.path).manner !== "local";
}

export function changeMemory({ memory }: FakeAgent, change: (memory: Memory) => Partial<Memory>): void {
  if (memory === null) throw new Error("harness: no gateway");
  const before = readMemory(memory.path);
  writeMemory(memory.path, { ...before, ...change(before) });
}

/** What it has in mind of a session after an event. */
export function noteRun(fake: FakeAgent, id: string, event: string, fields: Record<string, unknown>): void {
  const run = fake.format.gateway?.runAfter(event, fields);
  if (run === undefined) return;
  changeMemory(fake, ({ runs, others }) => {
    const left = {
      runs: runs.filter(({ sessionId }) => sessionId !== id),
      others: others.filter((each) => each !== id),
    };
    return run === null
      ? { ...left, others: [...left.others, id] }
      : { ...left, runs: [...left.runs, { sessionId: id, ...run }] };
  });
}

function tokenIn(path: string): string | null {
  const text = absentAsNull(() => readFileSync(path, "utf8")) ?? "";
  const { gateway } = parseObject(text.replace(/^\/\/.*$/m, "")) ?? {};
  return (gateway as { auth?: { token?: string } } | undefined)?.auth?.token ?? null;
}
