// A throw-away home for the real agents: its own home and directory, a clean environment, a fake model, real terminals.
// Everything started in it carries a mark in its environment; leaving the home ends all of it, by pid.
import {
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { type FakeModel, startFakeModel } from "./fake-model.ts";
import { setUpClaude, setUpCodex } from "./first-start-files.ts";
import { createScreen } from "./screen.ts";

export const claudeVersions = ["2.1.197", "2.1.325"] as const;
export type ClaudeVersion = (typeof claudeVersions)[number];
export const codexVersion = "0.166.0";

/** Where the real agents are. */
export const installed = join(import.meta.dir, "node_modules");
const nodeFolder = dirname(Bun.which("node") ?? "/usr/bin/node");

export interface TestHomeOptions {
  /** The agents of this home; Claude Code and Codex by default. */
  agents?: readonly { setUp(world: TestHome): void | Promise<void> }[];
  claude?: ClaudeVersion;
  /** "ask": interfaces show their trust dialog first. */
  trust?: "given" | "ask";
  /** "shared": Codex's interface starts its app-server daemon, as it does for users. */
  codexDaemon?: "off" | "shared";
  /** "never": no sandbox, no questions. "on-request": workspace sandbox; leaving it asks. */
  codexApproval?: "never" | "on-request";
}

export interface StartOptions {
  cwd?: string;
  env?: Record<string, string>;
  /** Fed to stdin and then closed; nothing: /dev/null. */
  input?: string;
  /** The agent leads a new kernel session. */
  detached?: boolean;
}

export interface Ending {
  code: number | null;
  signal: string | null;
}

export interface Agent {
  pid: number;
  /** Field 22 of /proc/<pid>/stat. */
  start: string;
  command: string[];
  exited: Promise<Ending>;
  signal(name: NodeJS.Signals): void;
}

export interface Headless extends Agent {
  stdout(): string;
  stderr(): string;
}

export interface Tui extends Agent {
  type(text: string): void;
  press(...keys: Key[]): void;
  screen(): string;
  /** Waits until the screen shows this. */
  shows(sign: RegExp, deadlineMs?: number): Promise<string>;
  /** Closes the terminal, as closing its window does. */
  close(): void;
}

export interface SeenProcess {
  pid: number;
  parent: number;
  session: number;
  state: string;
  start: string;
  name: string;
  exe: string | null;
  argv: string[];
}

export interface TestHome extends AsyncDisposable {
  dir: string;
  home: string;
  /** A git repository with one commit. */
  cwd: string;
  claudeHome: string;
  codexHome: string;
  env: Record<string, string>;
  model: FakeModel;
  start(command: string[], options?: StartOptions): Headless;
  open(command: string[], options?: StartOptions): Tui;
  /** The home's live processes, by the mark in their environment. */
  processes(): SeenProcess[];
  /** Makes this file a command that PATH finds, as npm does: by a link. */
  addCommand(name: string, file: string): void;
  /** Gives all agents of this home a newer Node than ours. */
  useNewNode(): void;
}

const keys = {
  Enter: "\r",
  Escape: "\x1b",
  Up: "\x1b[A",
  Down: "\x1b[B",
  Tab: "\t",
  "Shift-Tab": "\x1b[Z",
  "Ctrl-C": "\x03",
  "Ctrl-D": "\x04",
  "Ctrl-Z": "\x1a",
} as const;
export type Key = keyof typeof keys;

/** The native binary, without npm's node wrapper. */
export const codexBinary = (): string => {
  const vendor = join(installed, "@openai", "codex-linux-x64", "vendor");
  const [triple = ""] = readdirSync(vendor);
  return join(vendor, triple, "bin", "codex");
};

export async function createTestHome(options: TestHomeOptions = {}): Promise<TestHome> {
  const dir = mkdtempSync("/tmp/world-");
  const home = join(dir, "home");
  const cwd = join(home, "project");
  const claudeHome = join(home, ".claude");
  const codexHome = join(home, ".codex");
  for (const folder of [cwd, join(dir, "bin"), join(dir, "tmp"), join(dir, "out")])
    mkdirSync(folder, { recursive: true });
  const model = startFakeModel();
  const mark = `AGENTCTL_TEST_WORLD=${dir}`;
  const env: Record<string, string> = {
    AGENTCTL_TEST_WORLD: dir,
    HOME: home,
    PATH: `${join(dir, "bin")}:${nodeFolder}:/usr/bin:/bin`,
    // Codex makes no helper links for a home below the temporary folder: so the home must not be below it.
    TMPDIR: join(dir, "tmp"),
    TERM: "xterm-256color",
    LANG: "C.UTF-8",
    SHELL: "/bin/bash",
  };
  await commitSomething(cwd, env);

  let outputs = 0;
  const terminals: Bun.Terminal[] = [];
  const start = (command: string[], given: StartOptions = {}): Headless => {
    outputs += 1;
    const out = join(dir, "out", `${outputs}.out`);
    const err = join(dir, "out", `${outputs}.err`);
    const child = Bun.spawn(command, {
      cwd: given.cwd ?? cwd,
      env: { ...env, PWD: given.cwd ?? cwd, ...given.env },
      stdin: given.input === undefined ? "ignore" : new Blob([given.input]),
      stdout: openSync(out, "w"),
      stderr: openSync(err, "w"),
      detached: given.detached === true,
    });
    return {
      ...agentOf(child, command),
      stdout: () => readFileSync(out, "utf8"),
      stderr: () => readFileSync(err, "utf8"),
    };
  };

  const open = (command: string[], given: StartOptions = {}): Tui => {
    const decoder = new TextDecoder();
    const screen = createScreen(120, 40, (text) => terminal.write(text));
    const terminal = new Bun.Terminal({
      cols: 120,
      rows: 40,
      data: (_, bytes) => screen.write(decoder.decode(bytes, { stream: true })),
    });
    terminals.push(terminal);
    // Bun 1.4.4 does not make the terminal the child's controlling terminal, so closing it would send no SIGHUP.
    const child = Bun.spawn(["setsid", "--ctty", ...command], {
      cwd: given.cwd ?? cwd,
      env: { ...env, PWD: given.cwd ?? cwd, ...given.env },
      terminal,
    });
    return {
      ...agentOf(child, command),
      type: (text) => void terminal.write(text),
      press: (...pressed) => {
        for (const key of pressed) terminal.write(keys[key]);
      },
      screen: () => screen.text(),
      shows: (sign, deadlineMs = patienceMs) =>
        waitFor(`${sign} on the screen`, () => (sign.test(screen.text()) ? screen.text() : null), {
          deadlineMs,
          explain: () => screen.text(),
        }),
      close: () => terminal.close(),
    };
  };

  const processes = (): SeenProcess[] => readProcesses(mark);

  const world: TestHome = {
    dir,
    home,
    cwd,
    claudeHome,
    codexHome,
    env,
    model,
    start,
    open,
    processes,
    addCommand: (name, file) => symlinkSync(file, join(dir, "bin", name)),
    useNewNode: () => {
      env["PATH"] = env["PATH"]?.replace(nodeFolder, newNodeFolder()) ?? "";
    },
    async [Symbol.asyncDispose]() {
      // Daemons respawn what they lost: repeat until nothing with the mark is left.
      await waitFor("the world's end", () => {
        const left = processes();
        for (const { pid } of left) kill(pid, "SIGKILL");
        return left.length === 0;
      });
      for (const terminal of terminals) terminal.close();
      await model[Symbol.asyncDispose]();
      rmSync(dir, { recursive: true, force: true });
    },
  };
  if (options.agents === undefined) {
    setUpClaude(world, options);
    setUpCodex(world, options);
  } else for (const agent of options.agents) await agent.setUp(world);
  return world;
}

function newNodeFolder(): string {
  const [name] = readdirSync(installed).filter((each) => /^node-linux-/.test(each));
  if (name === undefined) throw new Error("the newer Node is not installed");
  return join(installed, name, "bin");
}

/** For every sign that is waited for; WAIT_MS gives a busy machine more. */
const patienceMs = Number(process.env["WAIT_MS"] ?? 30_000);

export interface WaitOptions {
  deadlineMs?: number;
  /** What to say about the home when the deadline passes. */
  explain?: () => string;
}

/** Looks again and again until there is something (not null, undefined or false); fails at the deadline. */
export async function waitFor<T>(
  what: string,
  look: () => T | null | undefined | false | Promise<T | null | undefined | false>,
  { deadlineMs = patienceMs, explain }: WaitOptions = {},
): Promise<T> {
  const deadline = performance.now() + deadlineMs;
  while (true) {
    const seen = await look();
    if (seen !== null && seen !== undefined && seen !== false) return seen;
    if (performance.now() > deadline)
      throw new Error(`waited ${deadlineMs} ms for ${what}${explain ? `\n${explain()}` : ""}`);
    await Bun.sleep(15);
  }
}

/** The parsed file, or null while it is absent or half-written. */
function readJson(path: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(readFileSync(path, "utf8"));
    return typeof value === "object" && value !== null ? { ...value } : null;
  } catch (error) {
    if (isGone(error) || error instanceof SyntaxError) return null;
    throw error;
  }
}

