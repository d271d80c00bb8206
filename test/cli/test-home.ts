// A temporary home with the built binary. Its demo agents are real processes, which are killed by pid after the test.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const binary = join(import.meta.dir, "../../dist/agentctl");

export interface Answer {
  code: number;
  out: string;
  err: string;
}

export interface Agent {
  pid: number;
  id: string;
  type(line: string): void;
  end(signal?: NodeJS.Signals): Promise<void>;
}

/** On the device of `/`: inside a pid namespace a store elsewhere could have invisible owners, and agentctl says so. */
const base = (): string => {
  const root = statSync("/").dev;
  return [tmpdir(), "/var/tmp", import.meta.dir].find((folder) => statSync(folder).dev === root) ?? tmpdir();
};

export class TestHome implements AsyncDisposable {
  readonly root = realpathSync(mkdtempSync(join(base(), "agentctl-cli-")));
  readonly home = join(this.root, "demo-home");
  readonly env: Record<string, string> = {
    HOME: this.root,
    PATH: process.env["PATH"] ?? "/bin",
    DEMO_AGENT_HOME: this.home,
    AGENTCTL_HOME: join(this.root, ".agentctl"),
  };
  private readonly agents: Agent[] = [];

  async run(args: readonly string[], options: { env?: Record<string, string>; cwd?: string } = {}): Promise<Answer> {
    const child = Bun.spawn([binary, ...args], {
      env: { ...this.env, ...options.env },
      cwd: options.cwd ?? this.root,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return { code, out, err };
  }

  async json<T>(...args: string[]): Promise<T> {
    const { out, err, code } = await this.run([...args, "--json"]);
    if (out === "") throw new Error(`agentctl ${args.join(" ")} printed nothing, exit ${code}: ${err}`);
    return JSON.parse(out) as T;
  }

  list = (...args: string[]): Promise<List> => this.json<List>("list", "-a", ...args);

  /** Waits until the session shows the wanted status. */
  async until(id: string, status: string): Promise<Listed> {
    const end = Date.now() + 10_000;
    for (;;) {
      const row = (await this.list()).sessions.find((session) => session.id === id);
      if (row?.status === status) return row;
      if (Date.now() > end) throw new Error(`${id} is ${row?.status ?? "not there"}, not ${status}`);
    }
  }

  start(steps: readonly string[], options: { cwd?: string; id?: string; env?: Record<string, string> } = {}): Agent {
    const id = options.id ?? crypto.randomUUID();
    const cwd = options.cwd ?? this.folder("work");
    const child = Bun.spawn([binary, "demo-agent", "--session-id", id, ...steps], {
      env: { ...this.env, ...options.env },
      cwd,
      stdin: "pipe",
      stdout: "ignore",
      stderr: "inherit",
      detached: true,
    });
    const agent: Agent = {
      pid: child.pid,
      id,
      type: (line) => {
        child.stdin.write(`${line}\n`);
        child.stdin.flush();
      },
      end: async (signal = "SIGKILL") => {
        child.kill(signal);
        await child.exited;
      },
    };
    this.agents.push(agent);
    return agent;
  }

  folder(...names: string[]): string {
    const path = join(this.root, ...names);
    mkdirSync(path, { recursive: true });
    return path;
  }

  /** A record of a session without a process. */
  record(lines: readonly Record<string, unknown>[], id: string = crypto.randomUUID(), home = this.home): string {
    mkdirSync(join(home, "sessions"), { recursive: true });
    const at = new Date().toISOString();
    const header = { type: "session", version: 1, id, cwd: join(this.root, "work"), model: "demo-1", parent: null };
    const text = [header, ...lines].map((line) => `${JSON.stringify({ at, ...line })}\n`).join("");
    writeFileSync(join(home, "sessions", `${id}.jsonl`), text);
    return id;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const agent of this.agents) await agent.end();
    rmSync(this.root, { recursive: true, force: true });
  }
}

export interface Listed {
  id: string | null;
  ref: string;
  home: string;
  state: string;
  activity: string | null;
  outcome: string | null;
  status: string;
  reason: string | null;
  reasonCode: string | null;
  waiting: { kind: string; text: string; tool: string | null; options: string[] } | null;
  link: string | null;
  process: { pid: number } | null;
  cwd: string | null;
  title: string | null;
  prompt: string | null;
  parent: string | null;
  name: string | null;
  launch: { id: string; name: string | null } | null;
}

export interface List {
  schema: number;
  at: string;
  complete: boolean;
  omitted: { older: number };
  sessions: Listed[];
  problems: { code: string; source: string }[];
}
