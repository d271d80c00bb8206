// agentctl statusline: one short line for a prompt, a tmux status bar or a window title.
import { noneStopped } from "../observe/wanted.ts";
import type { Command } from "./command.ts";
import { statusWord } from "./session-json.ts";
import { lookAtRows } from "./sessions.ts";

const words: readonly [status: string, one: string, several: string][] = [
  ["waiting", "needs you", "need you"],
  ["idle", "your turn", "your turn"],
  ["working", "working", "working"],
  ["unclear", "unclear", "unclear"],
  ["unknown", "unknown", "unknown"],
];

export const statusline: Command = {
  usage: "agentctl statusline",
  summary: "Prints one short line: how many sessions need you, have ended their turn, work. Nothing where nobody runs.",
  words: "none",
  flags: [],
  notes: "In ~/.tmux.conf: set -g status-right '#(agentctl statusline)'",
  examples: [["agentctl statusline", "2 need you · 1 your turn · 3 working"]],
  async run(_args, context) {
    const { rows, complete } = await lookAtRows(context, noneStopped);
    const shown = rows.map(({ session }) => statusWord(session));
    const parts = words.flatMap(([status, one, several]) => {
      const count = shown.filter((word) => word === status).length;
      return count === 0 ? [] : [`${count} ${count === 1 ? one : several}`];
    });
    // There may be more than could be seen.
    const line = [...parts, ...(complete ? [] : ["?"])].join(" · ");
    if (line !== "") context.out(`${line}\n`);
    return 0;
  },
};
