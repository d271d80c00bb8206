// Several sessions by one launch: a slot each, with its own worktree, log and row, and the group's name on all of them.
import { closeSync, openSync } from "node:fs";
import { resolve } from "node:path";
import { adapterNamed } from "../adapters/registry.ts";
import { type Started, startWhere } from "../control/start-in-worktree.ts";
import { tidyUp } from "../control/tidy.ts";
import { waitFor } from "../control/wait.ts";
import { AgentctlError, exitCodes } from "../core/problem.ts";
import { jsonLine, oneLine, plainText } from "../lib/width.ts";
import { failureText } from "../observe/failure.ts";
import { readToEnd } from "../sys/stdin.ts";
import { type Arguments, argumentsWith, usage } from "./arguments.ts";
import type { Context } from "./command.ts";
import { folderName, noAgentText, requestOf, startJson } from "./launch-order.ts";
import { type Matrix, parseMatrix, type SlotFlags } from "./matrix.ts";
import { readPrompt } from "./prompt.ts";
import { canAsk, confirm } from "./question.ts";
import { launchedSessions, lookAtRows } from "./sessions.ts";

const mostUnasked = 64;
const startsAtOnce = 4;

interface Slot {
  number: number;
  args: Arguments;
  label: string;
}

type Outcome = { slot: Slot; started: Started } | { slot: Slot; error: Error };

const isInterrupted = (outcome: Outcome): boolean =>
  "error" in outcome && outcome.error instanceof AgentctlError && outcome.error.code === "interrupted";

export async function sweep(args: Arguments, context: Context): Promise<number> {
  const matrix = matrixOf(args, context);
  const [fromFile] = matrix.shared["--group"] ?? [];
  const group = args.one("--group") ?? fromFile ?? `sweep-${crypto.randomUUID().slice(0, 8)}`;
  const slots = slotsOf(matrix, args, group);
  askForMany(slots.length, args, context);
  const limit = numberOf(args.one("--max-parallel"));
  const outcomes: Outcome[] = [];
  const queue = [...slots];
  const work = async (): Promise<void> => {
    for (let slot = queue.shift(); slot !== undefined && !outcomes.some(isInterrupted); slot = queue.shift()) {
      const outcome = await begin(slot, limit, outcomes, args, context);
      outcomes.push(outcome);
      tell(outcome, slots.length, context);
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: limit === null ? startsAtOnce : 1 }, work));
  // Where not even that could be told, the others have begun all the same.
  for (const end of ends) if (end.status === "rejected") throw end.reason;
  outcomes.sort((a, b) => a.slot.number - b.slot.number);
  return await answer(outcomes, slots, group, args, context);
}

function matrixOf(args: Arguments, context: Context): Matrix {
  if (args.has("--agent") && args.has("--matrix")) throw usage("--agent or --matrix, not both", "launch");
  return args.has("--matrix") ? readMatrix(args.one("--matrix") ?? "", context) : ofAgents(args);
}

function slotsOf(matrix: Matrix, args: Arguments, group: string): Slot[] {
  const hasPrompt = args.words.length > 0 || args.has("--prompt") || args.has("--file");
  const prompt = hasPrompt ? readPrompt(args, args.words, "launch") : null;
  const name = args.one("--name");
  return matrix.slots.map((own, index) => {
    const number = index + 1;
    const agent = own["--agent"]?.[0] ?? "";
    const label = [agent, own["--model"]?.[0]].filter((word) => word !== undefined).join("=");
    // What stands on the command line wins over the file.
    const wished = Object.entries({ ...matrix.shared, ...own }).filter(([flag]) => flag in own || !args.has(flag));
    const flags: Record<string, readonly string[]> = {
      ...Object.fromEntries(wished),
      ...{ "--agent": [], "--matrix": [], "--max-parallel": [], "--yes": [], "--file": [] },
      "--group": [group],
      ...(name === null ? {} : { "--name": [`${name}-${number}`] }),
    };
    if (prompt !== null) flags["--prompt"] = [prompt];
    if (flags["--prompt"] === undefined) throw usage("there is no prompt, neither here nor in the matrix", "launch");
    return { number, label, args: argumentsWith(args, flags, [agent]) };
  });
}

const ofAgents = (args: Arguments): Matrix => ({
  shared: {},
  slots: args.all("--agent").map((text): SlotFlags => {
    const equals = text.indexOf("=");
    const agent = equals === -1 ? text : text.slice(0, equals);
    if (adapterNamed(agent) === null) throw usage(noAgentText(agent), "launch");
    return equals === -1 ? { "--agent": [agent] } : { "--agent": [agent], "--model": [text.slice(equals + 1)] };
  }),
});

const mostBytes = 256 * 1024;

