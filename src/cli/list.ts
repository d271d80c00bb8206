// agentctl list: every session of every agent on this machine, as it is now.
import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { resolve } from "node:path";
import { adapterNamed, adapters } from "../adapters/registry.ts";
import { type Conflicts, conflictsOf } from "../control/radar.ts";
import { AgentctlError } from "../core/problem.ts";
import { jsonLine } from "../lib/width.ts";
import { placeOf } from "../observe/place.ts";
import { noneStopped, type Wanted, writtenSince } from "../observe/wanted.ts";
import { type Arguments, parseDuration, usage } from "./arguments.ts";
import type { Command, Context } from "./command.ts";
import { conflictLines, conflictsJson } from "./conflicts.ts";
import { problemLines, terminalOf } from "./render.ts";
import { sessionJson, statusWord } from "./session-json.ts";
import { sessionTable, wordsOf } from "./session-table.ts";
import { lookAtRows, type Row, type Rows, withPanes } from "./sessions.ts";

const weekMs = 7 * 86_400_000;

export const list: Command = {
  usage: "agentctl list [options]        (also: ls, ps)",
  summary: "Shows the agent sessions of this machine, also those that agentctl did not start.",
  notes:
    "Without -a: running and unknown ones. -a adds those that stopped in the last 7 days.\nSTATUS is working, waiting, idle, unclear; completed, failed, interrupted, cut-off, stopped; or unknown.",
  flags: [
    { flag: "--all", short: "-a", help: "also stopped sessions" },
    { flag: "--needs-me", help: "only sessions that wait for a person" },
    { flag: "--agent", value: "A", repeated: true, help: "only this agent" },
    { flag: "--status", value: "S", repeated: true, help: "only this status, or state (running, stopped, unknown)" },
    { flag: "--group", value: "G", help: "only this group of launches" },
    { flag: "--label", value: "K=V", repeated: true, help: "only launches with this label" },
    { flag: "--cwd", value: "DIR", help: "only sessions of this place (git worktree, else directory)" },
    { flag: "--since", value: "T", help: "how far back -a looks: 90s, 10m, 2h, 30d" },
    { flag: "--grep", value: "TEXT", help: "only sessions with this text in title, prompt, question or directory" },
    { flag: "--hosted", help: "only sessions that live in a host process" },
    { flag: "--limit", value: "N", help: "at most N sessions" },
    { flag: "--tokens", help: "count tokens, cost and denied calls in full: reads every shown record" },
    { flag: "--watch", short: "-w", help: "keep showing; with --json one JSON value per change" },
    { flag: "--strict", help: "exit 8 if anything could not be read" },
    { flag: "--json", help: "print JSON" },
  ],
  examples: [
    ["agentctl list", "what runs now"],
    ["agentctl list --needs-me", "who waits for you"],
    ["agentctl list -a --tokens", "what the sessions of this week used"],
    ["agentctl list -a --since 1d --status cut-off", "what was killed since yesterday"],
    ["agentctl ps --json | jq '.sessions[].cwd'", "for scripts"],
  ],
  async run(args, context) {
    if (args.words.length > 0) throw usage(`list takes no words: ${args.words[0]}`, "list");
    const wanted = selection(args);
    const counting = args.has("--tokens") ? (await import("./count.ts")).countAgain() : null;
    const look = async () => answer(await lookAtRows(context, wanted.stopped), wanted, counting, args, context);
    const strictly = async () => {
      const now = await look();
      if (!args.has("--strict") || now.complete) return now;
      context.out(now.text);
      context.err(now.problems);
      throw new AgentctlError("cannot-tell", "something could not be read", { hint: "agentctl doctor" });
    };
    if (args.has("--watch")) return await (await import("./watch.ts")).watch(context, strictly);
    const { text, problems } = await strictly();
    context.out(text);
    context.err(problems);
    return 0;
  },
};

interface Selection {
  stopped: Wanted;
  /** Only these; none: all. */
  agents: readonly string[];
  keep(row: Row): boolean;
  isOld(row: Row, at: number): boolean;
  limit: number;
}

