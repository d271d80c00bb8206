// Bare `agentctl`, the first screen: one line for each session that a person may want to act on.
import { cut, oneLine, pad, width } from "../lib/width.ts";
import { type LatestWords, latestWords } from "../service/conversation.ts";
import { lookSince, type SessionRow, withPanes } from "../service/look.ts";
import { statusWord } from "../service/session-json.ts";
import type { Command, Context } from "./command.ts";
import {
  type Colour,
  cutMiddle,
  homeRelative,
  paint,
  problemLines,
  shortDuration,
  type Terminal,
  terminalOf,
} from "./render.ts";
import { what } from "./session-table.ts";

const dayMs = 86_400_000;

export const overview: Command = {
  usage: "agentctl",
  summary: "Show sessions that need you, have failed, have finished, wait for your next message or are working.",
  flags: [],
  examples: [["agentctl", "the first screen"]],
  async run(_args, context) {
    const all = await lookSince(context, Date.now() - dayMs);
    const terminal = terminalOf(context);
    const entries = all.rows
      .filter(({ session }) => session.status.state !== "stopped" || lastChange(session) > all.at - dayMs)
      .map((row, index) => ({
        row,
        word: statusWord(row.session),
        latest: index < mostRead ? latestWords(row) : noWords,
      }));
    const typedAt = Math.max(0, ...entries.map(lastTypedAt));
    const groups = sections.map(([title, colour, test]) => ({
      ...{ title, colour },
      entries: entries.filter((entry) => test(entry, typedAt)),
    }));
    const [asking] = groups;
    if (asking !== undefined) {
      const rows = await withPanes(
        asking.entries.map(({ row }) => row),
        context,
      );
      asking.entries = asking.entries.map((entry, index) => ({ ...entry, row: rows[index] ?? entry.row }));
    }
    const shown = groups.flatMap((group) => group.entries);
    const widths = widthsOf(shown.map(({ row }) => facts(row, all.at, context)));
    const blocks = groups.map(({ title, colour, entries: own }) => {
      const lines = own.map((entry) => line(entry, all.at, widths, context, terminal));
      return own.length === 0 ? "" : `${paint(`${title} (${own.length})`, colour, terminal)}\n${lines.join("")}`;
    });
    const count = all.rows.length + all.unopened.reduce((sum, { ids }) => sum + ids.length, 0);
    context.out(shown.length > 0 ? blocks.join("") : all.complete ? nothing(count) : unread);
    context.err(problemLines(all.problems));
    return 0;
  },
};

interface OverviewEntry {
  row: SessionRow;
  word: string;
  latest: LatestWords;
}

/** The latest prompt is read from the end of each record; for more sessions than this the first prompt is shown. */
const mostRead = 50;
const noWords: LatestWords = { prompt: null, answer: null, failure: null };

const sections: readonly [title: string, Colour, (entry: OverviewEntry, typedAt: number) => boolean][] = [
  ["Needs you", "yellow", ({ word }) => word === "waiting"],
  ["Failed or cut off in the last 24 hours", "red", isFailure],
  [
    "Finished since your last message",
    "green",
    ({ row, word }, typedAt) => word === "completed" && lastChange(row.session) > typedAt,
  ],
  ["Your turn", "blue", ({ word }) => word === "idle"],
  ["Working", "green", ({ word }) => word === "working"],
  ["Starting", "cyan", ({ word }) => word === "starting"],
  ["Not clear", "cyan", ({ word }) => word === "unknown" || word === "unclear"],
];

const lastChange = ({ endedAt, updatedAt }: SessionRow["session"]): number => endedAt ?? updatedAt ?? 0;

/** Exit statuses of SIGHUP, SIGINT and SIGTERM: a person or `agentctl stop` ended the session. */
const stoppedByPerson = [129, 130, 143];

function isFailure({ row, word }: OverviewEntry): boolean {
  return ["failed", "cut-off"].includes(word) && !stoppedByPerson.includes(row.launch?.exit?.status ?? 0);
}

/** When a person last sent this session a prompt, as far as it is recorded. A session that an agent launched has none. */
function lastTypedAt({ row: { session, launch }, latest }: OverviewEntry): number {
  if (launch !== null && launch.launchedBy !== null) return 0;
  const turn = session.record?.turn;
  const openedAt = turn?.state === "open" ? (turn.since ?? 0) : 0;
  return Math.max(
    openedAt,
    session.startedAt ?? 0,
    latest.prompt?.at ?? 0,
    launch === null || launch.byHand === true ? 0 : Date.parse(launch.at),
  );
}

/** Reference and name, agent, age, directory. */
function facts({ session, ref, launch }: SessionRow, at: number, context: Context): string[] {
  const name = launch?.name == null ? ref : `${ref} ${launch.name}`;
  const age = session.since === null ? "" : shortDuration(at - session.since);
  return [name, session.agent, age, session.cwd === null ? "" : homeRelative(session.cwd, context)].map(oneLine);
}

const widthsOf = (rows: readonly string[][]): number[] =>
  [0, 1, 2, 3].map((index) => Math.max(0, ...rows.map((row) => width(row[index] ?? ""))));

function line(
  entry: OverviewEntry,
  at: number,
  widths: readonly number[],
  context: Context,
  terminal: Terminal,
): string {
  const { row, word, latest } = entry;
  const whereMost = Math.max(16, Math.floor(terminal.columns / 4));
  const cells = facts(row, at, context).map((text, index) => {
    const most = Math.min(widths[index] ?? 0, index === 3 ? whereMost : 30);
    return pad(index === 3 ? cutMiddle(text, most) : cut(text, most), most);
  });
  const left = `  ${cells.join("  ")}  `;
  const pane = row.tmux === undefined ? "" : `${oneLine(row.tmux)}: `;
  const way = word === "waiting" ? `  [${pane}agentctl attach ${row.ref}]` : "";
  const room = terminal.columns - width(left);
  const about = oneLine(
    `${isFailure(entry) ? failureText(entry) : ""}${what(row.session, latest.prompt?.text ?? null)}`,
  );
  // On a narrow terminal the command gets its own line.
  if (way !== "" && room - width(way) < 16) return `${left}${cut(about, room)}\n    ${way.trim()}\n`;
  return `${`${left}${cut(about, room - width(way))}${way}`.trimEnd()}\n`;
}

/** The exit status, and the error that the agent recorded last: as a note, or (Claude Code) in place of its answer. */
function failureText({ row, word, latest }: OverviewEntry): string {
  const status = row.launch?.exit?.status ?? 0;
  const recorded = word === "failed" ? (latest.failure ?? latest.answer) : latest.failure;
  const parts = [status === 0 ? null : `exit status ${status}`, recorded];
  return parts.map((part) => (part === null ? "" : `${part} · `)).join("");
}

const nothing = (stopped: number): string =>
  stopped > 0
    ? "No session is running. `agentctl list -a` shows stopped sessions; `agentctl --help` lists all commands.\n"
    : "No agent session on this host yet. `agentctl demo` shows a tour; `agentctl --help` lists all commands.\n";

const unread =
  "No running session was found, but not everything could be read: see `agentctl doctor`. `agentctl list -a` shows stopped sessions.\n";
