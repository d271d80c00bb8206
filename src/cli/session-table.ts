// The table of sessions that `list` and the demo print.
import type { Context } from "./command.ts";
import { type Cell, homeRelative, shortDuration, statusColour, type Terminal, table } from "./render.ts";
import { statusWord } from "./session-json.ts";
import type { Row } from "./sessions.ts";

export function sessionTable(rows: readonly Row[], at: number, context: Context, terminal: Terminal): string {
  const columns = [
    { title: "REF", most: 40 },
    { title: "AGENT", most: 14 },
    { title: "STATUS" },
    { title: "FOR" },
    { title: "WHERE", most: Math.max(16, Math.floor(terminal.columns / 3)) },
    { title: "WHAT" },
  ];
  return table(
    columns,
    rows.map((row) => cells(row, at, context)),
    terminal,
  );
}

function cells({ session, ref, launch }: Row, at: number, context: Context): Cell[] {
  const word = statusWord(session);
  return [
    { text: launch?.name == null ? ref : `${ref} ${launch.name}`, colour: "bold" },
    { text: session.agent },
    { text: word, colour: statusColour(word) },
    { text: session.since === null ? "" : shortDuration(at - session.since), colour: "dim" },
    { text: session.cwd === null ? "" : homeRelative(session.cwd, context) },
    { text: what(session) },
  ];
}

/** What a person wants to know first: the question, else why it is so, else what it is about. */
export function what(session: Row["session"]): string {
  const { waiting, reason, record, conflicts } = session;
  const about = record?.facts.title ?? record?.facts.prompt ?? "";
  const asked = waiting === null ? null : `${waiting.kind}: ${waiting.text ?? about}`;
  const shown = asked ?? [reason, about].filter((text) => text !== null && text !== "").join(" · ");
  return [shown, ...conflicts].filter((text) => text !== "").join(" · ");
}