/** Complete lines of a JSONL file, parsed; none while it is absent. */
export function readLines(path: string): Record<string, unknown>[] {
  try {
    const lines = readFileSync(path, "utf8").split("\n");
    return lines.slice(0, -1).map((line) => JSON.parse(line));
  } catch (error) {
    if (isGone(error)) return [];
    throw error;
  }
}

/** Files below a folder, as paths relative to it; none while it is absent. */
export function filesBelow(folder: string, pattern: string): string[] {
  try {
    return [...new Bun.Glob(pattern).scanSync({ cwd: folder, dot: true, onlyFiles: true })].sort();
  } catch (error) {
    if (isGone(error)) return [];
    throw error;
  }
}

/** Claude's announcement of this process. */
export const announcement = (world: TestHome, pid: number): Record<string, unknown> | null =>
  readJson(join(world.claudeHome, "sessions", `${pid}.json`));

/** Claude's transcript of this session, wherever its slug put it. */
export function transcript(world: TestHome, session: string): string | null {
  const [path] = filesBelow(world.claudeHome, `projects/*/${session}.jsonl`);
  return path === undefined ? null : join(world.claudeHome, path);
}

/** Codex's rollout of this thread, archived or not. */
export function rollout(world: TestHome, thread: string): string | null {
  const [path] = filesBelow(world.codexHome, `{sessions,archived_sessions}/**/rollout-*-${thread}.jsonl`);
  return path === undefined ? null : join(world.codexHome, path);
}

