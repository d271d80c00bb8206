// agentctl demo: a tour with three scripted agents. Real processes, real records, in a temporary home that is removed at the end.
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Failure } from "../core/failure.ts";
import { deadlineIn, pause } from "../lib/deadline.ts";
import { failureText } from "../lib/errors.ts";
import type { Environment } from "../observe/homes.ts";
import { annotate } from "../service/annotate.ts";
import { selfCommand } from "../sys/self.ts";
import { type DetachedProcess, runCommand, showCommand, spawnDetached } from "../sys/spawn.ts";
import { isTerminal } from "../sys/stdout.ts";
import type { Command, Context } from "./command.ts";
import { paint, terminalOf } from "./render.ts";
import { callOf } from "./service-call.ts";

export const demo: Command = {
  usage: "agentctl demo",
  summary: "Show a tour with three scripted agents in a temporary home; takes a few seconds and needs no API key.",
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

/** Rejects at Ctrl-C, so that the agents are stopped in the middle of the tour, too. */
const interrupted = (): Promise<never> =>
  new Promise((_, reject) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
      process.on(signal, () => reject(new Failure("interrupted", { result: "cleaned-up" })));
  });

function makeTemporaryHome(): string {
  try {
    return realpathSync(mkdtempSync(join(tmpdir(), "agentctl-demo-")));
  } catch (error) {
    throw new Failure("demo-home-failed", { folder: tmpdir(), detail: failureText(error) }, { cause: error });
  }
}

class Tour {
  private readonly root = makeTemporaryHome();
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
      "(All of this happens in a temporary home, shown as ~ below. Your own sessions and files are not touched.)\n",
    );
    const ids = await this.startAll();
    await this.show("list", "--agent", "demo");

    this.say("One of them needs a person. This is its question:");
    await this.show("status", "reviewer");

    const painter = this.agents.get("painter");
    this.say(
      `Now the painter is killed with SIGKILL (pid ${painter?.pid}). It cannot report this to anyone. The next command notices:`,
    );
    painter?.kill("SIGKILL");
    await painter?.exited;
    await this.show("list", "-a", "--agent", "demo");

    this.say("Why does agentctl say so? It shows its evidence, and you can check each line yourself:");
    await this.show("why", ids.get("painter") ?? "");

    this.say(
      "Other tools keep a copy of all this. agentctl keeps none: everything that it wrote in the temporary home is deleted now.",
    );
    await this.deleteStateAndCompare();
    await this.show("list", "-a", "--agent", "demo");
    this.say("The names are gone: they were stored. Every status is the same, because no status was stored.");
    this.say(
      "End of the tour: the agents are stopped and the temporary home is removed. For your own agents: agentctl list",
    );
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
    }
    await this.settled(ids);
    const call = { ...callOf(this.context), env: this.env, caller: { kind: "person" as const } };
    for (const [name, id] of ids) await annotate(id, { name, labels: {} }, call);
    return ids;
  }

  /** Waits until each agent has the status that its script leads to. */
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
    throw new Failure("demo-failed", { problem: "not-started" });
  }

  private async states(): Promise<Map<string, string>> {
    const { out } = await runCommand([...selfCommand(), "list", "-a", "--agent", "demo", "--json"], {
      cwd: this.root,
      env: this.env,
      maxMs: commandMs,
    });
    const { sessions } = JSON.parse(out) as { sessions: { id: string; home: string; status: string }[] };
    return new Map(sessions.filter(({ home }) => home.startsWith(this.root)).map(({ id, status }) => [id, status]));
  }

  private async deleteStateAndCompare(): Promise<void> {
    const before = await this.states();
    rmSync(join(this.root, ".agentctl"), { recursive: true });
    const after = await this.states();
    const same = before.size === after.size && [...before].every(([id, word]) => after.get(id) === word);
    if (!same) throw new Failure("demo-failed", { problem: "status-changed" });
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
