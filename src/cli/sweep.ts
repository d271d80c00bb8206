// agentctl launch with --agent or --matrix: several sessions, each in its own worktree, all in one group.
import { closeSync, openSync } from "node:fs";
import { resolve } from "node:path";
import { Failure, UsageError } from "../core/failure.ts";
import { failureText } from "../lib/errors.ts";
import { jsonLine, oneLine, plainText } from "../lib/width.ts";
import { agentNamed, noAgentText } from "../service/agent-names.ts";
import { cleanUpAfter } from "../service/launch.ts";
import { launchMany, launchManyJson, type Slot, type SlotResult, slotErrorText } from "../service/launch-many.ts";
import { readToEnd } from "../sys/stdin.ts";
import { failureWords } from "../words/failures.ts";
import { type Arguments, argumentsWith, usage } from "./arguments.ts";
import type { Context } from "./command.ts";
import { confirming } from "./confirming.ts";
import { interruptible } from "./interruption.ts";
import { launchRequestOf } from "./launch-order.ts";
import { type Matrix, parseMatrix, type SlotFlags } from "./matrix.ts";
import { readPrompt } from "./prompt.ts";
import { callOf } from "./service-call.ts";

export async function sweep(args: Arguments, context: Context): Promise<number> {
  const matrix = matrixOf(args, context);
  const [fromFile] = matrix.shared["--group"] ?? [];
  const group = args.one("--group") ?? fromFile ?? `sweep-${crypto.randomUUID().slice(0, 8)}`;
  const slots = slotsOf(matrix, args, group);
  const maxParallel = numberOf(args.one("--max-parallel"));
  const tell = (result: SlotResult): void => context.err(resultText(result, slots.length));
  // Only the launches are interruptible: at the question Ctrl-C ends the command.
  const { results, exitCode } = await confirming(
    (confirmed) =>
      interruptible((signal) => launchMany({ slots, maxParallel, confirmed }, callOf(context, signal), tell)),
    args.has("--yes"),
    context,
    () => {
      throw new Failure("interrupted", { result: "nothing-started" });
    },
  );
  const started = results.flatMap((each) => ("started" in each ? [each.started] : []));
  const call = callOf(context);
  if (args.has("--json")) context.out(jsonLine(await launchManyJson(results, call)));
  else for (const { launched } of started) context.out(`${launched.id}\n`);
  const next = started.length === 0 ? "" : `; see agentctl list --group ${oneLine(group)}`;
  context.err(`agentctl: started ${started.length} of ${slots.length}${next}\n`);
  await cleanUpAfter(started, call);
  return exitCode;
}

function matrixOf(args: Arguments, context: Context): Matrix {
  if (args.has("--agent") && args.has("--matrix")) throw usage("--agent or --matrix, not both", "launch");
  return args.has("--matrix") ? readMatrix(args.one("--matrix") ?? "", context) : matrixFromAgents(args);
}

function slotsOf(matrix: Matrix, args: Arguments, group: string): Slot[] {
  const hasPrompt = args.words.length > 0 || args.has("--prompt") || args.has("--file");
  const prompt = hasPrompt ? readPrompt(args, args.words, "launch") : null;
  const name = args.one("--name");
  return matrix.slots.map((own, index) => {
    const number = index + 1;
    const agent = own["--agent"]?.[0] ?? "";
    const label = [agent, own["--model"]?.[0]].filter((word) => word !== undefined).join("=");
    // A session's own flags in the matrix override the command line, which overrides the flags that all sessions share.
    const wished = Object.entries({ ...matrix.shared, ...own }).filter(([flag]) => flag in own || !args.has(flag));
    const flags: Record<string, readonly string[]> = {
      ...Object.fromEntries(wished),
      ...{ "--agent": [], "--matrix": [], "--max-parallel": [], "--yes": [], "--file": [] },
      "--group": [group],
      ...(name === null ? {} : { "--name": [`${name}-${number}`] }),
    };
    if (prompt !== null) flags["--prompt"] = [prompt];
    if (flags["--prompt"] === undefined) throw usage("there is no prompt, neither here nor in the matrix", "launch");
    return { number, label, request: requestOf(argumentsWith(args, flags, [agent]), group, number) };
  });
}

/** Each session gets its own worktree, unless --share puts them all in one place. */
function requestOf(args: Arguments, group: string, number: number): Slot["request"] {
  const request = launchRequestOf(
    argumentsWith(args, { "--worktree": [], "--base": [], "--setup": [] }, args.words),
    "launch",
  );
  if (args.has("--share") && !args.has("--worktree")) return request;
  const branch = args.one("--worktree") || null;
  const folder = `${group}-${request.agent}-${number}`;
  return {
    ...request,
    worktree: {
      branch: branch === null ? null : `${branch}-${number}`,
      base: args.one("--base"),
      setup: args.one("--setup"),
      folder,
    },
  };
}

const matrixFromAgents = (args: Arguments): Matrix => ({
  shared: {},
  slots: args.all("--agent").map((text): SlotFlags => {
    const equals = text.indexOf("=");
    const agent = equals === -1 ? text : text.slice(0, equals);
    if (agentNamed(agent) === null) throw usage(noAgentText(agent), "launch");
    return equals === -1 ? { "--agent": [agent] } : { "--agent": [agent], "--model": [text.slice(equals + 1)] };
  }),
});

const maxBytes = 256 * 1024;

function readMatrix(file: string, { cwd }: Context): Matrix {
  try {
    const fd = openSync(resolve(cwd, file), "r");
    try {
      const bytes = readToEnd(fd, maxBytes);
      if (bytes === null) throw new UsageError(`${file} has more than ${maxBytes / 1024} KB`);
      return parseMatrix(new TextDecoder("utf-8", { fatal: true }).decode(bytes), file);
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new UsageError(`cannot read ${file}: ${failureText(error)}`, { cause: error });
  }
}

function numberOf(text: string | null): number | null {
  if (text === null) return null;
  if (!/^[1-9][0-9]{0,3}$/.test(text)) throw usage(`--max-parallel takes a number: ${text}`, "launch");
  return Number(text);
}

function resultText(result: SlotResult, count: number): string {
  const { number, label } = result.slot;
  const head = `agentctl: ${number}/${count} ${oneLine(label)}`;
  if ("started" in result) return `${head} started: ${result.started.launched.id}\n`;
  const { error } = result;
  const hint = error instanceof Failure ? failureWords(error).hint : null;
  return `${head} did not start: ${plainText(slotErrorText(error))}\n${hint === null ? "" : `  ${plainText(hint)}\n`}`;
}
