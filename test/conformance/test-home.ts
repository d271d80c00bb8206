// A throw-away machine for one schedule: folders, the agents started in it, and the product's answers about them.
import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync } from "node:fs";
import { join } from "node:path";
import type { Subprocess } from "bun";
import type { Driver, Order, Place, Sign } from "./driver.ts";
import { type Folder, throwAwayFolder } from "./folder.ts";
import { waitFor } from "./wait.ts";

export interface Agent {
  pid: number;
  command: string[];
  tell(line: string): void;
  /** Sends the signal and waits for the end. */
  kill(signal: NodeJS.Signals): Promise<void>;
  /** Waits until the kernel has stopped or continued it. */
  pause(signal: "SIGSTOP" | "SIGCONT"): Promise<void>;
  ended(): Promise<void>;
}

export type Json = Readonly<Record<string, unknown>>;

const binary = join(import.meta.dir, "..", "..", "dist", "agentctl");
const answerMs = 10_000;

export class TestHome implements Disposable {
  readonly place: Place;
  private readonly folder: Folder = throwAwayFolder();
  private readonly started: Subprocess[] = [];

  constructor(readonly driver: Driver) {
    const root = this.folder.path;
    const place = { root, home: join(root, "home"), agentHome: join(root, "agent"), project: join(root, "project") };
    for (const folder of [place.home, place.agentHome, place.project]) mkdirSync(folder);
    this.place = { ...place, binary };
  }

  [Symbol.dispose](): void {
    // Not yet reaped by us, so the pid is still its own.
    for (const child of this.started) if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    this.folder[Symbol.dispose]();
  }

  start(order: Order): Agent {
    return this.spawn(this.driver.command(this.place, order));
  }

  spawn(command: string[], cwd = this.place.project): Agent {
    const child = Bun.spawn(command, {
      cwd,
      env: { PATH: "/usr/bin:/bin", ...this.driver.environment(this.place) },
      stdio: ["pipe", "ignore", "inherit"],
    });
    this.started.push(child);
    const ended = async (): Promise<void> => void (await child.exited);
    return {
      pid: child.pid,
      command,
      ended,
      tell: (line) => {
        child.stdin.write(line);
        child.stdin.flush();
      },
      kill: async (signal) => {
        child.kill(signal);
        await ended();
      },
      pause: async (signal) => {
        child.kill(signal);
        await waitFor(`${signal} to arrive`, () => (procState(child.pid) === "T") === (signal === "SIGSTOP"));
      },
    };
  }

  /** Started by a parent that never collects its children: killed, it stays a zombie. */
  async startUnreaped(order: Order): Promise<{ pid: number; kill(signal: NodeJS.Signals): Promise<void> }> {
    const said = join(this.place.root, "unreaped");
    const careless = ["/bin/sh", "-c", '"$@" & echo $! >"$said"; exec sleep 1000', "sh"];
    const command = [...careless, ...this.driver.command(this.place, order)];
    this.spawn(["/usr/bin/env", `said=${said}`, ...command]);
    await waitFor("the child's pid", () => existsSync(said) && readFileSync(said, "utf8").endsWith("\n"));
    const pid = Number(readFileSync(said, "utf8"));
    return {
      pid,
      kill: async (signal) => {
        process.kill(pid, signal);
        await waitFor("a zombie", () => procState(pid) === "Z");
      },
    };
  }

  async reaches(id: string, sign: Sign): Promise<void> {
    await waitFor(`${id} to be ${sign}`, () => this.driver.sign(this.place, id) === sign);
  }

  async recordHasLines(path: string, count: number): Promise<void> {
    const file = join(this.place.agentHome, path);
    await waitFor(`${count} lines`, () => existsSync(file) && readFileSync(file, "utf8").split("\n").length > count);
  }

  exists = (path: string): boolean => existsSync(path);

  /** Turns that the session's record closes. */
  turns(id: string): number {
    return this.driver.turns(this.place, id);
  }

  pidOf(list: Json, id: string): number {
    const row = (list["sessions"] as Json[]).find((session) => session["id"] === id);
    return Number((row?.["process"] as Json | null | undefined)?.["pid"]);
  }

  /** Makes every file of the agent a minute older. */
  age(): void {
    const then = Date.now() / 1000 - 60;
    for (const entry of readdirSync(this.place.agentHome, { recursive: true, withFileTypes: true }))
      if (entry.isFile()) utimesSync(join(entry.parentPath, entry.name), then, then);
  }

  async list(): Promise<Json> {
    return await this.ask("list", "-a", "--json");
  }

  async ask(...args: string[]): Promise<Json> {
    const child = Bun.spawn([binary, ...args], {
      cwd: this.place.root,
      env: {
        PATH: "/usr/bin:/bin",
        AGENTCTL_HOME: join(this.place.root, "agentctl"),
        ...this.driver.environment(this.place),
      },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: answerMs,
      killSignal: "SIGKILL",
    });
    const [stdout, stderr, exit] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    if (exit !== 0) throw new Error(`agentctl ${args.join(" ")} ended with ${exit}: ${stderr}`);
    return JSON.parse(stdout) as Json;
  }
}

/** The kernel's one-letter state; null: no such process. */
function procState(pid: number): string | null {
  const path = `/proc/${pid}/stat`;
  if (!existsSync(path)) return null;
  const stat = readFileSync(path, "latin1");
  return stat.charAt(stat.lastIndexOf(")") + 2);
}
