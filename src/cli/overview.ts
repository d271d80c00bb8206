// Bare `agentctl`: what a person with many agents wants to know first, one line each.

import { cut, oneLine } from "../lib/width.ts";
import { writtenSince } from "../observe/wanted.ts";
import type { Command, Context } from "./command.ts";
import { type Colour, homeRelative, paint, problemLines, shortDuration, type Terminal, terminalOf } from "./render.ts";
import { statusWord } from "./session-json.ts";
import { what } from "./session-table.ts";
import { lookAtRows, type Row } from "./sessions.ts";

const dayMs = 86_400_000;

export const overview: Command = {
  usage: "agentctl",
  summary: "Shows who needs you, what went wrong today, whose turn is yours, and who is working.",
  flags: [],
  examples: [["agentctl", "a glance"]],
  async run(_args, context) {
    const all = await lookAtRows(context, writtenSince(Date.now() - dayMs));
    const terminal = terminalOf(context);
    const today = ({ session }: Row) => (session.endedAt ?? session.updatedAt ?? 0) > all.at - dayMs;
    const sections: [string, Colour, (row: Row, word: string) => boolean][] = [
      ["Needs you", "yellow", (_row, word) => word === "waiting"],
      ["Failed or cut off today", "red", (row, word) => ["failed", "cut-off"].includes(word) && today(row)],
      ["Your turn", "blue", (_row, word) => word === "idle"],
      ["Working", "green", (_row, word) => word === "working"],
      ["Not clear", "cyan", (_row, word) => word === "unclear" || word === "unknown"],
    ];
    const blocks = sections.map(([title, colour, test]) => {
      const rows = all.rows.filter((row) => test(row, statusWord(row.session)));
      if (rows.length === 0) return "";
      const head = paint(`${title} (${rows.length})`, colour, terminal);
      return `${head}\n${rows.map((row) => line(row, all.at, context, terminal)).join("")}`;
    });
    const text = blocks.join("");
    const count = all.rows.length + all.unopened.reduce((sum, { ids }) => sum + ids.length, 0);
    context.out(text !== "" ? text : all.complete ? nothing(count) : unread);
    context.err(problemLines(all.problems));
    return 0;
  },
};

function line({ session, ref, launch }: Row, at: number, context: Context, terminal: Terminal): string {
  const age = session.since === null ? "" : ` ${shortDuration(at - session.since)}`;
  const where = session.cwd === null ? "" : ` ${homeRelative(session.cwd, context)}`;
  const name = launch?.name == null ? ref : `${ref} ${launch.name}`;
  const parts = [name, `${session.agent}${age}${where}`, what(session)].map(oneLine);
  return `  ${cut(parts.join("  "), terminal.columns - 2)}\n`;
}

const nothing = (stopped: number): string =>
  stopped > 0
    ? "No agent is running here. `agentctl list -a` shows what stopped, `agentctl --help` what else there is.\n"
    : "No agent session on this machine yet. `agentctl demo` shows what agentctl does, `agentctl --help` what else there is.\n";

const unread =
  "No agent that could be seen is running here. `agentctl doctor` says what could not be read, `agentctl list -a` shows what stopped.\n";
