// agentctl: argv → command, and the only process.exit. --version and --help load no other module: node:fs alone takes a
// millisecond.
import { version } from "../package.json";
import type { Command, Context } from "./cli/command.ts";
import { writeFirst } from "./sys/write-early.ts";

type Entry = readonly [names: readonly [string, ...string[]], summary: string, load: () => Promise<Command>];

const commands: readonly Entry[] = [
  [["list", "ls", "ps"], "List sessions and their status", async () => (await import("./cli/list.ts")).list],
  [["status"], "Show all facts about one session", async () => (await import("./cli/status.ts")).status],
  [["why"], "Explain a status: the evidence, and what would change it", async () => (await import("./cli/why.ts")).why],
  [["peek"], "Show the last messages of a session", async () => (await import("./cli/peek.ts")).peek],
  [["logs"], "Show the whole conversation; -f follows it", async () => (await import("./cli/logs.ts")).logs],
  [["result"], "Print the final answer", async () => (await import("./cli/result.ts")).result],
  [
    ["launch"],
    "Start an agent in the background and print its session id",
    async () => (await import("./cli/launch.ts")).launch,
  ],
  [
    ["run"],
    "Run an agent in the foreground and print its final answer",
    async () => (await import("./cli/run.ts")).run,
  ],
  [["send"], "Send one more message to a session", async () => (await import("./cli/send.ts")).send],
  [
    ["resume"],
    "Reopen a conversation here, in the agent's own interface",
    async () => (await import("./cli/resume.ts")).resume,
  ],
  [["attach"], "Go to the tmux pane of a session", async () => (await import("./cli/attach.ts")).attach],
  [
    ["interrupt"],
    "End the current turn and keep the session",
    async () => (await import("./cli/interrupt.ts")).interrupt,
  ],
  [
    ["stop"],
    "Stop sessions and the processes that their tools started",
    async () => (await import("./cli/stop.ts")).stop,
  ],
  [
    ["wait"],
    "Wait until sessions are done, stopped, idle or waiting",
    async () => (await import("./cli/wait.ts")).wait,
  ],
  [["diff"], "Show what changed since a session started", async () => (await import("./cli/diff.ts")).diff],
  [["compare"], "Compare the sessions of a group side by side", async () => (await import("./cli/compare.ts")).compare],
  [["name"], "Give a session a name", async () => (await import("./cli/annotate.ts")).name],
  [["label"], "Set or remove labels of a session", async () => (await import("./cli/annotate.ts")).label],
  [
    ["worktree"],
    "List or remove git worktrees and show their sessions",
    async () => (await import("./cli/worktree.ts")).worktree,
  ],
  [["lock"], "List directories in use; reserve one for yourself", async () => (await import("./cli/lock.ts")).lock],
  [["du"], "Show what agentctl keeps on disk", async () => (await import("./cli/du.ts")).du],
  [["prune"], "Delete the files of finished launches", async () => (await import("./cli/prune.ts")).prune],
  [["config"], "Show the settings and where each comes from", async () => (await import("./cli/config.ts")).config],
  [
    ["statusline"],
    "Print one short line for a prompt or a status bar",
    async () => (await import("./cli/statusline.ts")).statusline,
  ],
  [["adapters"], "Show the supported agents", async () => (await import("./cli/adapters.ts")).adapters],
  [["doctor"], "Check this host and say what to fix", async () => (await import("./cli/doctor.ts")).doctor],
  [
    ["demo"],
    "Show a tour with three scripted agents; needs no API key",
    async () => (await import("./cli/demo.ts")).demo,
  ],
];

/** agentctl never suggests one of these commands for a mistyped one. */
const destructive = ["interrupt", "stop", "prune"];

/** Words that users of other tools type. The rest of the command line stays as it is. */
const aliases = new Map<string, readonly string[]>([
  ["kill", ["stop"]],
  ["start", ["launch"]],
  ["watch", ["list", "--watch"]],
  ["tail", ["logs", "--follow"]],
  ["worktree rm", ["worktree", "remove"]],
  ["worktree ls", ["worktree", "list"]],
  ["lock ls", ["lock", "list"]],
  ["lock remove", ["lock", "rm"]],
]);

