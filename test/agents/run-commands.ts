// What the acting tests share: agentctl with the home's whole environment, and the agents that go through the same cases.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { agentctl } from "./check-answers.ts";
import { type ClaudeVersion, type SeenProcess, type TestHome, type TestHomeOptions, waitFor } from "./test-home.ts";

export interface Answer {
  code: number;
  out: string;
  err: string;
}

export interface ActOptions {
  input?: string;
  env?: Record<string, string>;
  cwd?: string;
}

export function begin(world: TestHome, args: readonly string[], options: ActOptions = {}) {
  return Bun.spawn([agentctl, ...args], {
    env: { ...world.env, AGENTCTL_HOME: join(world.dir, "agentctl"), ...options.env },
    cwd: options.cwd ?? world.cwd,
    stdin: options.input === undefined ? "ignore" : new Blob([options.input]),
    stdout: "pipe",
    stderr: "pipe",
    detached: true,
  });
}

export async function act(world: TestHome, args: readonly string[], options: ActOptions = {}): Promise<Answer> {
  const child = begin(world, args, options);
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, out, err };
}

/** Fails with what it said unless it went well. */
export async function acted(world: TestHome, args: readonly string[], options: ActOptions = {}): Promise<string> {
  const { code, out, err } = await act(world, args, options);
  if (code !== 0) throw new Error(`agentctl ${args.slice(0, 4).join(" ")}: exit ${code}\n${err}`);
  return out.trim();
}

export interface Actor {
  name: string;
  agent: string;
  world: TestHomeOptions;
  /** Its executable's processes, as the process table shows them. */
  isAgent(process: SeenProcess): boolean;
  /** What it leaves behind when SIGINT ends it inside a turn. */
  interrupted: readonly string[];
}

const claude = (version: ClaudeVersion): Actor => ({
  name: `claude ${version}`,
  agent: "claude",
  world: { claude: version },
  // 2.1.197 loses what it has not written yet, and does not say that it was interrupted then.
  interrupted: version === "2.1.197" ? ["interrupted", "cut-off"] : ["interrupted"],
  isAgent: ({ name, argv }) => name.startsWith("claude") && !argv.includes("daemon"),
});

export const actors: readonly Actor[] = [
  claude("2.1.197"),
  claude("2.1.325"),
  {
    name: "codex",
    agent: "codex",
    world: {},
    interrupted: ["interrupted"],
    isAgent: ({ name, argv }) => name === "codex" && argv.includes("exec"),
  },
];

/** Nothing of the home's own lives any more, but for what stays by design. */
export const nothingLeft = (world: TestHome, stays: (process: SeenProcess) => boolean = () => false): Promise<true> =>
  waitFor("nothing left running", () => world.processes().every(stays), {
    deadlineMs: 15_000,
    explain: () =>
      world
        .processes()
        .filter((process) => !stays(process))
        .map(({ pid, argv }) => `${pid} ${argv.join(" ").slice(0, 200)}`)
        .join("\n"),
  });

/** No process has the prompt in its arguments. */
export function inArguments(world: TestHome, text: string): SeenProcess[] {
  return world.processes().filter(({ argv }) => argv.some((argument) => argument.includes(text)));
}

/** A tool that runs until it is ended, and says that it has begun. */
export const endlessTool = (world: TestHome, name: string): string =>
  `BASH=touch ${join(world.dir, name)}; tail -f /dev/null`;

export const toolBegun = (world: TestHome, name: string, explain?: () => string): Promise<true> =>
  waitFor(`the tool ${name}`, () => isThere(join(world.dir, name)), explain === undefined ? {} : { explain });

const isThere = (path: string): true | null => {
  try {
    readFileSync(path);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
};
