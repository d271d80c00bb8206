// agentctl: argv → command, and the only process.exit. Before it is known which command it is nothing is loaded, not even node:fs,
// which alone takes a millisecond.
import { version } from "../package.json";
import type { Command, Context } from "./cli/command.ts";
import { writeFirst } from "./sys/first.ts";

interface Entry {
  names: readonly string[];
  summary: string;
  load(): Promise<Command>;
}

/** Each command is loaded only when asked for. */
const commands: readonly Entry[] = [
  {
    names: ["list", "ls", "ps"],
    summary: "all sessions, as they are now",
    load: async () => (await import("./cli/list.ts")).list,
  },
  {
    names: ["status"],
    summary: "one session, all its facts",
    load: async () => (await import("./cli/status.ts")).status,
  },
  {
    names: ["why"],
    summary: "the evidence behind a status, and what would change it",
    load: async () => (await import("./cli/why.ts")).why,
  },
  {
    names: ["peek"],
    summary: "the last messages of a session",
    load: async () => (await import("./cli/peek.ts")).peek,
  },
  {
    names: ["logs"],
    summary: "its whole conversation; -f follows, --raw shows its record",
    load: async () => (await import("./cli/logs.ts")).logs,
  },
  {
    names: ["result"],
    summary: "its final answer",
    load: async () => (await import("./cli/result.ts")).result,
  },
  {
    names: ["launch"],
    summary: "start an agent in the background; prints its session's id",
    load: async () => (await import("./cli/launch.ts")).launch,
  },
  {
    names: ["run"],
    summary: "run an agent in the foreground; prints its final answer",
    load: async () => (await import("./cli/run.ts")).run,
  },
  {
    names: ["send"],
    summary: "one more message to a session",
    load: async () => (await import("./cli/send.ts")).send,
  },
  {
    names: ["resume"],
    summary: "reopen a conversation here, in the agent's own interface",
    load: async () => (await import("./cli/resume.ts")).resume,
  },
  {
    names: ["attach"],
    summary: "go to where a session runs: its tmux pane",
    load: async () => (await import("./cli/attach.ts")).attach,
  },
  {
    names: ["interrupt"],
    summary: "end the turn, keep the session",
    load: async () => (await import("./cli/interrupt.ts")).interrupt,
  },
  {
    names: ["stop"],
    summary: "end sessions, and what their tools left running",
    load: async () => (await import("./cli/stop.ts")).stop,
  },
  {
    names: ["wait"],
    summary: "until sessions are done, stopped, idle or waiting",
    load: async () => (await import("./cli/wait.ts")).wait,
  },
  {
    names: ["diff"],
    summary: "what a session changed since it began",
    load: async () => (await import("./cli/diff.ts")).diff,
  },
  {
    names: ["compare"],
    summary: "the sessions of a group side by side",
    load: async () => (await import("./cli/compare.ts")).compare,
  },
  {
    names: ["worktree"],
    summary: "git worktrees of this repository, and who lives in them",
    load: async () => (await import("./cli/worktree.ts")).worktree,
  },
  {
    names: ["lock"],
    summary: "places that are taken; keep one for yourself",
    load: async () => (await import("./cli/lock.ts")).lock,
  },
  {
    names: ["du"],
    summary: "what agentctl keeps on disk",
    load: async () => (await import("./cli/du.ts")).du,
  },
  {
    names: ["prune"],
    summary: "make room: forget launches that are over",
    load: async () => (await import("./cli/prune.ts")).prune,
  },
  {
    names: ["statusline"],
    summary: "one short line for a prompt or a status bar",
    load: async () => (await import("./cli/statusline.ts")).statusline,
  },
  {
    names: ["adapters"],
    summary: "the agents that agentctl knows",
    load: async () => (await import("./cli/adapters.ts")).adapters,
  },
  {
    names: ["doctor"],
    summary: "what works here, what does not, and what to do",
    load: async () => (await import("./cli/doctor.ts")).doctor,
  },
  {
    names: ["demo"],
    summary: "a tour with three scripted agents; needs no API key",
    load: async () => (await import("./cli/demo.ts")).demo,
  },
];

