// agentctl send: one more message to a session. A stopped one goes on headless; a hosted one gets it through its host.
import { existsSync } from "node:fs";
import type { Adapter } from "../adapters/adapter.ts";
import { adapterNamed } from "../adapters/registry.ts";
import { commandOf } from "../control/binary.ts";
import { callerOf, guardTarget } from "../control/guard.ts";
import { sendToHosted } from "../control/hosted.ts";
import { type StartRequest, startSession } from "../control/start-session.ts";
import { AgentctlError } from "../core/problem.ts";
import { type Arguments, parseDuration, usage } from "./arguments.ts";
import type { Command, Context } from "./command.ts";
import { tellStart } from "./launch.ts";
import { callerFacts, ownSettingOf, permissionOf } from "./launch-order.ts";
import { checkPromptFits, promptFlags, readPrompt } from "./prompt.ts";
import { resolve } from "./reference.ts";
import { problemLines } from "./render.ts";
import { clean, sessionJson, statusWord } from "./session-json.ts";
import { lookAroundAtRows, type Row } from "./sessions.ts";

export const send: Command = {
  usage: "agentctl send <ref> (TEXT | -p TEXT | -F FILE | -) [options] [-- AGENT ARGS…]",
  summary: "Says one more thing to a session. A stopped one goes on in the background, in its own directory.",
  notes: [
    "A session that a host has gets the message through its host. One that is live in a process of its own is not",
    "spoken to behind that process's back: exit 5, with where it is.",
    "Without --permission it is what it was launched with, else the agent's own setting.",
  ].join("\n"),
  behindDashes: "handed on",
  flags: [
    ...promptFlags,
    { flag: "--model", value: "M", help: "the agent's own name of a model" },
    { flag: "--permission", value: "P", help: "read, edit or bypass" },
    { flag: "--max-time", value: "T", help: "end it after so long (90s, 10m, 2h)" },
    { flag: "--share", help: "begin although another session is busy in the same place" },
    { flag: "--start-timeout", value: "T", help: "how long it may take to begin (default: 60s)" },
    { flag: "--json", help: "print JSON" },
  ],
  examples: [
    ['agentctl send 3f2a1b9c "now write the tests"', "goes on where it stopped"],
    ["agentctl send painter -F review.md && agentctl wait painter", "and wait for the answer"],
  ],
  async run(args, context) {
    const [reference, ...words] = args.words;
    if (reference === undefined) throw usage("send needs a session", "send");
    const text = readPrompt(args, words, "send");
    const all = await lookAroundAtRows(context);
    context.err(problemLines(all.problems));
    const row = resolve(reference, all, context);
    const adapter = adapterOf(row);
    guardTarget(row.session, row.ref, callerOf(all.around, context.env), all.around, all.notes);
    if (isHosted(row)) return await sendThroughHost(row, adapter, text, args, context);
    const request = continueRequest(row, adapter, text, args, context);
    const launched = await startSession(request);
    await tellStart(launched, request, args.has("--json"), context);
    return 0;
  },
};

export function adapterOf({ session }: Row): Adapter {
  const adapter = adapterNamed(session.agent);
  if (adapter === null) throw new Error(`no adapter for ${session.agent}`);
  return adapter;
}

export const isHosted = ({ session: { status } }: Row): boolean =>
  status.state === "running" && status.owner.kind === "host";

function continueRequest(row: Row, adapter: Adapter, prompt: string, args: Arguments, context: Context): StartRequest {
  checkPromptFits(prompt, adapter);
  const { session, launch, ref } = row;
  const id = idOf(row);
  const permission = permissionOf(args.one("--permission"), "send") ?? launch?.permission ?? null;
  const order = {
    kind: "continue",
    session: id,
    model: args.one("--model"),
    permission,
    extra: args.rest,
  } as const;
  const refusal = adapter.invocation.refuses({ ...order, prompt }, callerFacts(context));
  if (refusal !== null) throw new AgentctlError("agent-missing", refusal);
  const maxTime = args.one("--max-time");
  const cwd = ownDirectory(row);
  return {
    ...{
      adapter,
      command: commandOf(adapter, context.env),
      order: { ...order, prompt },
      cwd,
      home: session.home,
    },
    ...{ env: context.env, tied: false, before: session, ref },
    note: { name: launch?.name ?? null, group: launch?.group ?? null, labels: launch?.labels ?? {} },
    maxTimeMs: maxTime === null ? null : parseDuration(maxTime, "send"),
    startTimeoutMs: parseDuration(args.one("--start-timeout") ?? "60s", "send"),
    share: args.has("--share"),
    ownIsBypass: ownSettingOf(adapter, session.home, cwd).isBypass,
    warn: (text) => context.err(`agentctl: ${text}\n`),
  };
}

export function idOf({ session, ref }: Row): string {
  if (session.id !== null) return session.id;
  throw new AgentctlError("refused", `${ref} has no session yet: there is nothing to go on with`);
}

/** Agents look for the conversation in the directory that it was held in. */
export function ownDirectory({ session, ref }: Row): string {
  const { cwd } = session;
  if (cwd === null)
    throw new AgentctlError("cannot-tell", `the record of ${ref} does not say in which directory it was held`);
  if (existsSync(cwd)) return cwd;
  const hint = `make the directory again (git worktree add, mkdir), then repeat; agentctl logs ${ref} still reads it`;
  throw new AgentctlError("refused", `its directory is gone: ${cwd}`, { hint });
}

async function sendThroughHost(
  row: Row,
  adapter: Adapter,
  text: string,
  args: Arguments,
  context: Context,
): Promise<number> {
  const id = idOf(row);
  const said = await sendToHosted(row.session, adapter, text);
  const now = (await lookAroundAtRows(context)).rows.find(
    ({ session }) => session.id === id && session.home === row.session.home,
  );
  if (args.has("--json")) context.out(`${JSON.stringify(clean(sessionJson(now ?? row)))}\n`);
  else {
    context.err(`agentctl: handed to its host: ${said}; ${row.ref} is ${statusWord((now ?? row).session)}\n`);
    context.out(`${id}\n`);
  }
  return 0;
}
