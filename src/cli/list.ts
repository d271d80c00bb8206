// agentctl list: every session of every agent on this host.
import { hostname } from "node:os";
import { Failure } from "../core/failure.ts";
import { jsonLine } from "../lib/width.ts";
import type { SessionConflicts } from "../service/conflicts.ts";
import { lookAtRows, type Rows, type SessionRow, withPanes } from "../service/look.ts";
import { listSelection, matcherOf, type SessionFilter, selectsStopped } from "../service/select.ts";
import { sessionJson, statusWord } from "../service/session-json.ts";
import type { createCachedCount } from "../service/usage.ts";
import { problemJson } from "../words/problems.ts";
import { type Arguments, parseDuration, usage } from "./arguments.ts";
import type { Command, Context } from "./command.ts";
import { conflictLines, conflictsJson } from "./conflicts.ts";
import { filterFlags, filterOf } from "./filter-flags.ts";
import { countingFor, problemLines, terminalOf } from "./render.ts";
import { columnNames, sessionTable } from "./session-table.ts";

const weekMs = 7 * 86_400_000;

export const list: Command = {
  usage: "agentctl list [options]   (also: ls, ps)",
  summary: "List the agent sessions on this host, including those that agentctl did not start.",
  notes:
    "Without -a: running and unknown sessions. -a adds sessions that stopped in the last 7 days. Sessions that need you come\nfirst, then the newest. STATUS is starting, working, waiting, idle or unclear; completed, failed, interrupted,\ncut-off or stopped; or unknown.",
  words: "none",
  flags: [
    { flag: "--all", short: "-a", help: "stopped sessions, too" },
    ...filterFlags,
    { flag: "--since", value: "T", help: "how far back -a looks: 90s, 10m, 2h, 30d (default 7d)" },
    { flag: "--grep", value: "TEXT", help: "sessions with TEXT in their title, prompt, question or directory" },
    { flag: "--served", help: "sessions inside a server process" },
    { flag: "--limit", value: "N", help: "maximum number of sessions" },
    { flag: "--tokens", help: "tokens and cost (reads each record in full)" },
    { flag: "--watch", short: "-w", help: "live list, q quits; with --json one value per change" },
    { flag: "--strict", help: "exit code 8 if anything could not be read" },
    { flag: "--quiet", short: "-q", help: "ids only" },
    { flag: "--columns", value: "A,B,C", help: `columns to show: ${columnNames.join(", ")}` },
    { flag: "--json", help: "JSON output" },
  ],
  examples: [
    ["agentctl list", "running sessions"],
    ["agentctl list --needs-me", "sessions that wait for you"],
    ["agentctl list -a --tokens", "tokens and cost of all sessions of the last 7 days"],
    ["agentctl list -a --since 1d --status cut-off", "sessions that died in the middle of a turn since yesterday"],
    ["agentctl ps --json | jq '.sessions[].cwd'", "for scripts"],
  ],
  async run(args, context) {
    columnsOf(args);
    const wanted = requestOf(args, context);
    const counting = args.has("--tokens") ? (await import("../service/usage.ts")).createCachedCount() : null;
    const look = async () => answer(await lookAtRows(context, wanted.selection), wanted, counting, args, context);
    const strictly = async () => {
      const now = await look();
      if (!args.has("--strict") || now.complete) return now;
      context.out(now.text);
      context.err(now.problems);
      throw new Failure("list-incomplete", {});
    };
    if (args.has("--watch")) return await (await import("./watch.ts")).watch(context, strictly);
    const { text, problems } = await strictly();
    context.out(text);
    context.err(problems);
    return 0;
  },
};

interface ListRequest {
  filter: SessionFilter;
  wantsStopped: boolean;
  selection: ReturnType<typeof listSelection>;
  keep(row: SessionRow): boolean;
  isOld(row: SessionRow, at: number): boolean;
  limit: number;
}

function requestOf(args: Arguments, context: Context): ListRequest {
  const filter = filterOf(args, "list", context.cwd);
  const since = args.one("--since");
  const sinceMs = since === null ? weekMs : parseDuration(since, "list");
  const wantsStopped = args.has("--all") || since !== null || selectsStopped(filter);
  const matches = matcherOf(filter);
  return {
    filter,
    wantsStopped,
    selection: listSelection(filter, wantsStopped, Date.now() - sinceMs),
    keep: (row) => (wantsStopped || row.session.status.state !== "stopped") && matches(row),
    isOld: ({ session }, at) =>
      session.status.state === "stopped" && (session.updatedAt ?? session.startedAt ?? at) < at - sinceMs,
    limit: limitOf(args),
  };
}

