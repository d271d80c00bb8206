// agentctl statusline: one short line for a prompt, a tmux status bar or a window title.
import { lookAtLive } from "../service/look.ts";
import { statusWord } from "../service/session-json.ts";
import type { Command } from "./command.ts";

const words: readonly [status: string, one: string, several: string][] = [
  ["waiting", "needs you", "need you"],
  ["idle", "your turn", "your turn"],
  ["working", "working", "working"],
  ["starting", "starting", "starting"],
  ["unclear", "unclear", "unclear"],
  ["unknown", "unknown", "unknown"],
];

export const statusline: Command = {
  usage: "agentctl statusline",
  summary:
    "Print one short line with the number of sessions by status. Prints nothing when no session is running or unknown.",
  words: "none",
  flags: [],
  notes: "In ~/.tmux.conf: set -g status-right '#(agentctl statusline)'",
  examples: [["agentctl statusline", "2 need you · 1 your turn · 3 working"]],
  async run(_args, context) {
    const { rows, complete } = await lookAtLive(context);
    const shown = rows.map(({ session }) => statusWord(session));
    const parts = words.flatMap(([status, one, several]) => {
      const count = shown.filter((word) => word === status).length;
      return count === 0 ? [] : [`${count} ${count === 1 ? one : several}`];
    });
    // "?": something could not be read, so there may be more sessions.
    const line = [...parts, ...(complete ? [] : ["?"])].join(" · ");
    if (line !== "") context.out(`${line}\n`);
    return 0;
  },
};
