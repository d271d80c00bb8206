// agentctl demo: a tour with three scripted agents. Real processes, real records, in a throw-away home; it cleans up after itself.
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { unsaid, writeNote } from "../control/notes.ts";
import { AgentctlError } from "../core/problem.ts";
import { deadlineIn, pause } from "../lib/deadline.ts";
import { failureText } from "../observe/failure.ts";
import type { Environment } from "../observe/homes.ts";
import { selfCommand } from "../sys/self.ts";
import { type DetachedProcess, runCommand, showCommand, spawnDetached } from "../sys/spawn.ts";
import { isTerminal } from "../sys/stdout.ts";
import type { Command, Context } from "./command.ts";
import { paint, terminalOf } from "./render.ts";

export const demo: Command = {
  usage: "agentctl demo",
  summary:
    "A tour with three scripted agents: real processes, real records, a throw-away home. No API key, a few seconds.",
  words: "none",
  flags: [],
  examples: [["agentctl demo", "start here"]],
  async run(_args, context) {
    const tour = new Tour(context);
    try {
      await Promise.race([tour.run(), interrupted()]);
    } finally {
      await tour.cleanUp();
    }
    return 0;
  },
};

const cast = [
  {
    name: "painter",
    steps: [
      "prompt:Paint the settings page blue",
      "title:Paint the settings page",
      "say:Looking at the page first.",
      "work:600",
    ],
  },
  {
    name: "reviewer",
    steps: [
      "prompt:Review the open pull request",
      "say:I have read all 12 files.",
      "ask:permission:May I push my fixes to the branch?",
      "work:600",
    ],
  },
  { name: "gardener", steps: ["prompt:Update the dependencies", "say:Updated 4 of them, tests pass.", "end", "idle"] },
] as const;

const commandMs = 60_000;

/** Ctrl-C in the middle of the tour: the agents must not stay behind. */
const interrupted = (): Promise<never> =>
  new Promise((_, reject) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
      process.on(signal, () => reject(new AgentctlError("interrupted", "interrupted; everything was cleaned up")));
  });

function throwAwayHome(): string {
  try {
    return realpathSync(mkdtempSync(join(tmpdir(), "agentctl-demo-")));
  } catch (error) {
    const hint = "the demo needs a folder for temporary files; TMPDIR names one";
    throw new AgentctlError("failed", `cannot make a throw-away home in ${tmpdir()}: ${failureText(error)}`, { hint });
  }
}

class Tour {
  private readonly root = throwAwayHome();
  private readonly agents = new Map<string, DetachedProcess>();
  private readonly env: Environment;

  constructor(private readonly context: Context) {
    const { PATH, TERM, NO_COLOR, COLUMNS } = context.env;
    this.env = {
      ...Object.fromEntries(
        Object.entries({ PATH, TERM, NO_COLOR, COLUMNS }).filter(([, value]) => value !== undefined),
      ),
      HOME: this.root,
      DEMO_AGENT_HOME: join(this.root, ".demo-agent"),
      AGENTCTL_HOME: join(this.root, ".agentctl"),
    };
  }

  async run(): Promise<void> {
    this.say(
      "Three scripted agents start now. They are real processes that write real records, like Claude Code or Codex do.",
    );
    this.context.out(
      "(All of this happens in a throw-away home, shown as ~ below. Your own sessions and files are not touched.)\n",
    );
    const ids = await this.startAll();
    await this.show("list", "--agent", "demo");

    this.say("One of them needs a person, and this is its question:");
    await this.show("status", "reviewer");

    const painter = this.agents.get("painter");
    this.say(
      `Now the painter is killed with SIGKILL (pid ${painter?.pid}). It has no chance to tell anyone. Who asks next, knows:`,
    );
    painter?.kill("SIGKILL");
    await painter?.exited;
    await this.show("list", "-a", "--agent", "demo");

    this.say("Why does agentctl say so? It shows its evidence, and you can check each line yourself:");
    await this.show("why", ids.get("painter") ?? "");

    this.say(
      "Other tools keep a copy of all this. agentctl keeps none: all it ever wrote in the throw-away home is deleted now.",
    );
    await this.deleteStateAndCompare();
    await this.show("list", "-a", "--agent", "demo");
    this.say("The names are gone, they were only labels. Every status is the same, because it was never stored.");
    this.say("That was it; the agents end and the throw-away home is removed. With agents of your own: agentctl list");
  }

  private async startAll(): Promise<Map<string, string>> {
    const ids = new Map<string, string>();
    for (const { name, steps } of cast) {
      const id = crypto.randomUUID();
      const cwd = join(this.root, "work", name);
      mkdirSync(cwd, { recursive: true });
      const command = [...selfCommand(), "demo-agent", "--session-id", id, ...steps];
      this.agents.set(name, spawnDetached(command, { cwd, env: { ...this.env, PWD: cwd } }));
      ids.set(name, id);
      const home = realpathSync(this.root);
      writeNote(this.env, {
        id: crypto.randomUUID(),
        agent: "demo",
        home: join(home, ".demo-agent"),
        session: id,
        at: new Date().toISOString(),
        ...unsaid,
        name,
        group: "demo",
      });
    }
    await this.settled(ids);
    return ids;
  }

  /** The agents need some milliseconds to get to their places; we wait for the signs, not for a time. */
  private async settled(ids: ReadonlyMap<string, string>): Promise<void> {
    const expected = new Map([
      ["painter", "working"],
      ["reviewer", "waiting"],
      ["gardener", "idle"],
    ]);
    const deadline = deadlineIn(10_000);
    while (!deadline.isOver()) {
      const states = await this.states();
      if ([...expected].every(([name, word]) => states.get(ids.get(name) ?? "") === word)) return;
      await pause(50);
    }
    throw new AgentctlError("failed", "the demo agents did not start", { hint: "agentctl doctor" });
  }

  private async states(): Promise<Map<string, string>> {
    const { out } = await runCommand([...selfCommand(), "list", "-a", "--agent", "demo", "--json"], {
      cwd: this.root,
      env: this.env,
      mostMs: commandMs,
    });
    const { sessions } = JSON.parse(out) as { sessions: { id: string; home: string; status: string }[] };
    return new Map(sessions.filter(({ home }) => home.startsWith(this.root)).map(({ id, status }) => [id, status]));
  }

  private async deleteStateAndCompare(): Promise<void> {
    const before = await this.states();
    rmSync(join(this.root, ".agentctl"), { recursive: true });
    const after = await this.states();
    const same = before.size === after.size && [...before].every(([id, word]) => after.get(id) === word);
    if (!same) throw new AgentctlError("failed", "a status changed when agentctl's notes were deleted: this is a bug");
  }

  private say(text: string): void {
    this.context.out(`\n${paint(text, "bold", terminalOf(this.context))}\n`);
  }

  /** Runs the real command and shows it as a person would have typed it. */
  private async show(...args: string[]): Promise<void> {
    this.context.out(`${paint(`$ agentctl ${args.join(" ")}`, "cyan", terminalOf(this.context))}\n`);
    await showCommand([...selfCommand(), ...args], this.env, commandMs);
    if (isTerminal(1)) await pause(700);
  }

  async cleanUp(): Promise<void> {
    for (const agent of this.agents.values()) {
      agent.kill("SIGKILL");
      await agent.exited;
    }
    this.agents.clear();
    if (existsSync(this.root)) rmSync(this.root, { recursive: true });
  }
}
