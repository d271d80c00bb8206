// agentctl lock: lists directories in use, and locks or unlocks one.
import { jsonLine, oneLine, someOf } from "../lib/width.ts";
import { addLock, listLocks, lockJson, locksJson, unlock, unlockedJson } from "../service/lock.ts";
import { statusWord, time } from "../service/session-json.ts";
import { occupantText } from "../words/occupants.ts";
import { type Arguments, parseDuration, usage } from "./arguments.ts";
import type { Command, Context } from "./command.ts";
import { homeRelative, shortDuration, table, terminalOf } from "./render.ts";
import { callOf } from "./service-call.ts";

const defaultTtl = "4h";

export const lock: Command = {
  usage: "agentctl lock list | add [DIR] [--by NAME] [--reason TEXT] [--ttl T] | rm [DIR]",
  summary: "List directories in use; reserve one for yourself.",
  notes: [
    "A launch in a locked directory is refused until the lock ends. Directories with an active session need no lock: launches",
    "there are refused anyway, and nothing is stored for that. In a git worktree the lock applies to its root.",
  ].join("\n"),
  flags: [
    { flag: "--by", value: "NAME", help: "owner of the lock (default: you)" },
    { flag: "--reason", value: "TEXT", help: "reason, shown when a launch is refused" },
    { flag: "--ttl", value: "T", help: `duration of the lock (90s, 10m, 2h, 7d; default: ${defaultTtl})` },
    { flag: "--json", help: "JSON output" },
  ],
  examples: [
    ["agentctl lock add --reason 'release in progress'", "this directory, for four hours"],
    ["agentctl lock add ../api --ttl 30m --by anna", "another directory"],
    ["agentctl lock rm", "remove the lock"],
    ["agentctl lock list", "locks, and directories with active sessions"],
  ],
  async run(args, context) {
    const [verb = "list", directory, more] = args.words;
    if (more !== undefined) throw usage(`lock takes one directory; unexpected argument: ${more}`, "lock");
    if (verb === "list" && directory === undefined) return await list(args, context);
    if (verb === "add") return await add(directory ?? ".", args, context);
    if (verb === "rm") return await remove(directory ?? ".", args, context);
    throw usage(`lock takes list, add or rm: ${args.words.join(" ")}`, "lock");
  },
};

async function add(directory: string, args: Arguments, context: Context): Promise<number> {
  const ttlMs = parseDuration(args.one("--ttl") ?? defaultTtl, "lock");
  const request = { directory, by: args.one("--by"), reason: args.one("--reason"), ttlMs };
  const added = await addLock(request, callOf(context));
  const place = homeRelative(oneLine(added.place), context);
  const text = `${place} is locked for ${shortDuration(ttlMs)}, until ${time(added.until)}\n`;
  context.out(args.has("--json") ? jsonLine(lockJson(added)) : text);
  return 0;
}

async function remove(directory: string, args: Arguments, context: Context): Promise<number> {
  const answer = await unlock(directory, callOf(context));
  const { place, occupants, isBusy } = answer;
  const but = occupants.length === 0 ? "" : isBusy ? ", but not free: " : "; ";
  const named = oneLine(someOf(occupants.map(occupantText), mostNamed));
  const text = `${homeRelative(oneLine(place), context)} is unlocked${but}${named}\n`;
  context.out(args.has("--json") ? jsonLine(unlockedJson(answer)) : text);
  return 0;
}

const mostNamed = 5;

async function list(args: Arguments, context: Context): Promise<number> {
  const inUse = await listLocks(callOf(context));
  const rows = [
    ...inUse.locks.map(({ place, by, until, reason }) => [
      { text: homeRelative(place, context) },
      { text: "manual", colour: "yellow" as const },
      { text: by },
      { text: `${timeLeft(until - inUse.at)} left${reason === null ? "" : `: ${reason}`}` },
    ]),
    ...inUse.active.map(({ row: { session, ref }, place }) => [
      { text: place === null ? "?" : homeRelative(place, context) },
      { text: "session" },
      { text: `${session.agent} ${ref}` },
      { text: statusWord(session) },
    ]),
  ];
  const columns = [{ title: "DIRECTORY", most: 60 }, { title: "KIND" }, { title: "BY", most: 40 }, { title: "WHY" }];
  const text = rows.length === 0 ? "no directory is in use\n" : table(columns, rows, terminalOf(context));
  context.out(args.has("--json") ? jsonLine(locksJson(inUse)) : text);
  return 0;
}

/** Rounded up: a new lock of four hours has four hours left. */
function timeLeft(ms: number): string {
  const unit = [86_400_000, 3_600_000, 60_000].find((each) => ms > each) ?? 1000;
  return shortDuration(Math.ceil(ms / unit) * unit);
}
