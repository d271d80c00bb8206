// agentctl du: the size of agentctl's own files.
import { exitCodes } from "../core/problem.ts";
import { jsonLine } from "../lib/width.ts";
import { measureDiskUsage } from "../service/disk-usage.ts";
import type { Command } from "./command.ts";
import { homeRelative, problemLines, shortBytes, table, terminalOf } from "./render.ts";

export const du: Command = {
  usage: "agentctl du [--json]",
  summary: "Show what agentctl keeps on disk: notes and logs of launches, worktrees that it made, its cache.",
  notes: [
    "Does not count the agents' own records. agentctl prune deletes files of finished launches.",
    "Exit code 8: something could not be read; unknown values show as ? (JSON: null).",
  ].join("\n"),
  words: "none",
  flags: [{ flag: "--json", help: "JSON output" }],
  examples: [["agentctl du", "sizes and counts"]],
  async run(args, context) {
    const { usage, unread } = await measureDiskUsage(context.env);
    context.err(problemLines(unread));
    const rows = usage.map(({ what, where, count, inUse, bytes }) => [
      { text: what },
      { text: bytes === null ? "?" : shortBytes(bytes) },
      { text: `${count ?? "?"}${inUse !== null && inUse > 0 ? ` (${inUse} in use)` : ""}` },
      { text: homeRelative(where, context) },
    ]);
    const columns = [{ title: "WHAT" }, { title: "SIZE" }, { title: "COUNT" }, { title: "WHERE" }];
    context.out(args.has("--json") ? jsonLine(usage) : table(columns, rows, terminalOf(context)));
    return unread.length === 0 ? 0 : exitCodes["cannot-tell"];
  },
};
