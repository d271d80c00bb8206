// agentctl status: one session, all its facts.

import { jsonLine, oneLine } from "../lib/width.ts";
import { evidenceJson } from "../service/evidence-json.ts";
import { hookLog, lastOutput } from "../service/launch-output.ts";
import { lookAtRows, type SessionRow, withPanes } from "../service/look.ts";
import { lookFor, resolve } from "../service/reference.ts";
import { sessionJson, statusWord } from "../service/session-json.ts";
import { count } from "../service/usage.ts";
import { shownReason } from "../words/reasons.ts";
import { referenceIn } from "./arguments.ts";
import type { Command, Context } from "./command.ts";
import {
  costText,
  countingFor,
  homeRelative,
  localTime,
  paint,
  problemLines,
  shortDuration,
  statusColour,
  type Terminal,
  terminalOf,
} from "./render.ts";

export const status: Command = {
  usage: "agentctl status REF [--json]",
  summary: "Show all facts about one session.",
  notes:
    "REF is a session id, a unique prefix of it, a name, pid:<n>, launch:<id>, . (the session in this directory), @last (the\nnewest launch) or @self (the session that this command runs in).",
  flags: [{ flag: "--json", help: "JSON output, with the evidence" }],
  examples: [
    ["agentctl status 3f2a1b9c", "by the prefix that list shows"],
    ["agentctl status .", "the session in this directory"],
    ["agentctl status pid:4711 --json", "for scripts"],
  ],
  async run(args, context) {
    const { row: seen, at } = await oneRow(args.words, "status", context);
    const row = await wholeRow(seen, context);
    context.out(args.has("--json") ? statusJson(row) : statusText(row, at, context, terminalOf(context)));
    return 0;
  },
};

/** Adds its tmux pane and the totals of its record. */
export async function wholeRow(seen: SessionRow, context: Context): Promise<SessionRow> {
  const [withPane = seen] = await withPanes([seen], context);
  return await count(withPane, countingFor(context));
}

export const statusJson = (row: SessionRow): string => jsonLine({ ...sessionJson(row), ...evidenceJson(row.session) });

/** The session that a reference means, with the time of the look. */
export async function oneRow(
  words: readonly string[],
  command: string,
  context: Context,
): Promise<{ row: SessionRow; at: number }> {
  const reference = referenceIn(words, command);
  const { all } = await lookFor([reference], context, lookAtRows);
  context.err(problemLines(all.problems));
  return { row: resolve(reference, all, context), at: all.at };
}

export function headline({ session, ref, launch }: SessionRow, terminal: Terminal): string {
  const word = statusWord(session);
  const name = launch?.name == null ? "" : ` (${oneLine(launch.name)})`;
  const shown = shownReason(session.reason);
  const reason = shown === null ? "" : `: ${oneLine(shown)}`;
  return `${paint(ref, "bold", terminal)}${name} ${session.agent} is ${paint(word, statusColour(word), terminal)}${reason}\n`;
}

function statusText(row: SessionRow, at: number, context: Context, terminal: Terminal): string {
  const json = sessionJson(row);
  const { session } = row;
  const age = (ms: number | null): string | null =>
    ms === null || localTime(ms) === null ? null : `${localTime(ms)} (${shortDuration(at - ms)} ago)`;
  const facts: [string, string | null][] = [
    ["id", json.id],
    ["state", json.state],
    ["since", age(session.since)],
    ["asks", json.waiting === null ? null : `${json.waiting.kind}: ${json.waiting.text ?? ""}`],
    ["options", json.waiting === null ? null : json.waiting.options.join(" | ") || null],
    [
      "background",
      json.background === null ? null : `${json.background.shells} shells, ${json.background.subagents} subagents`,
    ],
    ["process", session.processes.map((each) => `pid ${each.identity.pid}`).join(", ") || null],
    ["link", json.link],
    ["terminal", json.tty],
    ["tmux", json.tmux],
    ["directory", json.cwd === null ? null : homeRelative(json.cwd, context)],
    ["branch", json.branch],
    ["model", json.model],
    ["permission", json.permission],
    ["title", json.title],
    ["prompt", json.prompt],
    ["started", age(session.startedAt)],
    ["last message", age(session.record?.lastMessageAt ?? null)],
    ["ended", age(session.endedAt)],
    ["parent", json.parent],
    ["continued by", json.continuedBy],
    ["tokens", json.tokens === null ? null : tokensText(json.tokens)],
    ["cost", costText(json)],
    ["denied", json.denied === null || json.denied === 0 ? null : `${json.denied} tool calls`],
    ["version", json.agentVersion],
    ["record", session.record === null ? null : homeRelative(session.record.source, context)],
    ["group", json.launch?.group ?? null],
    ["labels", labelsText(json.labels)],
    ["exit status", json.launch?.exit == null ? null : String(json.launch.exit.status)],
    ["on start", hookText(row, "start", at, context)],
    ["on exit", hookText(row, "exit", at, context)],
    ["conflict", json.conflicts.join("; ") || null],
  ];
  const lines = facts.flatMap(([name, value]) =>
    value === null || value === "" ? [] : [`  ${paint(name.padEnd(13), "dim", terminal)} ${oneLine(value)}\n`],
  );
  return `${headline(row, terminal)}${lines.join("")}${outputTail(row, context)}`;
}

const labelsText = (labels: Record<string, string>): string | null =>
  Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(" ") || null;

/** How a hook ended; if it failed, with the file that has its output. */
function hookText({ launch }: SessionRow, kind: "start" | "exit", at: number, context: Context): string | null {
  if (launch === null || launch.hooks[kind] === null) return null;
  const run = launch.hookRuns[kind];
  if (run === null) return "not run yet";
  const age = `${shortDuration(at - Date.parse(run.endedAt ?? run.begunAt))} ago`;
  const when = run.late ? `${age}, late` : age;
  if (run.state === "running") return `running since ${localTime(Date.parse(run.begunAt))} (${when})`;
  const log = homeRelative(hookLog(launch.id, kind, context), context);
  if (run.problem !== null) return `not run (${when}): ${run.problem}`;
  if (run.state !== "ended") return `cut off (${when}); its output: ${log}`;
  if (run.timedOut) return `ended by its time limit (${when}); its output: ${log}`;
  return run.status === 0 ? `done (${when})` : `failed: exit status ${run.status} (${when}); its output: ${log}`;
}

/** The last output of a launched agent, where that may explain how it ended. */
function outputTail(row: SessionRow, context: Context): string {
  const { status } = row.session;
  if (status.state !== "stopped" || status.outcome === "completed") return "";
  return tailText("its output", lastOutput(row, context));
}

export const tailText = (whose: string, text: string): string =>
  text === "" ? "" : `  ${whose} ended with:\n${text.replaceAll(/^/gm, "    ")}\n`;

function tokensText({ input, output, cacheRead, cacheWrite, total }: Record<string, number>): string {
  return `${total} (${input} input, ${output} output, ${cacheRead} from cache, ${cacheWrite} to cache)`;
}
