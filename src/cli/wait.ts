// agentctl wait: until sessions are done, stopped, idle or waiting.

import { isLeaving, waitFor } from "../control/wait.ts";
import { outOfSight } from "../core/derive.ts";
import type { Outcome } from "../core/evidence.ts";
import { AgentctlError, exitCodes } from "../core/problem.ts";
import { sameProcess } from "../core/process.ts";
import type { Session } from "../core/session.ts";
import { jsonLine, oneLine } from "../lib/width.ts";
import { wantedOr, withIds } from "../observe/wanted.ts";
import { parseDuration, usage } from "./arguments.ts";
import type { Command, Context } from "./command.ts";
import { resolve } from "./reference.ts";
import { problemLines } from "./render.ts";
import { sessionJson, statusWord } from "./session-json.ts";
import { lookAtRows, type Row, type Rows } from "./sessions.ts";
import { type Chosen, chooseRows, isOne, lookForAll, severalFlags } from "./several.ts";

const untils = ["done", "stopped", "idle", "waiting"] as const;
type Until = (typeof untils)[number];

export const wait: Command = {
  usage: "agentctl wait <ref>… [--until done|stopped|idle|waiting] [--any] [--timeout T] [--json]",
  summary: "Waits for sessions. Done means: stopped, or waiting for a person, or idle with nothing running beside it.",
  notes: [
    "Whatever is waited for, a session that stops ends the wait. Names follow a session that goes on under another id.",
    "Exit codes: 0 completed (or idle with nothing left to do, or the wanted --until idle, waiting); 10 it failed, was",
    "interrupted or cut off; 11 it needs a person, or goes on under another id; 6 the time is over. Of several the worst.",
  ].join("\n"),
  flags: [
    ...severalFlags,
    { flag: "--until", value: "S", help: "done (default), stopped, idle, waiting" },
    { flag: "--any", help: "one of them is enough" },
    { flag: "--timeout", value: "T", help: "give up after so long (90s, 10m, 2h)" },
    { flag: "--json", help: "print JSON: the sessions as they are then" },
  ],
  examples: [
    ["agentctl wait @last && agentctl result @last", "the answer, when there is one"],
    ["agentctl wait --group nightly --timeout 2h", "all of a group"],
    ["agentctl wait painter --until waiting", "until it asks something"],
  ],
  async run(args, context) {
    const until = untilOf(args.one("--until") ?? "done");
    const timeout = args.one("--timeout");
    const timeoutMs = timeout === null ? null : parseDuration(timeout, "wait");
    const { all: first, wanted } = await lookForAll(args, context, lookAtRows);
    context.err(problemLines(first.problems));
    const tracked = chooseRows(args, first, "wait", context).map((chosen) => new Tracked(chosen, first));
    const isAny = args.has("--any");
    const told = new Set<string>();
    const { value, isEnough } = await waitFor({
      look: () => lookAtRows(context, wantedOr(wanted, withIds(tracked.map(({ last }) => last.session.id)))),
      isEnough: (rows) => {
        const now = tracked.map((each) => each.in(rows, context));
        const over = now.filter((row) => isOver(row, until));
        if (isAny ? over.length === 0 : over.length < now.length) return false;
        const leaving = until === "done" ? over.filter((row) => row !== null && isLeaving(row.session)) : [];
        return leaving.length === 0 || (isAny && leaving.length < over.length) ? true : "for now";
      },
      sessions: (rows) => tracked.flatMap((each) => each.in(rows, context)?.session ?? []),
      timeoutMs,
      tell: (rows) => tellUnknown(tracked, rows, told, context),
    });
    const now = tracked.map((each) => ({ each, row: each.in(value, context) }));
    const over = now.filter(({ row }) => isOver(row, until));
    if (args.has("--json")) {
      const json = now.map(({ each, row }) => sessionJson(row ?? each.last));
      context.out(jsonLine(isOne(args) ? json[0] : json));
    } else
      for (const { each, row } of over) {
        const text = row === null ? each.whyGone() : verdict(row, until).text;
        context.out(`${each.called} ${text}\n`);
      }
    if (!isEnough) {
      const left = now
        .filter(({ row }) => !isOver(row, until))
        .map(({ each, row }) => `${each.called} is ${row === null ? "gone" : statusWord(row.session)}`);
      throw new AgentctlError("timed-out", `not ${until} after ${timeout}: ${left.join(", ")}`);
    }
    const codes = over.map(({ row }) => verdict(row, until).code);
    return isAny ? Math.min(...codes) : worst(codes);
  },
};

function untilOf(text: string): Until {
  const known = untils.find((each) => each === text);
  if (known === undefined) throw usage(`--until takes ${untils.join(", ")}, not ${text}`, "wait");
  return known;
}

