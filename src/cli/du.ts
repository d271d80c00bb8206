// agentctl du: what agentctl itself takes on disk, and how much of it is in use.
import { join } from "node:path";
import { type Kept, keptLaunches, unreadKept } from "../control/keep.ts";
import { agentctlHome } from "../control/notes.ts";
import { lookAround } from "../control/surroundings.ts";
import { exitCodes } from "../core/problem.ts";
import { jsonLine } from "../lib/width.ts";
import { cacheFolder } from "../observe/homes.ts";
import { bytesBelow } from "../observe/sizes.ts";
import type { Command, Context } from "./command.ts";
import { homeRelative, problemLines, shortBytes, table, terminalOf } from "./render.ts";

export const du: Command = {
  usage: "agentctl du [--json]",
  summary: "Shows what agentctl keeps on disk: notes and logs of launches, worktrees that it made, its cache.",
  notes: [
    "The agents' own records are theirs and are not counted. agentctl prune makes room.",
    "Exit code 8: something could not be read; what nobody can tell is ? (JSON: null).",
  ].join("\n"),
  words: "none",
  flags: [{ flag: "--json", help: "print JSON" }],
  examples: [["agentctl du", "what it takes"]],
  async run(args, context) {
    const unread = unreadKept(context.env);
    context.err(problemLines(unread));
    const code = unread.length === 0 ? 0 : exitCodes["cannot-tell"];
    const seen = await measured(context);
    const found = unread.length === 0 ? seen : seen.map((each) => (each.what === "cache" ? each : notKnown(each)));
    if (args.has("--json")) {
      context.out(jsonLine(found));
      return code;
    }
    const rows = found.map(({ what, where, count, inUse, bytes }) => [
      { text: what },
      { text: bytes === null ? "?" : shortBytes(bytes) },
      { text: `${count ?? "?"}${inUse !== null && inUse > 0 ? ` (${inUse} in use)` : ""}` },
      { text: homeRelative(where, context) },
    ]);
    context.out(
      table([{ title: "WHAT" }, { title: "SIZE" }, { title: "COUNT" }, { title: "WHERE" }], rows, terminalOf(context)),
    );
    return code;
  },
};

/** Each folder tells a part about every launch, and the notes which worktrees there are. */
const notKnown = ({ what, where }: Measured) => ({
  what,
  where: what === "worktrees" ? "?" : where,
  ...{ count: null, inUse: null, bytes: null },
});

interface Measured {
  what: string;
  where: string;
  count: number;
  inUse: number;
  bytes: number;
}

async function measured({ env }: Context): Promise<Measured[]> {
  const kept = keptLaunches(env, await lookAround(env));
  const home = agentctlHome(env);
  const used = kept.filter(({ inUse }) => inUse).length;
  const launches = { count: kept.length, inUse: used };
  const trees = worktreesIn(kept);
  const cache = cacheFolder(env);
  return [
    { what: "notes", where: join(home, "launches"), ...launches, bytes: bytesBelow(join(home, "launches")) },
    { what: "logs", where: join(home, "logs"), ...launches, bytes: bytesBelow(join(home, "logs")) },
    {
      what: "worktrees",
      where: trees[0] === undefined ? "none" : trees.length === 1 ? trees[0].path : `${trees[0].path}, …`,
      count: trees.length,
      inUse: trees.filter(({ inUse }) => inUse).length,
      bytes: trees.reduce((sum, { path }) => sum + bytesBelow(path), 0),
    },
    { what: "cache", where: cache, count: bytesBelow(cache) > 0 ? 1 : 0, inUse: 0, bytes: bytesBelow(cache) },
  ];
}

/** By the notes of the launches that they were made for; those that are gone take nothing. */
function worktreesIn(kept: readonly Kept[]): { path: string; inUse: boolean }[] {
  const found = new Map<string, boolean>();
  for (const { note, inUse } of kept)
    if (note?.worktree != null && bytesBelow(note.worktree) > 0)
      found.set(note.worktree, (found.get(note.worktree) ?? false) || inUse);
  return [...found].map(([path, inUse]) => ({ path, inUse })).sort((a, b) => (a.path < b.path ? -1 : 1));
}
