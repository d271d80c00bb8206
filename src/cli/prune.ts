// agentctl prune: deletes the files of finished launches, and the cache.
import { oneLine } from "../lib/width.ts";
import { planLaunchPrune, pruneLaunches } from "../service/prune.ts";
import { parseDuration } from "./arguments.ts";
import type { Command } from "./command.ts";
import { confirming } from "./confirming.ts";
import { shortBytes } from "./render.ts";
import { callOf } from "./service-call.ts";

export const prune: Command = {
  usage: "agentctl prune [--older T] [--dry-run] [-y]",
  summary: "Delete the files of finished launches (names, labels, captured output) and the cache.",
  notes: [
    "No status depends on these files. Files of live sessions stay. Without prune, files are deleted automatically 30 days",
    "after the session ended, or earlier when they exceed 2 GB in all. For worktrees: agentctl worktree prune.",
  ].join("\n"),
  words: "none",
  flags: [
    { flag: "--older", value: "T", help: "only launches that ended more than T ago (2h, 7d)" },
    { flag: "--dry-run", help: "show what would be deleted" },
    { flag: "--yes", short: "-y", help: "do not ask for confirmation" },
  ],
  examples: [
    ["agentctl prune --dry-run", "what would be deleted"],
    ["agentctl prune --older 7d -y", "in a script"],
  ],
  async run(args, context) {
    const call = callOf(context);
    const older = args.one("--older");
    const request = { olderMs: older === null ? 0 : parseDuration(older, "prune"), dryRun: args.has("--dry-run") };
    const plan = await planLaunchPrune(request, call);
    const { over, inUse, cacheBytes } = plan;
    const lines = [
      ...(inUse === 0 ? [] : [inUse === 1 ? "1 launch is in use and stays" : `${inUse} launches are in use and stay`]),
      ...over.map(({ id, note, bytes }) => {
        const name = note?.name == null ? "" : ` (${oneLine(note.name)})`;
        return `launch ${id}${name} can be deleted: ${shortBytes(bytes)}`;
      }),
      ...(cacheBytes === 0 ? [] : [`the cache can be deleted: ${shortBytes(cacheBytes)}`]),
    ];
    // A dry run prints these lines as its answer. Otherwise they belong to the confirmation question.
    for (const line of lines) request.dryRun ? context.out(`${line}\n`) : context.err(`agentctl: ${line}\n`);
    if (over.length === 0 && cacheBytes === 0) context.out("nothing to delete\n");
    else if (!request.dryRun) {
      const { olderMs } = request;
      const deleted = await confirming<number | null>(
        (confirmed) => pruneLaunches({ plan, olderMs, confirmed }, call),
        args.has("--yes"),
        context,
        () => null,
      );
      if (deleted !== null) context.out(`deleted ${shortBytes(deleted)}\n`);
    }
    return 0;
  },
};
