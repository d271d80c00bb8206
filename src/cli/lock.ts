// agentctl lock: which places are taken, by sessions and by people; and a person's own wish that nobody begins somewhere.

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { refuseInside } from "../control/guard.ts";
import { hasLetGo, notLiveIn } from "../control/leaving.ts";
import { forgetOverLocks, type ManualLock, readLocks, removeLock, writeLock } from "../control/manual-locks.ts";
import { lockedText, occupantText, oneAtATime } from "../control/places.ts";
import { AgentctlError } from "../core/problem.ts";
import { isBusy, type Session } from "../core/session.ts";
import { jsonLine, oneLine, someOf } from "../lib/width.ts";
import { errorCode } from "../observe/failure.ts";
import { readWhole, withFile } from "../observe/files.ts";
import { placeOf } from "../observe/place.ts";
import { noneStopped } from "../observe/wanted.ts";
import { type Arguments, parseDuration, usage } from "./arguments.ts";
import type { Command, Context } from "./command.ts";
import { homeRelative, problemLines, shortDuration, table, terminalOf } from "./render.ts";
import { statusWord, time } from "./session-json.ts";
import { lookAtRows } from "./sessions.ts";

const defaultTtl = "4h";
const longestMs = 366 * 24 * 3_600_000;

export const lock: Command = {
  usage: "agentctl lock list | add [DIR] [--by WHO] [--reason TEXT] [--ttl T] | rm [DIR]",
  summary: "Shows which places are taken, and keeps one for a person: launches there are refused until it is over.",
  notes: [
    "A place is the root of a git worktree, else the directory itself. Places that a session works in are taken by",
    "themselves; nothing is stored for that, and nothing has to be cleaned up. A person's lock ends with its time.",
  ].join("\n"),
  flags: [
    { flag: "--by", value: "WHO", help: "whose wish it is (default: you)" },
    { flag: "--reason", value: "TEXT", help: "shown to whoever is refused" },
    { flag: "--ttl", value: "T", help: `how long (90s, 10m, 2h, 7d; default: ${defaultTtl})` },
    { flag: "--json", help: "print JSON" },
  ],
  examples: [
    ["agentctl lock add --reason 'release in progress'", "this place, for four hours"],
    ["agentctl lock add ../api --ttl 30m --by anna", "another one"],
    ["agentctl lock rm", "give it back"],
    ["agentctl lock list", "people's locks, and the sessions that are at work"],
  ],
  async run(args, context) {
    const [what = "list", directory, more] = args.words;
    if (more !== undefined) throw usage(`one directory at a time: ${more}`, "lock");
    if (what === "list" && directory === undefined) return await list(args, context);
    if (what === "add") return await add(directory ?? ".", args, context);
    if (what === "rm") return await remove(directory ?? ".", args, context);
    throw usage(`lock takes list, add or rm: ${what}${directory === undefined ? "" : ` ${directory}`}`, "lock");
  },
};

async function add(directory: string, args: Arguments, context: Context): Promise<number> {
  const ttlMs = parseDuration(args.one("--ttl") ?? defaultTtl, "lock");
  if (ttlMs === 0) throw usage("--ttl must be more than nothing", "lock");
  if (ttlMs > longestMs) throw usage("--ttl may be a year at most", "lock");
  const by = args.one("--by") ?? userName(context);
  if (by.trim() === "") throw usage("--by needs a name", "lock");
  // With the slash only a directory is there.
  if (!existsSync(`${resolve(context.cwd, directory)}/`)) throw usage(`no directory ${directory}`, "lock");
  const place = placeNamed(directory, context);
  const lock = await oneAtATime(context.env, async () => {
    const now = Date.now();
    const [theirs] = readLocks(context.env, now).locks.filter((each) => each.place === place);
    if (theirs !== undefined)
      throw new AgentctlError("refused", `${place} is ${lockedText(theirs)}`, {
        hint: `agentctl lock rm ${directory}`,
      });
    const mine: ManualLock = { place, by, reason: args.one("--reason"), at: now, until: now + ttlMs };
    forgetOverLocks(context.env, now);
    writeLock(context.env, mine);
    return mine;
  });
  if (args.has("--json")) context.out(jsonLine(lockJson(lock)));
  else
    context.out(
      `${homeRelative(oneLine(place), context)} is locked for ${shortDuration(ttlMs)}, until ${time(lock.until)}\n`,
    );
  return 0;
}

/** Bun 1.4 calls everybody "unknown" where USER is not set, as in cron and containers. */
function userName({ env }: Context): string {
  const uid = String(process.getuid?.());
  return env["USER"] || env["LOGNAME"] || (nameInPasswd(uid) ?? `uid ${uid}`);
}