function withoutAlias(args: readonly string[]): readonly string[] {
  const [name = "", verb = "", ...rest] = args;
  const pair = aliases.get(`${name} ${verb}`);
  if (pair !== undefined) return [...pair, ...rest];
  return [...(aliases.get(name) ?? args.slice(0, 1)), ...args.slice(1)];
}

/** Commands that agentctl starts itself. */
const hidden = new Map<string, (words: readonly string[], context: Context) => Promise<number>>([
  ["demo-agent", async (words, context) => await runDemoAgent(words, context)],
  ["exec-agent", async (words, context) => (await import("./cli/hidden/exec-agent.ts")).runExecAgent(words, context)],
  ["end-launch", async (words, context) => (await import("./cli/hidden/end-launch.ts")).runEndLaunch(words, context)],
  ["run-hook", async (words, context) => (await import("./cli/hidden/run-hook.ts")).runHook(words, context)],
  ["read-store", async (words, context) => (await import("./cli/hidden/read-store.ts")).runReadStore(words, context)],
]);

/** Under its own name the demo agent is a program like any other agent, and no guard of agentctl applies. */
async function runDemoAgent(words: readonly string[], context: Context): Promise<number> {
  if (calledAs === "demo-agent") return await (await import("./demo/agent.ts")).runDemoAgent(words, async () => true);
  return await (await import("./cli/hidden/demo-agent.ts")).runGuardedDemoAgent(words, context);
}

function help(): string {
  const left = Math.max(...commands.map(([names]) => names.join(", ").length));
  return `agentctl: ps, systemctl and docker for coding agents.
It computes the status of a session when you ask, from the process table and the agent's own records.

Usage: agentctl                 show sessions that need you, have failed, have finished or are working
       agentctl COMMAND …

Commands:
${commands.map(([names, summary]) => `  ${names.join(", ").padEnd(left)}  ${summary}`).join("\n")}

Every command has --help with examples, and most have --json for scripts.
Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 ambiguous, 5 refused, 6 not done yet, 7 agent cannot run, 8 cannot tell,
10 the agent failed, 11 the agent needs a person, 130 interrupted.
Environment: AGENTCTL_HOME, AGENTCTL_<AGENT>_BIN, AGENTCTL_NO_CACHE, NO_COLOR.
`;
}

/** The text for --version and --help; null for everything else. */
function earlyText([name, topic]: readonly string[]): string | null {
  if (name !== undefined && ["--version", "-V", "-v", "version"].includes(name)) return `agentctl ${version}\n`;
  return name === "--help" || name === "-h" || (name === "help" && topic === undefined) ? help() : null;
}

async function main(given: readonly string[], context: Context): Promise<number> {
  const text = earlyText(given);
  if (text !== null) {
    context.out(text);
    return 0;
  }
  const { runCommand, unknownCommand } = await import("./cli/command.ts");
  const [name, ...rest] = withoutAlias(given);
  if (name === undefined) return await runCommand((await import("./cli/overview.ts")).overview, "", [], context);
  if (name === "help") return await main([...rest.slice(0, 1), "--help"], context);
  const own = hidden.get(name);
  if (own !== undefined) return await own(rest, context);
  for (const [names, , load] of commands)
    if (names.includes(name)) return await runCommand(await load(), names[0], rest, context);
  throw unknownCommand(
    name,
    commands.flatMap(([names]) => names).filter((each) => !destructive.includes(each)),
  );
}

/** A link to this binary with the name `demo-agent` is the demo agent. */
const calledAs = (process.argv0 ?? "").split("/").pop();
const args = process.argv.slice(2);
if (calledAs === "demo-agent") args.unshift("demo-agent");
/** The rest of a hidden command line belongs to an agent: its --json is not for agentctl. */
const asked = hidden.has(args[0] ?? "") ? [] : args;
const text = earlyText(args);
const isWritten = text !== null && (await writeFirst(text));
// If the early write failed, perform() tries again and reports the cause.
const perform = async () => await (await import("./cli/perform.ts")).perform((context) => main(args, context), asked);
process.exit(isWritten ? 0 : await perform());