function limitOf(args: Arguments): number {
  const text = args.one("--limit");
  if (text === null) return Number.POSITIVE_INFINITY;
  const limit = Number(text);
  if (!Number.isInteger(limit) || limit < 1) throw usage(`--limit takes a whole number from 1, not ${text}`, "list");
  return limit;
}

type Counting = ReturnType<typeof createCachedCount> | null;

async function answer(all: Rows, wanted: ListRequest, counting: Counting, args: Arguments, context: Context) {
  const matching = all.rows.filter(wanted.keep).toSorted(byNeed);
  const recent = matching.filter((row) => !wanted.isOld(row, all.at));
  const rows = args.has("--json")
    ? await withPanes(recent.slice(0, wanted.limit), context)
    : recent.slice(0, wanted.limit);
  // One after the other, because each reads a whole file.
  for (const [index, row] of rows.entries()) rows[index] = (await counting?.(row, countingFor(context))) ?? row;
  const { agents } = wanted.filter;
  const unopened = all.unopened.filter(({ agent }) => agents.length === 0 || agents.includes(agent));
  const older = !wanted.wantsStopped ? 0 : unopened.reduce((sum, { ids }) => sum + ids.length, 0);
  const conflicts = await conflictsAmong(all.rows, context);
  const omitted = {
    older: older + matching.length - recent.length,
    beyondLimit: recent.length - rows.length,
    conflicts: conflicts.omitted,
    places: conflicts.unseen.length,
  };
  const text = args.has("--json")
    ? listJson(all, rows, omitted, conflicts)
    : args.has("--quiet")
      ? idLines(rows)
      : listText(all, rows, omitted, args, context);
  // Two looks are compared without their times.
  const { complete, problems } = all;
  const fingerprint = () =>
    JSON.stringify([rows.map(sessionJson), complete, problems, omitted, conflictsJson(conflicts)]);
  const warnings = conflictLines(conflicts, all.rows);
  return { text, fingerprint, problems: `${problemLines(all.problems)}${warnings}`, complete: all.complete };
}

/** Only live sessions can be in each other's way. */
async function conflictsAmong(rows: readonly SessionRow[], context: Context): Promise<SessionConflicts> {
  const live = rows.filter(({ session }) => session.status.state !== "stopped");
  if (live.length < 2) return { conflicts: [], omitted: 0, unseen: [] };
  return await (await import("../service/conflicts.ts")).findConflicts(rows, context);
}

interface Omitted {
  older: number;
  beyondLimit: number;
  /** Conflicts that are not shown. */
  conflicts: number;
  /** Directories whose changed files git did not list in time. */
  places: number;
}

function listJson(all: Rows, rows: readonly SessionRow[], omitted: Omitted, conflicts: SessionConflicts): string {
  const at = new Date(all.at).toISOString();
  const { complete, problems } = all;
  return jsonLine({
    schema: 1,
    host: hostname(),
    at,
    complete,
    omitted,
    sessions: rows.map(sessionJson),
    conflicts: conflictsJson(conflicts),
    problems: problems.map(problemJson),
  });
}

const unreadNote = "No sessions that could be read; agentctl doctor says what could not.";

/** Sessions that need a person first. Then by start, which never changes: rows keep their place while others work. */
const byNeed = (a: SessionRow, b: SessionRow): number =>
  Number(statusWord(b.session) === "waiting") - Number(statusWord(a.session) === "waiting") ||
  (b.session.startedAt ?? 0) - (a.session.startedAt ?? 0) ||
  ((a.session.id ?? a.ref) < (b.session.id ?? b.ref) ? -1 : 1);

/** A process whose session is not known yet has no id; its reference is used instead. */
const idLines = (rows: readonly SessionRow[]): string =>
  rows.map(({ session, ref }) => `${session.id ?? ref}\n`).join("");

function columnsOf(args: Arguments): string[] | null {
  const names = args.one("--columns")?.split(",") ?? null;
  const wrong = names?.find((name) => !columnNames.includes(name));
  if (wrong !== undefined) throw usage(`no column ${wrong}; known: ${columnNames.join(", ")}`, "list");
  return names;
}

function listText(all: Rows, rows: readonly SessionRow[], omitted: Omitted, args: Arguments, context: Context): string {
  const none = args.has("--needs-me") ? "No session needs you." : "No sessions.";
  const notes = [
    rows.length > 0 ? null : all.complete ? none : unreadNote,
    omitted.older > 0 ? `${omitted.older} older not shown; look further back: agentctl list -a --since 365d` : null,
    omitted.beyondLimit > 0 ? `${omitted.beyondLimit} more not shown because of --limit.` : null,
  ].filter((note) => note !== null);
  const body = rows.length === 0 ? "" : sessionTable(rows, all.at, context, terminalOf(context), columnsOf(args));
  return body + notes.map((note) => `${note}\n`).join("");
}
