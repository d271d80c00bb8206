// A temporary home for agents to be stopped, with tools that first write down their pids.
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type LaunchNote, unsaid, writeNote } from "../../src/control/notes.ts";
import { waitFor } from "../conformance/wait.ts";
import { type Agent, type Answer, binary, type Listed } from "./test-home.ts";
import { LaunchTestHome, readProcess } from "./test-home-launch.ts";

export interface StopAnswer extends Listed {
  ended: number[];
  leftovers: { pid: number; command: string; why: string; whyCode: string }[];
}

export class StopTestHome extends LaunchTestHome {
  /** An agent at work; the steps before that are done. */
  async working(steps: readonly string[] = [], options: Parameters<StopTestHome["start"]>[1] = {}): Promise<Agent> {
    const agent = this.start(["prompt:x", ...steps, "work:600"], options);
    await this.until(agent.id, "working");
    return agent;
  }

  /** A server with these sessions at work; its pid. */
  async serving(...ids: string[]): Promise<number> {
    const server = Bun.spawn([binary, "demo-agent", "serve"], {
      env: this.env,
      cwd: this.work,
      stdin: "pipe",
      stdout: "ignore",
      stderr: "inherit",
    });
    await waitFor("the server", () => existsSync(join(this.home, "servers", `${server.pid}.sock`)));
    for (const id of ids) server.stdin.write(`start ${id} Fix it\n`);
    server.stdin.flush();
    for (const id of ids) await this.until(id, "working");
    return server.pid;
  }

  /** Which process wrote this file of the working directory. */
  async pidIn(name: string): Promise<number> {
    const path = join(this.work, name);
    // A file is there a moment before its text is.
    await waitFor(name, () => existsSync(path) && readFileSync(path, "utf8").trim() !== "");
    return Number(readFileSync(path, "utf8"));
  }

  stop = (...args: string[]): Promise<Answer> => this.agentctl("stop", ...args);
  stopJson = (...args: string[]): Promise<StopAnswer> => this.json<StopAnswer>("stop", ...args);

  /** As `launch` would have noted it. */
  note(session: string, change: Partial<LaunchNote> = {}): string {
    const id = crypto.randomUUID();
    const at = new Date().toISOString();
    writeNote(this.env, { id, agent: "demo", home: this.home, session, at, ...unsaid, ...change });
    return id;
  }

  configure(config: unknown): void {
    const folder = this.folder(".config", "agentctl");
    writeFileSync(join(folder, "config.json"), JSON.stringify(config));
  }

  /** Another program that looks like a demo agent to the kernel. */
  linkAs(name: string, program: string): string {
    const path = join(this.folder("bin"), name);
    symlinkSync(program, path);
    return path;
  }

  /** The file that the agent would write into live/; `start` may be that of another process. */
  announce(session: string, pid: number, start = startOf(pid)): void {
    mkdirSync(join(this.home, "live"), { recursive: true });
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    const announcement = { pid, start, boot, namespace: null, session, cwd: this.work, at: new Date().toISOString() };
    writeFileSync(join(this.home, "live", `${pid}.json`), JSON.stringify(announcement));
  }
}

/** Shell words that write the shell's pid into a file, at once. */
export const says = (name: string): string => `echo $$ >${name}.tmp && mv ${name}.tmp ${name}`;

/** A shell script as one word of another. */
export const quoted = (script: string): string => `'${script.replaceAll("'", `'\\''`)}'`;

/** A script that says its pid and then lives on. */
export const stays = (name: string, before = ""): string => `${says(name)}; ${before} exec sleep 600`;

/** Forked twice, in a new kernel session, and reparented, as daemons are. */
export const leaves = (script: string): string => `(setsid sh -c ${quoted(script)} >/dev/null 2>&1 </dev/null &)`;

const statOf = (pid: number): string[] => {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
};

export const startOf = (pid: number): string => statOf(pid)[19] ?? "";
export const stateOf = (pid: number): string => statOf(pid)[0] ?? "";
export const parentOf = (pid: number): number => readProcess(pid)?.parent ?? 0;

/** The kernel gives the next pid after `ns_last_pid`; threads take pids too, so it may need several tries. */
export async function spawnAt(pid: number, command: string[], world: StopTestHome): Promise<Bun.Subprocess> {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    writeFileSync("/proc/sys/kernel/ns_last_pid", String(pid - 1));
    const child = Bun.spawn(command, { env: world.env, stdio: ["ignore", "ignore", "ignore"], cwd: world.work });
    if (child.pid === pid) return child;
    child.kill("SIGKILL");
    await child.exited;
  }
  throw new Error(`pid ${pid} could not be had again`);
}

/** Two clock ticks at least: within one, identities are equal (rule 12). */
export const ticksLater = (): Promise<void> => Bun.sleep(50);

/** A hand on a terminal: what it shows, and what a person types. */
export class AtTerminal {
  private shown = "";
  private readonly child;

  constructor(world: StopTestHome, args: readonly string[]) {
    this.child = Bun.spawn([binary, ...args], {
      env: { ...world.env, TERM: "xterm" },
      cwd: world.work,
      terminal: {
        data: (_terminal, bytes) => {
          this.shown += Buffer.from(bytes).toString("utf8");
        },
      },
    });
  }

  async shows(text: string): Promise<void> {
    await waitFor(text, () => this.shown.includes(text));
  }

  type(text: string): void {
    this.child.terminal?.write(text);
  }

  async ended(): Promise<{ code: number; shown: string }> {
    const code = await this.child.exited;
    this.child.terminal?.close();
    return { code, shown: this.shown };
  }
}