/** Threads whose writer lock this process holds: an open descriptor whose fdinfo shows a lock. */
export function lockedThreads(pid: number): string[] {
  const found: string[] = [];
  for (const fd of listing(`/proc/${pid}/fd`)) {
    try {
      const id = /thread-writer-locks\/([0-9a-f-]{36})\.lock$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1];
      if (id && readFileSync(`/proc/${pid}/fdinfo/${fd}`, "utf8").includes("lock:")) found.push(id);
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }
  return found;
}

function agentOf(child: Bun.Subprocess, command: string[]): Agent {
  const { pid } = child;
  const start = readStat(pid)?.start ?? "";
  return {
    pid,
    start,
    command,
    exited: child.exited.then((code) => ({
      code: child.signalCode === null ? code : null,
      signal: child.signalCode === null ? null : String(child.signalCode),
    })),
    signal: (name) => {
      if (readStat(pid)?.start === start) kill(pid, name);
    },
  };
}

async function commitSomething(cwd: string, env: Record<string, string>): Promise<void> {
  const who = ["-c", "user.name=user", "-c", "user.email=user@example.invalid"];
  for (const args of [
    ["init", "-q", "-b", "main"],
    [...who, "commit", "-q", "--allow-empty", "-m", "start"],
  ]) {
    const { exitCode, stderr } = Bun.spawnSync(["git", ...args], { cwd, env });
    if (exitCode !== 0) throw new Error(`git ${args.join(" ")}: ${stderr.toString()}`);
  }
}

function readProcesses(mark: string): SeenProcess[] {
  const found: SeenProcess[] = [];
  for (const name of listing("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    const environ = slurp(`/proc/${pid}/environ`);
    if (environ === null || !environ.split("\0").includes(mark)) continue;
    const stat = readStat(pid);
    if (stat === null || stat.state === "Z" || stat.state === "X") continue;
    found.push({
      pid,
      ...stat,
      exe: linkTarget(`/proc/${pid}/exe`),
      argv: (slurp(`/proc/${pid}/cmdline`) ?? "").split("\0").slice(0, -1),
    });
  }
  return found;
}

function readStat(pid: number): Omit<SeenProcess, "pid" | "exe" | "argv"> | null {
  const text = slurp(`/proc/${pid}/stat`);
  if (text === null) return null;
  const end = text.lastIndexOf(")");
  const fields = text.slice(end + 2).split(" ");
  return {
    name: text.slice(text.indexOf("(") + 1, end),
    state: fields[0] ?? "",
    parent: Number(fields[1]),
    session: Number(fields[3]),
    start: fields[19] ?? "",
  };
}

function slurp(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (isGone(error)) return null;
    throw error;
  }
}

function linkTarget(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch (error) {
    if (isGone(error)) return null;
    throw error;
  }
}

function listing(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (isGone(error)) return [];
    throw error;
  }
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!isGone(error)) throw error;
  }
}

/** Gone, or not ours to look at: nothing of this home. */
const isGone = (error: unknown): boolean =>
  error instanceof Error &&
  "code" in error &&
  ["ENOENT", "ESRCH", "EACCES", "EPERM", "ENOTDIR"].includes(String(error.code));
