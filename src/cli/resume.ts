// agentctl resume: opens the agent's own interface on an old conversation, in the conversation's own directory.
import { Failure } from "../core/failure.ts";
import { type InterfaceCommand, interfaceCommand, resume as reopen } from "../service/resume.ts";
import { becomeProgram } from "../sys/exec.ts";
import { isTerminal } from "../sys/stdout.ts";
import { usage } from "./arguments.ts";
import type { Command } from "./command.ts";
import { callOf } from "./service-call.ts";
import { shellWord } from "./shell-word.ts";

export const resume: Command = {
  usage: "agentctl resume REF [--fork] [--print] [-- AGENT ARGS…]",
  summary: "Reopen a conversation here, in the agent's own interface.",
  notes:
    "It opens in the directory of the session. A session that is open elsewhere is refused (exit code 5), unless --fork is given.",
  afterDashes: "handed on",
  flags: [
    { flag: "--fork", help: "continue in a copy, under a new id" },
    { flag: "--print", help: "print the command instead of running it" },
  ],
  examples: [
    ["agentctl resume 3f2a1b9c", "continue a stopped session"],
    ["agentctl resume painter --fork", "try something else, keep the original"],
    ["agentctl resume 3f2a1b9c --print", "the command, to run it elsewhere"],
  ],
  async run(args, context) {
    const [reference, extra] = args.words;
    if (reference === undefined) throw usage("resume needs a session", "resume");
    if (extra !== undefined) throw usage("resume takes one session; agentctl send sends it a message", "resume");
    const request = { reference, fork: args.has("--fork"), extra: args.rest };
    const call = callOf(context);
    if (args.has("--print")) {
      context.out(`${shellLine(await interfaceCommand(request, call))}\n`);
      return 0;
    }
    if (isTerminal(0) && isTerminal(1)) return await reopen(request, call, becomeInterface);
    await interfaceCommand(request, call);
    throw new Failure("terminal-required", { reference });
  },
};

function becomeInterface({ program, args, cwd, env }: InterfaceCommand): number {
  try {
    process.chdir(cwd);
    return becomeProgram(program, args, env);
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    throw new Failure("interface-not-started", { program, cwd, detail }, { cause: error });
  }
}

function shellLine({ program, args, cwd, homeVariables }: InterfaceCommand): string {
  const variables = Object.entries(homeVariables).map(([key, value]) => `${key}=${shellWord(value)}`);
  return `cd ${shellWord(cwd)} && ${[...variables, ...[program, ...args].map(shellWord)].join(" ")}`;
}
