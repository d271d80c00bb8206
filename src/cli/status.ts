// agentctl status: one session, all its facts.
import type { HookKind } from "../control/hook-runs.ts";
import { launchFiles } from "../control/notes.ts";
import { lastLines } from "../control/output.ts";
import { jsonLine, oneLine } from "../lib/width.ts";
import { usage } from "./arguments.ts";
import type { Command, Context } from "./command.ts";
import { count } from "./count.ts";
import { lookFor, resolve } from "./reference.ts";
import {
  costText,
  homeRelative,
  paint,
  problemLines,
  shortDuration,
  statusColour,
  type Terminal,
  terminalOf,
} from "./render.ts";
import { evidenceJson, sessionJson, statusWord, time } from "./session-json.ts";
import { lookAtRows, type Row, withPanes } from "./sessions.ts";

export const status: Command = {
  usage: "agentctl status <ref> [--json]",
  summary: "Shows one session with all its facts.",
  notes:
    "<ref> is an id, a unique prefix of one, a name, pid:<n>, . (the session of this place) or @self (the one we run in).",
  flags: [{ flag: "--json", help: "print JSON, with the evidence" }],
  examples: [
    ["agentctl status 3f2a1b9c", "by the prefix that list shows"],
    ["agentctl status .", "the session of this directory"],
    ["agentctl status pid:4711 --json", "for scripts"],
  ],
  async run(args, context) {
    const { row: seen, at } = await oneRow(args.words, "status", context);
    const row = await wholeRow(seen, context);
    context.out(args.has("--json") ? statusJson(row) : statusText(row, at, context, terminalOf(context)));
    return 0;
  },
};

/** With its pane, and counted in full. */
export async function wholeRow(seen: Row, context: Context): Promise<Row> {
  const [withPane = seen] = await withPanes([seen], context);
  return await count(withPane, context);
}

export const statusJson = (row: Row): string => jsonLine({ ...sessionJson(row), ...evidenceJson(row.session) });

/** The session a person means, with the time of the look. */
export async function oneRow(
  words: readonly string[],
  command: string,
  context: Context,
): Promise<{ row: Row; at: number }> {
  const [reference, extra] = words;
  if (reference === undefined) throw usage(`${command} needs a session`, command);
  if (extra !== undefined) throw usage(`${command} takes one session, not also ${extra}`, command);
  const { all } = await lookFor([reference], context, lookAtRows);
  context.err(problemLines(all.problems));
  return { row: resolve(reference, all, context), at: all.at };
}

export function headline({ session, ref, launch }: Row, terminal: Terminal): string {
  const word = statusWord(session);
  const name = launch?.name == null ? "" : ` (${oneLine(launch.name)})`;
  const reason = session.reason === null ? "" : `: ${oneLine(session.reason)}`;
  return `${paint(ref, "bold", terminal)}${name} ${session.agent} is ${paint(word, statusColour(word), terminal)}${reason}\n`;
}

function statusText(row: Row, at: number, context: Context, terminal: Terminal): string {
  const json = sessionJson(row);
  const { session } = row;
  const age = (ms: number | null): string | null =>
    ms === null || time(ms) === null ? null : `${time(ms)} (${shortDuration(at - ms)} ago)`;
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
    ["labels", labelsText(json.launch?.labels ?? {})],
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

/** How a hook went; where it did not go well, with the file that has its words. */
function hookText({ launch }: Row, kind: HookKind, at: number, context: Context): string | null {
  if (launch === null || launch.hooks[kind] === null) return null;
  const run = launch.hookRuns[kind];
  if (run === null) return "not run yet";
  const age = `${shortDuration(at - Date.parse(run.endedAt ?? run.begunAt))} ago`;
  const when = run.late ? `${age}, late` : age;
  if (run.state === "running") return `running, since ${run.begunAt} (${when})`;
  const { startLog, exitLog } = launchFiles(context.env, launch.id);
  const log = homeRelative(kind === "start" ? startLog : exitLog, context);
  if (run.problem !== null) return `not run (${when}): ${run.problem}`;
  if (run.state !== "ended") return `cut off (${when}); its output: ${log}`;
  if (run.timedOut) return `ended after its time was over (${when}); its output: ${log}`;
  return run.status === 0 ? `done (${when})` : `failed: exit status ${run.status} (${when}); its output: ${log}`;
}

/** What a launched agent said last, where that may explain how it ended. */
function outputTail({ session, launch }: Row, context: Context): string {
  const { status } = session;
  if (launch === null || status.state !== "stopped" || status.outcome === "completed") return "";
  const { out, err } = launchFiles(context.env, launch.id);
  return tailText("its output", lastLines(err) || lastLines(out));
}

export const tailText = (whose: string, text: string): string =>
  text === "" ? "" : `  ${whose} ended with:\n${text.replaceAll(/^/gm, "    ")}\n`;

function tokensText({ input, output, cacheRead, cacheWrite, total }: Record<string, number>): string {
  return `${total} (${input} input, ${output} output, ${cacheRead} from cache, ${cacheWrite} to cache)`;
}