/** Failed comes before waiting: what needs a person may still end well. */
const worst = (codes: readonly number[]): number =>
  codes.includes(exitCodes["agent-failed"]) ? exitCodes["agent-failed"] : Math.max(0, ...codes);

/** One session through many looks: by its name where it was called by one, else by its id, else by its process. */
class Tracked {
  readonly reference: string;
  readonly called: string;
  last: Row;
  /** The name, or the launch, that it is followed by; null: whoever gave an id means this one and no other. */
  private readonly name: string | null;

  constructor({ reference, row, called }: Chosen, { notes }: Rows) {
    this.reference = reference;
    this.called = called;
    this.last = row;
    const isName = row.session.id !== reference && notes.some(({ name }) => name === reference);
    // The newest launch may be another one at the next look.
    if (reference === "@last") this.name = `launch:${notes[0]?.id}`;
    else this.name = isName || reference.startsWith("launch:") ? reference : null;
  }

  /** null: nothing is recorded of it, and its process is gone. */
  in(rows: Rows, context: Context): Row | null {
    const row = this.name === null ? this.same(rows) : this.named(this.name, rows, context);
    if (row === null && isUnread(this.last, rows)) return unreadable(this.last);
    if (row !== null) this.last = row;
    return row;
  }

  whyGone(): string {
    const isNamed = this.last.session.id !== null;
    return isNamed ? "is gone, and nothing is recorded of it" : "is gone, and has not told which session it had";
  }

  private named(name: string, rows: Rows, context: Context): Row | null {
    try {
      return resolve(name, rows, context);
    } catch (error) {
      if (!(error instanceof AgentctlError)) throw error;
      return this.same(rows);
    }
  }

  private same({ rows }: Rows): Row | null {
    const { agent, home, id, processes } = this.last.session;
    const here = rows.filter(({ session }) => session.agent === agent && session.home === home);
    if (id !== null) return here.find(({ session }) => session.id === id) ?? null;
    return (
      here.find(({ session }) =>
        session.processes.some((row) => processes.some((old) => sameProcess(old.identity, row.identity))),
      ) ?? null
    );
  }
}

/** Not in the list is gone only where all of the list could be read. */
const isUnread = ({ session }: Row, { complete, problems }: Rows): boolean =>
  !complete && problems.some(({ agent }) => agent === null || agent === session.agent);

const unreadable = (row: Row): Row => ({ ...row, session: outOfSight(row.session) });

export function isOver(row: Row | null, until: Until): boolean {
  if (row === null) return true;
  const { status, background } = row.session;
  if (status.state !== "running") return status.state === "stopped";
  if (until === "stopped") return false;
  if (until === "idle") return status.activity === "idle";
  if (until === "waiting") return status.activity === "waiting";
  const isBusyBeside = (background?.shells ?? 0) + (background?.subagents ?? 0) > 0;
  return status.activity === "waiting" || (status.activity === "idle" && !isBusyBeside);
}

/** Which it was, in words and as an exit code. */
export function verdict(row: Row | null, until: Until): { code: number; text: string } {
  if (row === null) return { code: exitCodes["agent-failed"], text: "is gone" };
  const { session } = row;
  const { status, continuedBy } = session;
  const word = statusWord(session);
  const why = session.reason === null ? "" : ` (${oneLine(session.reason)})`;
  if (status.state === "stopped" && continuedBy !== null)
    return { code: exitCodes["needs-a-person"], text: `goes on as ${continuedBy}` };
  if (status.state === "stopped") return { code: codeOf(status.outcome), text: `${word}${why}` };
  if (status.state === "running" && status.activity === "waiting") {
    const asks = session.waiting?.text == null ? why : `: ${oneLine(session.waiting.text)}`;
    return { code: until === "waiting" ? 0 : exitCodes["needs-a-person"], text: `${word}${asks}` };
  }
  return { code: lastTurnFailed(session) ? exitCodes["agent-failed"] : 0, text: `${word}${why}` };
}

/** Not every agent records how a turn ended: that is not a failure, but nobody can tell. */
const codeOf = (outcome: Outcome | null): number =>
  outcome === null ? exitCodes["cannot-tell"] : outcome === "completed" ? 0 : exitCodes["agent-failed"];

function lastTurnFailed({ record }: Session): boolean {
  const turn = record?.turn;
  return turn?.state === "closed" && turn.outcome !== null && turn.outcome !== "completed";
}

function tellUnknown(tracked: readonly Tracked[], rows: Rows, told: Set<string>, context: Context): void {
  for (const each of tracked) {
    const status = each.in(rows, context)?.session.status;
    if (status?.state !== "unknown" || told.has(each.reference)) continue;
    told.add(each.reference);
    context.err(`agentctl: ${each.called} is unknown (${oneLine(status.why)}); waiting on\n`);
  }
}