function readMatrix(file: string, { cwd }: Context): Matrix {
  try {
    const fd = openSync(resolve(cwd, file), "r");
    try {
      const bytes = readToEnd(fd, mostBytes);
      if (bytes === null) throw new AgentctlError("usage", `${file} has more than ${mostBytes / 1024} KB`);
      return parseMatrix(new TextDecoder("utf-8", { fatal: true }).decode(bytes), file);
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if (error instanceof AgentctlError) throw error;
    throw new AgentctlError("usage", `cannot read ${file}: ${failureText(error)}`, { cause: error });
  }
}

function askForMany(count: number, args: Arguments, context: Context): void {
  if (count <= mostUnasked || args.has("--yes")) return;
  if (!canAsk()) throw new AgentctlError("refused", `that is ${count} sessions`, { hint: "-y begins them all" });
  if (!confirm(`begin ${count} sessions?`, context)) throw new AgentctlError("interrupted", "nothing was started");
}

function numberOf(text: string | null): number | null {
  if (text === null) return null;
  if (!/^[1-9][0-9]{0,3}$/.test(text)) throw usage(`--max-parallel takes a number: ${text}`, "launch");
  return Number(text);
}

/** Waits until so few of those that we began are left that one more may begin. */
async function untilFewer(limit: number, outcomes: readonly Outcome[], context: Context): Promise<void> {
  const begun = new Set(outcomes.flatMap((each) => ("started" in each ? [each.started.launched.launch] : [])));
  if (begun.size < limit) return;
  await waitFor({
    look: async () =>
      (await lookAtRows(context, launchedSessions(context))).rows.filter(
        ({ launch, session }) => launch !== null && begun.has(launch.id) && session.status.state !== "stopped",
      ),
    isEnough: (live) => live.length < limit,
    sessions: (live) => live.map(({ session }) => session),
    timeoutMs: null,
  });
}

/** A slot that fails leaves the others alone, whatever the reason. */
async function begin(
  slot: Slot,
  limit: number | null,
  before: readonly Outcome[],
  all: Arguments,
  context: Context,
): Promise<Outcome> {
  try {
    if (limit !== null) await untilFewer(limit, before, context);
    const request = requestOf(slot.args, context, "launch", false);
    const { agent } = request.adapter;
    const isShared = all.has("--share") && !all.has("--worktree");
    const wished = all.one("--worktree") || null;
    const own = {
      branch: wished === null ? null : `${wished}-${slot.number}`,
      base: slot.args.one("--base"),
      setup: slot.args.one("--setup"),
      name: folderName(`${request.note.group}-${agent}-${slot.number}`),
      namedBy: "agentctl",
    } as const;
    return { slot, started: await startWhere(request, isShared ? null : own) };
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return { slot, error };
  }
}

function tell(outcome: Outcome, count: number, context: Context): void {
  const { slot } = outcome;
  const head = `agentctl: ${slot.number}/${count} ${oneLine(slot.label)}`;
  if ("started" in outcome) context.err(`${head} has begun: ${outcome.started.launched.id}\n`);
  else context.err(`${head} did not begin: ${plainText(errorText(outcome.error))}\n${hintLine(outcome.error)}`);
}

const hintLine = (error: Error): string =>
  error instanceof AgentctlError && error.hint !== null ? `  ${plainText(error.hint)}\n` : "";

const errorText = (error: Error): string =>
  error instanceof AgentctlError ? error.message : `this should not happen: ${failureText(error)}`;

async function answer(
  outcomes: readonly Outcome[],
  slots: readonly Slot[],
  group: string,
  args: Arguments,
  context: Context,
): Promise<number> {
  if (args.has("--json")) {
    const { rows } = await lookAtRows(context, launchedSessions(context));
    const values = outcomes.map((outcome) => {
      if ("error" in outcome)
        return { slot: outcome.slot.number, label: outcome.slot.label, error: errorText(outcome.error) };
      const { launched, request } = outcome.started;
      const row = rows.find(({ launch }) => launch?.id === launched.launch) ?? null;
      return { slot: outcome.slot.number, ...startJson(launched, request, row) };
    });
    context.out(jsonLine(values));
  } else for (const outcome of outcomes) if ("started" in outcome) context.out(`${outcome.started.launched.id}\n`);
  const launches = outcomes.flatMap((each) => ("started" in each ? [each.started.launched.launch] : []));
  context.err(`agentctl: ${launches.length} of ${slots.length} have begun; agentctl list --group ${oneLine(group)}\n`);
  await tidyUp(launches, context.env, (text) => context.err(`agentctl: ${oneLine(text)}\n`));
  if (outcomes.some(isInterrupted)) return exitCodes.interrupted;
  const [code = exitCodes.failed, another] = new Set(outcomes.map(codeOf));
  return another === undefined ? code : exitCodes.failed;
}

function codeOf(outcome: Outcome): number {
  if ("started" in outcome) return 0;
  return outcome.error instanceof AgentctlError ? exitCodes[outcome.error.code] : exitCodes.failed;
}
