// A temporary home for commands that start agents. Its processes are found by their HOME and killed at the end.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { waitFor } from "../conformance/wait.ts";
import { type Answer, binary, type Listed, TestHome } from "./test-home.ts";

export interface Process {
  pid: number;
  parent: number;
  /** Its kernel session. */
  session: number;
  argv: string[];
  env: Record<string, string>;
}

interface RunOptions {
  env?: Record<string, string>;
  cwd?: string;
  stdin?: string | Uint8Array;
}

export interface Running {
  pid: number;
  answer: Promise<Answer>;
  said(): string;
  kill(signal: NodeJS.Signals): void;
}

export class LaunchTestHome extends TestHome {
  readonly work = this.folder("work");

  begin(command: readonly string[], { env, cwd, stdin }: RunOptions = {}): Running {
    const child = Bun.spawn([...command], {
      env: { ...this.env, ...env },
      cwd: cwd ?? this.work,
      stdin: stdin === undefined ? "ignore" : Buffer.from(stdin),
      stdout: "pipe",
      stderr: "pipe",
    });
    let said = "";
    const listen = async (): Promise<void> => {
      const decoder = new TextDecoder();
      for await (const chunk of child.stderr) said += decoder.decode(chunk, { stream: true });
    };
    const answer = Promise.all([child.stdout.text(), listen(), child.exited]);
    return {
      pid: child.pid,
      answer: answer.then(([out, , code]) => ({ out, err: said, code })),
      said: () => said,
      kill: (signal) => child.kill(signal),
    };
  }

  agentctl(...args: string[]): Promise<Answer> {
    return this.begin([binary, ...args]).answer;
  }

  /** Launches the demo agent, waits for its first turn and returns the id of its session. */
  async launched(prompt: string, ...args: string[]): Promise<string> {
    const { code, out, err } = await this.agentctl("launch", "demo", "-p", prompt, ...args);
    if (code !== 0) throw new Error(`launch: exit ${code}: ${err}`);
    await this.promptOf(out.trim());
    return out.trim();
  }

  /** Read from the record, which the agent writes a moment after its announcement. */
  async promptOf(id: string): Promise<string> {
    const path = join(this.home, "sessions", `${id}.jsonl`);
    let text: unknown;
    await waitFor(`the prompt of ${id}`, () => {
      const lines = existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(0, -1) : [];
      text = lines.map((line) => JSON.parse(line) as Record<string, unknown>).find(({ type }) => type === "prompt")?.[
        "text"
      ];
      return text !== undefined;
    });
    return String(text);
  }

  /** Everything alive that was started in this home. */
  processes(): Process[] {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .flatMap((name) => readProcess(Number(name)) ?? [])
      .filter(({ env }) => env["HOME"] === this.root);
  }

  launchedAgents = (): Process[] => this.processes().filter(({ argv, env }) => isDemo(argv) && "AGENTCTL_TAG" in env);
  holders = (): Process[] => this.processes().filter(({ argv }) => argv[3] === "agentctl-holder");

  async untilAlone(): Promise<void> {
    try {
      await waitFor("the end of everything", () => this.processes().length === 0);
    } catch (error) {
      throw new Error(`still there: ${JSON.stringify(this.processes().map(({ pid, argv }) => [pid, ...argv]))}`, {
        cause: error,
      });
    }
  }

  async oneAgent(): Promise<Process> {
    await waitFor("the agent", () => this.launchedAgents().length > 0);
    const [agent] = this.launchedAgents();
    if (agent === undefined) throw new Error("the agent is gone again");
    return agent;
  }

  async row(id: string): Promise<Listed> {
    const found = (await this.list()).sessions.find((session) => session.id === id);
    if (found === undefined) throw new Error(`${id} is not listed`);
    return found;
  }

  /** The files that agentctl keeps of its launches. */
  kept = (): string[] =>
    ["launches", "logs"].flatMap((folder) => {
      const path = join(this.root, ".agentctl", folder);
      return existsSync(path) ? readdirSync(path).map((name) => join(path, name)) : [];
    });

  async untilFile(name: string): Promise<string> {
    const path = join(this.work, name);
    await waitFor(name, () => existsSync(path));
    return readFileSync(path, "utf8");
  }

  write(name: string, text: string, mode = 0o644): string {
    const path = join(this.root, name);
    writeFileSync(path, text, { mode });
    return path;
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    for (let left = this.processes(); left.length > 0; left = this.processes()) {
      for (const { pid } of left) end(pid);
      await Bun.sleep(2);
    }
    await super[Symbol.asyncDispose]();
    rmSync(this.root, { recursive: true, force: true });
  }
}

const isDemo = (argv: readonly string[]): boolean => argv[1] === "demo-agent" || argv[0] === "demo-agent";

export const isAlive = (pid: number): boolean => readProcess(pid) !== null;

function end(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}

/** null: gone, or dead. */
export function readProcess(pid: number): Process | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const [state = "", parent, , session] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if ("ZX".includes(state)) return null;
    const words = (name: string) => readFileSync(`/proc/${pid}/${name}`, "utf8").split("\0").slice(0, -1);
    const env = Object.fromEntries(words("environ").map((each) => /^([^=]*)=(.*)$/s.exec(each)?.slice(1, 3) ?? []));
    return { pid, parent: Number(parent), session: Number(session), argv: words("cmdline"), env };
  } catch (error) {
    if (error instanceof Error && "code" in error && ["ENOENT", "ESRCH"].includes(String(error.code))) return null;
    throw error;
  }
}

/** A command of a tool that writes its output to files in its directory; the file `.code` appears last. */
export const toFiles = (command: string, name = "answer"): string =>
  `{ ${command}; } >${name}.out 2>${name}.err; echo $? >${name}.tmp; mv ${name}.tmp ${name}.code`;
