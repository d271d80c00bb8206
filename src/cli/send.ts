// agentctl send: one more message to a session. A stopped one goes on headless; a hosted one gets it through its host.
import type { Adapter } from "../adapters/adapter.ts";
import { callerOf, guardTarget } from "../control/guard.ts";
import { sendToHosted } from "../control/hosted.ts";
import { unsaid } from "../control/notes.ts";
import { oneAtATime } from "../control/places.ts";
import { startSession } from "../control/start-session.ts";
import { AgentctlError } from "../core/problem.ts";
import { isHosted, isSameSession } from "../core/session.ts";
import { jsonLine } from "../lib/width.ts";
import { withIds } from "../observe/wanted.ts";
import { adapterOf, idOf, ownDirectory } from "./acted-row.ts";
import { type Arguments, usage } from "./arguments.ts";
import type { Command, Context } from "./command.ts";
import { tellStart } from "./launch.ts";
import { permissionOf, startRequest } from "./launch-order.ts";
import { promptFlags, readPrompt } from "./prompt.ts";
import { lookFor, resolve } from "./reference.ts";
import { problemLines } from "./render.ts";
import { statusWord } from "./session-json.ts";
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
    const { all } = await lookFor([reference], context, lookAroundAtRows);
    context.err(problemLines(all.problems));
    const row = resolve(reference, all, context);
    const adapter = adapterOf(row);
    guardTarget(row.session, row.ref, callerOf(all.around, context.env), all.around, all.notes);
    if (isHosted(row.session)) return await sendThroughHost(row, adapter, text, args, context);
    const { session, launch, ref } = row;
    const { name, group, labels, spec, worktree, commit } = launch ?? unsaid;
    const request = startRequest(args, context, "send", {
      adapter,
      which: { kind: "continue", session: idOf(row) },
      prompt: text,
      permission: permissionOf(args.one("--permission"), "send"),
      inherited: launch?.permission ?? null,
      cwd: ownDirectory(row),
      home: session.home,
      tied: false,
      before: session,
      ref,
      // Hooks were for that one launch.
      note: { name, group, labels, spec, worktree, commit, hooks: unsaid.hooks },
    });
    const launched = await startSession(request);
    await tellStart(launched, request, args.has("--json"), context);
    return 0;
  },
};

const flagsOfAStart = ["--permission", "--model", "--max-time", "--start-timeout"];

/** Its host runs it already: with the model and the permission that it has there. */
async function sendThroughHost(
  row: Row,
  adapter: Adapter,
  text: string,
  args: Arguments,
  context: Context,
): Promise<number> {
  const useless =
    flagsOfAStart.find((flag) => args.has(flag)) ?? (args.rest.length > 0 ? "what stands behind --" : null);
  if (useless !== null)
    throw new AgentctlError(
      "refused",
      `${row.ref} lives in a host, with settings of its own: ${useless} cannot be passed on`,
    );
  const id = idOf(row);
  const said = await oneAtATime(context.env, () => sendToHosted(row.session, adapter, text));
  const { rows } = await lookAroundAtRows(context, withIds([id]));
  const now = rows.find(({ session }) => isSameSession(session, row.session)) ?? row;
  if (args.has("--json")) {
    const { agent, cwd, processes } = now.session;
    const json = { id, ref: now.ref, agent, launch: null, process: processes[0]?.identity ?? null, cwd };
    context.out(jsonLine({ ...json, group: now.launch?.group ?? null, permission: null }));
    return 0;
  }
  context.err(`agentctl: handed to its host: ${said}; ${row.ref} is ${statusWord(now.session)}\n`);
  context.out(`${id}\n`);
  return 0;
}
