// A temporary home for the tests of acting commands, with records, servers, terminals and tmux servers.
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Answer, binary, TestHome } from "./test-home.ts";

export type Line = Record<string, unknown>;

/** A home with its own lock. It kills everything that was started in it: launched agents, servers, tmux servers. */
export class ServerTestHome extends TestHome {
  constructor() {
    super();
    this.env["XDG_RUNTIME_DIR"] = join(this.root, "runtime");
    mkdirSync(join(this.root, "runtime"), { mode: 0o700 });
    this.env["TMUX_TMPDIR"] = this.folder("tmux");
    this.env["TERM"] = "xterm";
    this.folder("work");
  }

  /** Runs a session to its end and returns its id. */
  async past(prompt: string, ...flags: string[]): Promise<string> {
    const id = await this.launch(prompt, ...flags);
    await this.wait(id);
    return id;
  }

  /** Launches a session and returns its id; it may still run. */
  async launch(prompt: string, ...flags: string[]): Promise<string> {
    const words = ["launch", "demo", "-p", prompt, ...flags];
    const { code, out, err } = await this.run(words, { cwd: this.folder("work") });
    if (code !== 0) throw new Error(`launch: ${err}`);
    return out.trim();
  }

  async wait(id: string): Promise<void> {
    await until(`the end of ${id}`, async () =>
      (await this.list()).sessions.some((each) => each.id === id && each.state === "stopped"),
    );
  }

  begin(...args: string[]): RunningCommand {
    return new RunningCommand(
      Bun.spawn([binary, ...args], { env: this.env, cwd: this.root, stdin: "ignore", stdout: "pipe", stderr: "pipe" }),
    );
  }

  /** The pids of everything that lives with this home in its environment. */
  pids(): number[] {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((pid) => pid !== process.pid && environmentOf(pid).includes(`HOME=${this.root}`) && isAlive(pid));
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    for (let left = this.pids(); left.length > 0; left = this.pids()) {
      for (const pid of left) kill(pid);
      await Bun.sleep(5);
    }
    await super[Symbol.asyncDispose]();
  }
}

export class RunningCommand {
  err = "";
  out = "";
  private readonly read: Promise<unknown>;

  constructor(private readonly child: Bun.Subprocess<"ignore", "pipe", "pipe">) {
    this.read = Promise.all([this.collect(child.stdout, "out"), this.collect(child.stderr, "err")]);
  }

  get pid(): number {
    return this.child.pid;
  }

  get isOver(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  get signal(): NodeJS.Signals | number | null {
    return this.child.signalCode;
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  async answer(): Promise<Answer> {
    const code = await this.child.exited;
    await this.read;
    return { code, out: this.out, err: this.err };
  }

  private async collect(stream: ReadableStream<Uint8Array>, into: "out" | "err"): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of stream) this[into] += decoder.decode(chunk, { stream: true });
  }
}

export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + 10_000;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`waited in vain for ${what}`);
    await Bun.sleep(5);
  }
}

export const recordPath = (world: TestHome, id: string, home = world.home): string =>
  join(home, "sessions", `${id}.jsonl`);

/** A record without its times and tokens. */
export function story(world: TestHome, id: string, home = world.home): Line[] {
  const path = recordPath(world, id, home);
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, "utf8").split("\n").slice(0, -1);
  return lines.map((line) => JSON.parse(line)).map(({ at: _at, tokens: _tokens, ...rest }: Line) => rest);
}

export const promptsOf = (world: TestHome, id: string, home = world.home): unknown[] =>
  story(world, id, home).flatMap(({ type, text }) => (type === "prompt" ? [text] : []));

export const lastType = (world: TestHome, id: string): unknown => story(world, id).at(-1)?.["type"];

/** A zombie is dead. */
export function isAlive(pid: number): boolean {
  const stat = readOf(pid, "stat");
  return stat !== "" && !/\) [ZX] /.test(stat);
}

export const environmentOf = (pid: number): string[] => readOf(pid, "environ").split("\0");
export const argvOf = (pid: number): string[] => readOf(pid, "cmdline").split("\0").slice(0, -1);
export const statusOf = (pid: number, field: string): string =>
  new RegExp(`^${field}:\\s*(.*)$`, "m").exec(readOf(pid, "status"))?.[1] ?? "";

/** Empty: the process is gone. */
function readOf(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && ["ENOENT", "ESRCH"].includes(String(error.code))) return "";
    throw error;
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}

/** `demo-agent serve`, controlled by lines on its stdin. */
export class Server {
  private readonly child;

  constructor(private readonly stage: ServerTestHome) {
    const { env } = stage;
    const stdio = { stdin: "pipe", stdout: "ignore", stderr: "inherit" } as const;
    this.child = Bun.spawn([binary, "demo-agent", "serve"], { env, cwd: stage.folder("work"), ...stdio });
  }

  get pid(): number {
    return this.child.pid;
  }

  /** A new session with an open turn. */
  async start(text: string): Promise<string> {
    const id = crypto.randomUUID();
    await until("the server", () => existsSync(join(this.stage.home, "servers", `${this.child.pid}.sock`)));
    await this.tell(`start ${id} ${text}`, id, "prompt");
    return id;
  }

  async tell(line: string, id: string, sign: string): Promise<void> {
    this.child.stdin.write(`${line}\n`);
    this.child.stdin.flush();
    await until(sign, () => lastType(this.stage, id) === sign);
  }
}

export class AtTerminal {
  shown = "";
  private readonly child;

  constructor(
    stage: ServerTestHome,
    command: readonly string[],
    options: { env?: Record<string, string>; cwd?: string } = {},
  ) {
    const decoder = new TextDecoder();
    this.child = Bun.spawn([...command], {
      env: { ...stage.env, ...options.env },
      cwd: options.cwd ?? stage.root,
      terminal: {
        cols: 200,
        rows: 50,
        data: (_terminal, data) => {
          this.shown += decoder.decode(data, { stream: true });
        },
      },
    });
  }

  get pid(): number {
    return this.child.pid;
  }

  type(text: string): void {
    this.child.terminal?.write(text);
  }

  async ended(): Promise<number> {
    return await this.child.exited;
  }
}

const tmuxProgram = "/usr/bin/tmux";

/** A separate tmux server with its socket inside the home. */
export class Tmux {
  constructor(
    private readonly stage: ServerTestHome,
    private readonly label = "default",
  ) {
    if (!existsSync(tmuxProgram)) throw new Error(`these tests need ${tmuxProgram}: apt-get install tmux`);
  }

  get command(): string[] {
    return [tmuxProgram, "-f", "/dev/null", "-L", this.label];
  }

  async run(...words: string[]): Promise<string> {
    const child = Bun.spawn([...this.command, ...words], {
      env: this.stage.env,
      cwd: this.stage.root,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    if (code !== 0) throw new Error(`tmux ${words.join(" ")}: ${err}`);
    return out.trimEnd();
  }

  /** The id of the first pane of a new session, or of a new window. */
  open = (...words: string[]): Promise<string> =>
    this.run("new-session", "-d", "-x", "200", "-y", "50", "-P", "-F", "#{pane_id}", ...words);

  ask = (target: string, format: string): Promise<string> => this.run("display-message", "-p", "-t", target, format);

  screen = (pane: string): Promise<string> => this.run("capture-pane", "-p", "-J", "-t", pane);

  /** "session pane" of every attached client. */
  clients = (): Promise<string> => this.run("list-clients", "-F", "#{client_pid} #{session_name} #{pane_id}");
}