function selection(args: Arguments): Selection {
  const agents = args.all("--agent").map((name) => {
    const adapter = adapterNamed(name);
    if (adapter === null)
      throw usage(`no agent ${name}; known: ${adapters.map((each) => each.agent).join(", ")}`, "list");
    return adapter.agent;
  });
  const statuses = args.all("--status");
  for (const word of statuses)
    if (!statusWords.includes(word)) throw usage(`no status ${word}; known: ${statusWords.join(", ")}`, "list");
  const labels = args.all("--label").map((label) => {
    const equals = label.indexOf("=");
    if (equals < 1) throw usage(`--label takes KEY=VALUE, not ${label}`, "list");
    return [label.slice(0, equals), label.slice(equals + 1)] as const;
  });
  const group = args.one("--group");
  const place = args.one("--cwd");
  const here = place === null ? null : placeOf(resolve(place));
  if (place !== null && !existsSync(place)) throw usage(`no directory ${place}`, "list");
  const grep = args.one("--grep")?.toLowerCase() ?? null;
  const since = args.one("--since");
  const sinceMs = since === null ? weekMs : parseDuration(since, "list");
  const wantsStopped = args.has("--all") || since !== null || statuses.some((word) => stoppedWords.includes(word));
  // What is too old to be shown is counted by its name: that is enough where nothing is asked that only its record tells.
  const isCounted = statuses.length + labels.length === 0 && [group, here, grep].every((each) => each === null);
  const tests: ((row: Row) => boolean)[] = [
    ({ session }) => wantsStopped || session.status.state !== "stopped",
    ({ session }) => !args.has("--needs-me") || statusWord(session) === "waiting",
    ({ session }) => agents.length === 0 || agents.includes(session.agent),
    ({ session }) =>
      statuses.length === 0 || statuses.includes(statusWord(session)) || statuses.includes(session.status.state),
    ({ launch }) => group === null || launch?.group === group,
    ({ launch }) => labels.every(([key, value]) => launch?.labels[key] === value),
    ({ session }) => here === null || placeOf(session.cwd) === here,
    ({ session }) => grep === null || wordsOf(session).toLowerCase().includes(grep),
    ({ session }) =>
      !args.has("--hosted") || (session.status.state === "running" && session.status.owner.kind === "host"),
  ];
  return {
    stopped: !wantsStopped ? noneStopped : isCounted ? writtenSince(Date.now() - sinceMs) : "all",
    agents,
    keep: (row) => tests.every((test) => test(row)),
    isOld: ({ session }, at) =>
      session.status.state === "stopped" && (session.updatedAt ?? session.startedAt ?? at) < at - sinceMs,
    limit: limitOf(args),
  };
}

const stoppedWords = ["stopped", "completed", "failed", "interrupted", "cut-off"];
const statusWords = ["running", "working", "waiting", "idle", "unclear", "unknown", ...stoppedWords];

function limitOf(args: Arguments): number {
  const text = args.one("--limit");
  if (text === null) return Number.POSITIVE_INFINITY;
  const limit = Number(text);
  if (!Number.isInteger(limit) || limit < 1) throw usage(`--limit takes a whole number from 1, not ${text}`, "list");
  return limit;
}

type Counting = ((row: Row, context: Context) => Promise<Row>) | null;

async function answer(all: Rows, wanted: Selection, counting: Counting, args: Arguments, context: Context) {
  const matching = all.rows.filter(wanted.keep);
  const recent = matching.filter((row) => !wanted.isOld(row, all.at));
  const rows = args.has("--json")
    ? await withPanes(recent.slice(0, wanted.limit), context)
    : recent.slice(0, wanted.limit);
  // One after the other: each is a file read to its end.
  for (const [index, row] of rows.entries()) rows[index] = (await counting?.(row, context)) ?? row;
  const unopened = all.unopened.filter(({ agent }) => wanted.agents.length === 0 || wanted.agents.includes(agent));
  const older = wanted.stopped === noneStopped ? 0 : unopened.reduce((sum, { ids }) => sum + ids.length, 0);
  const conflicts = await conflictsOf(
    all.rows.map(({ session }) => session),
    context.env,
  );
  const omitted = {
    older: older + matching.length - recent.length,
    beyondLimit: recent.length - rows.length,
    conflicts: conflicts.omitted,
    places: conflicts.unseen.length,
  };
  const text = args.has("--json") ? listJson(all, rows, omitted, conflicts) : listText(all, rows, omitted, context);
  // The time of asking changes with every look; what is compared between two looks is the rest.
  const { complete, problems } = all;
  const fingerprint = () =>
    JSON.stringify([rows.map(sessionJson), complete, problems, omitted, conflictsJson(conflicts)]);
  const warnings = conflictLines(conflicts, all.rows);
  return { text, fingerprint, problems: `${problemLines(all.problems)}${warnings}`, complete: all.complete };
}

interface Omitted {
  older: number;
  beyondLimit: number;
  /** Groups of files in the way of several sessions, beyond those that are told. */
  conflicts: number;
  /** Places whose changed files git did not tell in time. */
  places: number;
}

function listJson(all: Rows, rows: readonly Row[], omitted: Omitted, conflicts: Conflicts): string {
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
    problems,
  });
}

const unreadNote = "No sessions that could be read; agentctl doctor says what could not.";

function listText(all: Rows, rows: readonly Row[], omitted: Omitted, context: Context): string {
  const notes = [
    rows.length > 0 ? null : all.complete ? "No sessions." : unreadNote,
    omitted.older > 0 ? `${omitted.older} older not shown (--since 90d shows more).` : null,
    omitted.beyondLimit > 0 ? `${omitted.beyondLimit} more not shown (--limit).` : null,
  ].filter((note) => note !== null);
  const body = rows.length === 0 ? "" : sessionTable(rows, all.at, context, terminalOf(context));
  return body + notes.map((note) => `${note}\n`).join("");
}
