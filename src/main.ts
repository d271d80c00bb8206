// agentctl: argv → command. The only place that turns errors into text and exit codes, and the only process.exit.

import { userInfo } from "node:os";
import { version } from "../package.json";
import { closest } from "./cli/arguments.ts";
import { type Command, type Context, columns, runCommand } from "./cli/command.ts";
import { AgentctlError, exitCodes } from "./core/problem.ts";
import { oneLine, plainText } from "./lib/width.ts";
import { AnswerLost, ReaderGone, writeErr, writeOut } from "./sys/stdout.ts";

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

const help = (): string => `agentctl: ps, systemctl and docker for coding agents.
A session's status is computed when you ask, from the process table and the agent's own records. Nothing is remembered.

Usage: agentctl                 who needs you, what went wrong, whose turn it is
       agentctl COMMAND …

Commands:
${columns(commands.map(({ names, summary }) => [names.join(", "), summary] as const))}

Every command has --help with examples. --json is for scripts. Exit codes: 0 ok, 1 failed, 2 usage, 3 not found,
4 ambiguous, 5 refused, 6 not done yet, 7 agent not installed, 8 cannot tell, 10 the agent failed, 11 it needs a person,
130 interrupted. Environment: AGENTCTL_HOME, AGENTCTL_<AGENT>_BIN, AGENTCTL_NO_CACHE, NO_COLOR.
`;

async function main(args: readonly string[], context: Context): Promise<number> {
  const [name, ...rest] = args;
  if (name === undefined) return await runCommand((await import("./cli/overview.ts")).overview, "", [], context);
  if (name === "--help" || name === "-h" || name === "help") {
    const [topic] = rest;
    if (name === "help" && topic !== undefined) return await main([topic, "--help"], context);
    context.out(help());
    return 0;
  }
  if (name === "--version" || name === "-V" || name === "version") {
    context.out(`agentctl ${version}\n`);
    return 0;
  }
  if (name === "demo-agent") return await (await import("./demo/agent.ts")).runDemoAgent(rest);
  if (name === "exec-agent") return (await import("./cli/exec-agent.ts")).runExecAgent(rest, context);
  if (name === "end-launch") return await (await import("./cli/end-launch.ts")).runEndLaunch(rest, context);
  if (name === "run-hook") return await (await import("./cli/run-hook.ts")).runHook(rest, context);
  if (name === "read-store") return await (await import("./cli/read-store.ts")).runReadStore(rest, context);
  const entry = commands.find(({ names }) => names.includes(name));
  if (entry === undefined) throw unknownCommand(name);
  return await runCommand(await entry.load(), entry.names[0] ?? name, rest, context);
}

function unknownCommand(name: string): AgentctlError {
  const near = closest(
    name,
    commands.flatMap(({ names }) => names),
  );
  if (name.startsWith("-"))
    return new AgentctlError("usage", `unknown option ${oneLine(name)}`, { hint: "agentctl --help" });
  const hint = near === null ? "agentctl --help" : `did you mean ${near}? agentctl --help`;
  return new AgentctlError("usage", `unknown command ${oneLine(name)}`, { hint });
}

/** What the machine does not have or allow is no mistake of ours. */
const limits = ["ENOSPC", "EDQUOT", "EROFS", "EACCES", "EPERM", "EIO", "EMFILE", "ENFILE", "ENOMEM"];

const isOfSystem = (error: unknown): error is Error =>
  error instanceof AnswerLost || (error instanceof Error && "code" in error && limits.includes(String(error.code)));

function failure(error: unknown): number {
  if (error instanceof ReaderGone) return 0;
  const known = error instanceof AgentctlError;
  const text = known
    ? `${plainText(error.message)}\n${error.hint === null ? "" : `  ${plainText(error.hint)}\n`}`
    : isOfSystem(error)
      ? `${plainText(error.message)}\n`
      : `this should not happen: ${plainText(error instanceof Error ? (error.stack ?? error.message) : String(error))}\n`;
  try {
    writeErr(`agentctl: ${text}`);
  } catch (lost) {
    // Nobody can be told; the exit code still can.
    if (!(lost instanceof Error)) throw lost;
  }
  return known ? exitCodes[error.code] : exitCodes.failed;
}

/** A plain copy: process.env itself takes milliseconds to go through a few times. */
const given = { ...process.env };
/** cron and services leave HOME out; the user has one all the same. */
const env = given["HOME"] ? given : { ...given, HOME: userInfo().homedir };

const context: Context = {
  env,
  // Asked for only where needed: it costs a call.
  get cwd() {
    return process.cwd();
  },
  out: writeOut,
  err: writeErr,
};

/** `demo-agent` as a link to this binary is the demo agent. */
const calledAs = (process.argv0 ?? "").split("/").pop();
const args = process.argv.slice(2);
let code: number;
try {
  code = await main(calledAs === "demo-agent" ? ["demo-agent", ...args] : args, context);
} catch (error) {
  code = failure(error);
}
process.exit(code);