/** For processes of our own, not for people. */
const inner = new Map<string, (words: readonly string[], context: Context) => Promise<number>>([
  ["demo-agent", async (words, context) => await runDemoAgent(words, context)],
  ["exec-agent", async (words, context) => (await import("./cli/exec-agent.ts")).runExecAgent(words, context)],
  ["end-launch", async (words, context) => await (await import("./cli/end-launch.ts")).runEndLaunch(words, context)],
  ["run-hook", async (words, context) => await (await import("./cli/run-hook.ts")).runHook(words, context)],
  ["read-store", async (words, context) => await (await import("./cli/read-store.ts")).runReadStore(words, context)],
]);

/** As a command of agentctl it obeys the guard; called by a name of its own it is a program like any other agent. */
async function runDemoAgent(words: readonly string[], { env }: Context): Promise<number> {
  const guarded = async () => await (await import("./control/own-callers.ts")).mayRunCommands(env);
  const mayRunCommands = calledAs === "demo-agent" ? async () => true : guarded;
  return await (await import("./demo/agent.ts")).runDemoAgent(words, mayRunCommands);
}

function help(): string {
  const left = Math.max(...commands.map(({ names }) => names.join(", ").length));
  return `agentctl: ps, systemctl and docker for coding agents.
A session's status is computed when you ask, from the process table and the agent's own records. Nothing is remembered.

Usage: agentctl                 who needs you, what went wrong, whose turn it is
       agentctl COMMAND …

Commands:
${commands.map(({ names, summary }) => `  ${names.join(", ").padEnd(left)}  ${summary}`).join("\n")}

Every command has --help with examples. --json is for scripts. Exit codes: 0 ok, 1 failed, 2 usage, 3 not found,
4 ambiguous, 5 refused, 6 not done yet, 7 agent not installed, 8 cannot tell, 10 the agent failed, 11 it needs a person,
130 interrupted. Environment: AGENTCTL_HOME, AGENTCTL_<AGENT>_BIN, AGENTCTL_NO_CACHE, NO_COLOR.
`;
}

/** What can be said without a command; null: it takes one. */
function said([name, topic]: readonly string[]): string | null {
  if (name === "--version" || name === "-V" || name === "version") return `agentctl ${version}\n`;
  return name === "--help" || name === "-h" || (name === "help" && topic === undefined) ? help() : null;
}

async function main(args: readonly string[], context: Context): Promise<number> {
  const text = said(args);
  if (text !== null) {
    context.out(text);
    return 0;
  }
  const { runCommand, unknownCommand } = await import("./cli/command.ts");
  const [name, ...rest] = args;
  if (name === undefined) return await runCommand((await import("./cli/overview.ts")).overview, "", [], context);
  if (name === "help") return await main([...rest.slice(0, 1), "--help"], context);
  const own = inner.get(name);
  if (own !== undefined) return await own(rest, context);
  const entry = commands.find(({ names }) => names.includes(name));
  if (entry === undefined) {
    const known = commands.flatMap(({ names }) => names);
    throw unknownCommand(name, known);
  }
  return await runCommand(await entry.load(), entry.names[0] ?? name, rest, context);
}

/** `demo-agent` as a link to this binary is the demo agent. */
const calledAs = (process.argv0 ?? "").split("/").pop();
const args = process.argv.slice(2);
if (calledAs === "demo-agent") args.unshift("demo-agent");
const text = said(args);
const isSaid = text !== null && (await writeFirst(text));
// What could not be written is tried once more, by those who can tell why.
process.exit(isSaid ? 0 : await (await import("./cli/perform.ts")).perform((context) => main(args, context)));
