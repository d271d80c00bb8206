// agentctl prune: makes room. What a live session uses stays; worktrees with work in them stay.
import { rmSync } from "node:fs";
import { refuseInside } from "../control/guard.ts";
import { forgetKept, forgetTemporaries, keptLaunches, unreadKept } from "../control/keep.ts";
import { oneAtATime } from "../control/places.ts";
import { lookAround } from "../control/surroundings.ts";
import { AgentctlError } from "../core/problem.ts";
import { oneLine } from "../lib/width.ts";
import { cacheFolder } from "../observe/homes.ts";
import { distrustOf } from "../observe/own-files.ts";
import { bytesBelow } from "../observe/sizes.ts";
import { type Arguments, parseDuration } from "./arguments.ts";
import type { Command, Context } from "./command.ts";
import { canAsk, confirm } from "./question.ts";
import { shortBytes } from "./render.ts";

export const prune: Command = {
  usage: "agentctl prune [--older T] [--dry-run] [-y]",
  summary: "Removes what agentctl keeps of launches that are over (names, labels, captured output), and its cache.",
  notes: [
    "No status depends on any of it: sessions stay as they are, without their names and labels. What a live session uses",
    "stays. Without it, too, everything goes by itself thirty days after the end. Worktrees: agentctl worktree prune.",
  ].join("\n"),
  words: "none",
  flags: [
    { flag: "--older", value: "T", help: "only what ended longer ago (2h, 7d)" },
    { flag: "--dry-run", help: "only say what would go" },
    { flag: "--yes", short: "-y", help: "without asking" },
  ],
  examples: [
    ["agentctl prune --dry-run", "what would go"],
    ["agentctl prune --older 7d -y", "in a script"],
  ],
  async run(args, context) {
    if (!args.has("--dry-run")) await refuseInside("prune", context.env);
    const before = args.one("--older");
    const olderMs = before === null ? 0 : parseDuration(before, "prune");
    // A note may say that what lies in the other folder is in use.
    const [unread] = unreadKept(context.env);
    if (unread !== undefined)
      throw new AgentctlError("cannot-tell", `cannot tell what can go: ${unread.source}: ${unread.message}`, {
        hint: "agentctl doctor says what to do",
      });
    const { over, inUse, cache } = await found(olderMs, context);
    // Of a dry run this is the answer; else it is what a person is asked about.
    const say = (text: string) =>
      args.has("--dry-run") ? context.out(`${text}\n`) : context.err(`agentctl: ${text}\n`);
    if (inUse > 0) say(inUse === 1 ? "1 launch is in use and stays" : `${inUse} launches are in use and stay`);
    if (over.length === 0 && cache === 0) {
      context.out("nothing can go\n");
      return 0;
    }
    for (const { id, note, bytes } of over)
      say(`launch ${id}${note?.name == null ? "" : ` (${oneLine(note.name)})`} can go: ${shortBytes(bytes)}`);
    if (cache > 0) say(`the cache can go: ${shortBytes(cache)}`);
    if (args.has("--dry-run") || !isWanted(over.length, args, context)) return 0;
    // Looked at again: somebody may have begun to use one of them while we asked.
    const bytes = await oneAtATime(context.env, async () => {
      const now = await found(olderMs, context);
      const going = now.over.filter(({ id }) => over.some((each) => each.id === id));
      for (const { id } of going) forgetKept(context.env, id);
      forgetTemporaries(context.env, Date.now());
      if (distrustOf(cacheFolder(context.env)) === null)
        rmSync(cacheFolder(context.env), { recursive: true, force: true });
      return going.reduce((sum, each) => sum + each.bytes, now.cache);
    });
    context.out(`${shortBytes(bytes)} are free again\n`);
    return 0;
  },
};

async function found(olderMs: number, { env }: Context) {
  const around = await lookAround(env);
  const kept = keptLaunches(env, around);
  const over = kept.filter(({ inUse, endedAt }) => !inUse && endedAt <= around.list.at - olderMs);
  return {
    over,
    inUse: kept.filter(({ inUse }) => inUse).length,
    cache: distrustOf(cacheFolder(env)) === null ? bytesBelow(cacheFolder(env)) : 0,
  };
}

function isWanted(count: number, args: Arguments, context: Context): boolean {
  if (args.has("--yes")) return true;
  if (!canAsk()) throw new AgentctlError("refused", "nothing was removed: confirmation required", { hint: "pass -y" });
  return confirm(`remove ${count === 0 ? "the cache" : `what is kept of ${count} launches`}?`, context);
}