const passwdBytes = 16 * 1024 * 1024;

function nameInPasswd(uid: string): string | null {
  try {
    const users = withFile("/etc/passwd", (file) => readWhole(file, passwdBytes))
      .toString("utf8")
      .split("\n");
    return users.map((line) => line.split(":")).find((fields) => fields[2] === uid)?.[0] ?? null;
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return null;
  }
}

async function remove(directory: string, args: Arguments, context: Context): Promise<number> {
  const place = placeNamed(directory, context);
  await refuseInside("lock rm", context.env);
  const was = await oneAtATime(context.env, async () => {
    const isHeld = readLocks(context.env, Date.now()).locks.some((each) => each.place === place);
    return removeLock(context.env, place) && isHeld;
  });
  const there = await sessionsIn(place, context);
  const named = someOf(
    there.map(({ session }) => occupantText(session)),
    mostNamed,
  );
  if (!was)
    throw new AgentctlError("not-found", `${place} is not locked${there.length === 0 ? "" : `; ${named}`}`, {
      hint: "agentctl lock list shows the locks and the sessions that are active",
    });
  if (args.has("--json")) {
    const sessions = there.map(({ session: { agent, id, processes }, status }) => ({
      ...{ agent, id, status, pid: processes[0]?.identity.pid ?? null },
    }));
    context.out(jsonLine({ place, locked: false, sessions }));
    return 0;
  }
  const but = there.length === 0 ? "" : there.some(({ session }) => isBusy(session)) ? ", but not free: " : "; ";
  context.out(`${homeRelative(oneLine(place), context)} is unlocked${but}${oneLine(named)}\n`);
  return 0;
}

const mostNamed = 5;

/** Those that have not stopped, or may not have. */
async function sessionsIn(place: string, context: Context): Promise<{ session: Session; status: string }[]> {
  const { rows } = await lookAtRows(context, noneStopped);
  return rows
    .map(({ session }) => ({ session, status: statusWord(session) }))
    .filter(({ session }) => session.status.state !== "stopped" && placeOf(session.cwd) === place);
}

/** Also of a directory that is gone: its lock can still be taken back. */
const placeNamed = (directory: string, { cwd }: Context): string => {
  const path = resolve(cwd, directory);
  return placeOf(path) ?? path;
};

async function list(args: Arguments, context: Context): Promise<number> {
  const all = await lookAtRows(context, noneStopped);
  const { locks, problems } = readLocks(context.env, all.at);
  const isOver = notLiveIn(all.rows.map(({ session }) => session));
  const derived = all.rows
    .filter(({ session }) => session.status.state !== "stopped" && isBusy(session))
    .filter(({ session }) => !hasLetGo(session, all.notes, isOver))
    .map((row) => ({ row, place: placeOf(row.session.cwd) }));
  context.err(problemLines([...all.problems, ...problems]));
  if (args.has("--json")) {
    const sessions = derived.map(({ row, place }) => ({
      kind: "derived",
      place,
      by: `${row.session.agent} ${row.session.id ?? row.ref}`,
      reason: statusWord(row.session),
      at: time(row.session.since),
      until: null,
    }));
    context.out(jsonLine([...locks.map(lockJson), ...sessions]));
    return 0;
  }
  const rows = [
    ...locks.map((each) => [
      { text: homeRelative(each.place, context) },
      { text: "manual", colour: "yellow" as const },
      { text: each.by },
      { text: `${timeLeft(each.until - all.at)} left${each.reason === null ? "" : `: ${each.reason}`}` },
    ]),
    ...derived.map(({ row, place }) => [
      { text: place === null ? "?" : homeRelative(place, context) },
      { text: "session" },
      { text: `${row.session.agent} ${row.ref}` },
      { text: statusWord(row.session) },
    ]),
  ];
  if (rows.length === 0) context.out("no place is taken\n");
  else
    context.out(
      table(
        [{ title: "PLACE", most: 60 }, { title: "KIND" }, { title: "BY", most: 40 }, { title: "WHY" }],
        rows,
        terminalOf(context),
      ),
    );
  return 0;
}

/** Rounded up: a lock of four hours has four left at its beginning. */
function timeLeft(ms: number): string {
  const unit = [86_400_000, 3_600_000, 60_000].find((each) => ms > each) ?? 1000;
  return shortDuration(Math.ceil(ms / unit) * unit);
}

const lockJson = ({ place, by, reason, at, until }: ManualLock) => ({
  kind: "manual",
  place,
  by,
  reason,
  at: time(at),
  until: time(until),
});
