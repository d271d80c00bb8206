// The table of sessions that `list` and the demo print.
import type { Context } from "./command.ts";
import {
  type Cell,
  costText,
  homeRelative,
  shortCount,
  shortDuration,
  statusColour,
  type Terminal,
  table,
} from "./render.ts";
import { countedJson, statusWord } from "./session-json.ts";
import type { Counted, Row } from "./sessions.ts";

/** With tokens and cost where rows were counted. */
export function sessionTable(rows: readonly Row[], at: number, context: Context, terminal: Terminal): string {
  const counted = rows.some((row) => row.counted !== undefined);
  const columns = [
    { title: "REF", most: 40 },
    { title: "AGENT", most: 14, dropped: 1 },
    { title: "STATUS" },
    { title: "FOR", dropped: 2 },
    ...(counted
      ? [
          { title: "TOKENS", dropped: 3 },
          { title: "COST", dropped: 4 },
        ]
      : []),
    { title: "WHERE", most: Math.max(16, Math.floor(terminal.columns / 3)), dropped: 5 },
    { title: "WHAT" },
  ];
  return table(
    columns,
    rows.map((row) => cells(row, at, context)),
    terminal,
  );
}

function totals(counted: Counted): Cell[] {
  const { tokens } = countedJson(counted);
  return [{ text: tokens === null ? "" : shortCount(tokens.total) }, { text: costText(counted) ?? "" }];
}

function cells({ session, ref, launch, counted }: Row, at: number, context: Context): Cell[] {
  const word = statusWord(session);
  return [
    { text: launch?.name == null ? ref : `${ref} ${launch.name}`, colour: "bold" },
    { text: session.agent },
    { text: word, colour: statusColour(word) },
    { text: session.since === null ? "" : shortDuration(at - session.since), colour: "dim" },
    ...(counted === undefined ? [] : totals(counted)),
    { text: session.cwd === null ? "" : homeRelative(session.cwd, context) },
    { text: what(session) },
  ];
}

/** What of a session `--grep` looks through: its own words, not ours. */
export const wordsOf = ({ record, waiting, cwd }: Row["session"]): string =>
  [record?.facts.title, record?.facts.prompt, waiting?.text, cwd].filter((text) => text != null).join("\n");

/** What a person wants to know first: the question, else why it is so, else what it is about. */
export function what(session: Row["session"]): string {
  const { waiting, reason, record, conflicts } = session;
  const about = record?.facts.title ?? record?.facts.prompt ?? "";
  const asked = waiting === null ? null : `${waiting.kind}: ${waiting.text ?? about}`;
  const shown = asked ?? [reason, about].filter((text) => text !== null && text !== "").join(" · ");
  return [shown, ...conflicts].filter((text) => text !== "").join(" · ");
}
