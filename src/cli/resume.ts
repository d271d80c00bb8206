// agentctl resume: opens the agent's own interface on an old conversation, here, in the conversation's own directory.
import { commandOf } from "../control/binary.ts";
import { lookForDueHooks } from "../control/due-hooks.ts";
import { agentEnvironment } from "../control/environment.ts";
import { callerOf, guardPermission, guardTarget } from "../control/guard.ts";
import { supportFolder } from "../control/notes.ts";
import { oneAtATime } from "../control/places.ts";
import { checkContinuable } from "../control/start-session.ts";
import { AgentctlError } from "../core/problem.ts";
import { isHosted } from "../core/session.ts";
import { oneLine } from "../lib/width.ts";
import { failureText } from "../observe/failure.ts";
import { becomeProgram } from "../sys/exec.ts";
import { isTerminal } from "../sys/stdout.ts";
import { adapterOf, idOf, ownDirectory } from "./acted-row.ts";
import { usage } from "./arguments.ts";
import type { Command, Context } from "./command.ts";
import { ownSettingOf } from "./launch-order.ts";
import { lookFor, resolve } from "./reference.ts";
import { problemLines } from "./render.ts";
import { lookAroundAtRows, type Row } from "./sessions.ts";
import { shellWord } from "./shell-word.ts";

export const resume: Command = {
  usage: "agentctl resume <ref> [--fork] [--print] [-- AGENT ARGS…]",
  summary: "Reopens a conversation here, in the agent's own interface and in its own directory.",
  notes: "A session that is live elsewhere is refused (exit 5); --fork opens a copy of it under a new id all the same.",
  behindDashes: "handed on",
  flags: [
    { flag: "--fork", help: "go on in a copy, under a new id" },
    { flag: "--print", help: "only show the command that would do it" },
  ],
  examples: [
    ["agentctl resume 3f2a1b9c", "go on where it stopped"],
    ["agentctl resume painter --fork", "try something else, keep the original"],
    ["agentctl resume 3f2a1b9c --print", "to paste it elsewhere"],
  ],
  async run(args, context) {
    const [reference, extra] = args.words;
    if (reference === undefined) throw usage("resume needs a session", "resume");
    if (extra !== undefined) throw usage("resume takes one session; agentctl send says something to it", "resume");
    const fork = args.has("--fork");
    if (args.has("--print")) {
      const { row } = await checked(reference, fork, args.rest, context);
      context.out(`${shellLine(row, fork, args.rest, context)}\n`);
      return 0;
    }
    if (!isTerminal(0) || !isTerminal(1)) {
      await checked(reference, fork, args.rest, context);
      const hint = `agentctl send ${reference} TEXT goes on without one; --print shows the command`;
      throw new AgentctlError("refused", "the agent's interface needs a terminal", { hint });
    }
    await lookForDueHooks(context.env, (text) => context.err(`agentctl: ${oneLine(text)}\n`));
    // The lock goes at the moment this process becomes the agent: from then on the agent itself can be seen.
    return await oneAtATime(context.env, async () => {
      const { row } = await checked(reference, fork, args.rest, context);
      const { program, args: words, env, cwd } = interfaceOf(row, fork, args.rest, context);
      try {
        process.chdir(cwd);
        return becomeProgram(program, words, { ...env, PWD: cwd });
      } catch (error) {
        throw new AgentctlError("agent-missing", `cannot become ${program} in ${cwd}: ${failureText(error)}`, {
          cause: error,
        });
      }
    });
  },
};

async function checked(
  reference: string,
  fork: boolean,
  extra: readonly string[],
  context: Context,
): Promise<{ row: Row }> {
  const { all } = await lookFor([reference], context, lookAroundAtRows);
  context.err(problemLines(all.problems));
  const row = resolve(reference, all, context);
  idOf(row);
  const caller = callerOf(all.around, context.env);
  const own = ownSettingOf(adapterOf(row), row.session.home, ownDirectory(row));
  guardTarget(row.session, row.ref, caller, all.around, all.notes);
  guardPermission({ permission: null, extra }, own.isBypass, caller);
  // A host shares its sessions with every interface that asks for them.
  if (!fork && !isHosted(row.session)) checkContinuable(row.session, row.ref);
  return { row };
}

function interfaceOf(row: Row, fork: boolean, extra: readonly string[], context: Context) {
  const adapter = adapterOf(row);
  const id = idOf(row);
  const { invocation } = adapter;
  const order = { model: null, permission: null, prompt: null, extra };
  const place = { home: row.session.home, own: supportFolder(context.env), cwd: ownDirectory(row), at: Date.now() };
  const session = invocation.chooseId?.(crypto.randomUUID(), place.at) ?? null;
  const words = fork
    ? invocation.interface({ ...order, kind: "fork", session, from: id }, place)
    : invocation.interface({ ...order, kind: "continue", session: row.session.record?.opensAs ?? id }, place);
  if (words === null)
    throw new AgentctlError("refused", `${adapter.title} cannot ${fork ? "fork a session" : "reopen a session"}`);
  const [program = "", ...first] = commandOf(adapter, context.env);
  const env = agentEnvironment(context.env, adapter, row.session.home);
  return { program, args: [...first, ...words], env, cwd: place.cwd, adapter };
}

/** With the variables that lead to its home, for a shell that may not have them. */
function shellLine(row: Row, fork: boolean, extra: readonly string[], context: Context): string {
  const { program, args, cwd, adapter, env } = interfaceOf(row, fork, extra, context);
  const keys = Object.keys(adapter.invocation.environmentFor(row.session.home));
  const variables = keys.flatMap((key) => (env[key] ? [`${key}=${shellWord(env[key])}`] : []));
  const words = [...variables, ...[program, ...args].map(shellWord)];
  return `cd ${shellWord(cwd)} && ${words.join(" ")}`;
}
