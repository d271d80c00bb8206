// The table of sessions that `list` and the demo print.

import type { SessionRow } from "../service/look.ts";
import { countedJson, statusWord } from "../service/session-json.ts";
import { conflictText, shownReason } from "../words/reasons.ts";
import type { Context } from "./command.ts";
import {
  type Colour,
  type Column,
  costText,
  homeRelative,
  shortCount,
  shortDuration,
  statusColour,
  type Terminal,
  table,
} from "./render.ts";

interface SessionColumn extends Omit<Column, "title"> {
  text(row: SessionRow, at: number, context: Context): string;
  colour?: (row: SessionRow) => Colour;
  /** Shown without --columns; absent: always, false: never. */
  isUsual?: false | ((rows: readonly SessionRow[]) => boolean);
}

const isCounted = (rows: readonly SessionRow[]): boolean => rows.some((row) => row.counted !== undefined);

/** A column with the same value in every row is left out. */
const differs = (value: (row: SessionRow) => string) => (rows: readonly SessionRow[]) =>
  new Set(rows.map(value)).size > 1;
const modelOf = ({ session }: SessionRow): string => session.record?.facts.model ?? "";
const groupOf = ({ launch }: SessionRow): string => launch?.group ?? "";

const sessionColumns: Readonly<Record<string, SessionColumn>> = {
  ref: {
    most: 40,
    text: ({ ref, launch }) => (launch?.name == null ? ref : `${ref} ${launch.name}`),
    colour: () => "bold",
  },
  id: { text: ({ session }) => session.id ?? "", isUsual: false },
  agent: { most: 14, dropped: 1, text: ({ session }) => session.agent },
  model: { most: 20, dropped: 6, text: modelOf, isUsual: differs(modelOf) },
  group: { most: 16, dropped: 5, text: groupOf, isUsual: differs(groupOf) },
  status: { text: ({ session }) => statusWord(session), colour: ({ session }) => statusColour(statusWord(session)) },
  for: {
    dropped: 2,
    text: ({ session }, at) => (session.since === null ? "" : shortDuration(at - session.since)),
    colour: () => "dim",
  },
  tokens: { dropped: 3, text: tokensText, isUsual: isCounted },
  cost: {
    dropped: 4,
    text: ({ counted }) => (counted === undefined ? "" : (costText(counted) ?? "")),
    isUsual: isCounted,
  },
  where: {
    dropped: 0,
    shortened: "middle",
    text: ({ session }, _at, context) => (session.cwd === null ? "" : homeRelative(session.cwd, context)),
  },
  what: { text: ({ session }) => what(session) },
};

export const columnNames: readonly string[] = Object.keys(sessionColumns);

/** `names`: the columns to show, in this order; absent: the usual ones. */
export function sessionTable(
  rows: readonly SessionRow[],
  at: number,
  context: Context,
  terminal: Terminal,
  names: readonly string[] | null = null,
): string {
  const shown = (names ?? columnNames).flatMap((name) => {
    const column = sessionColumns[name];
    if (column === undefined) return [];
    const isShown =
      names !== null || column.isUsual === undefined || (column.isUsual !== false && column.isUsual(rows));
    return isShown ? [[name, column] as const] : [];
  });
  const whereMost = Math.max(16, Math.floor(terminal.columns / 4));
  const columns = shown.map(([name, column]) => ({
    title: name.toUpperCase(),
    ...(name === "where" ? { most: whereMost } : column.most === undefined ? {} : { most: column.most }),
    ...(names !== null || column.dropped === undefined ? {} : { dropped: column.dropped }),
    ...(column.shortened === undefined ? {} : { shortened: column.shortened }),
  }));
  const cells = rows.map((row) =>
    shown.map(([, { text, colour }]) => ({
      text: text(row, at, context),
      ...(colour === undefined ? {} : { colour: colour(row) }),
    })),
  );
  return table(columns, cells, terminal);
}

function tokensText({ counted }: SessionRow): string {
  const tokens = counted === undefined ? null : countedJson(counted).tokens;
  return tokens === null ? "" : shortCount(tokens.total);
}

/** The question if there is one; else the reason for the status and what the session is about. */
export function what(session: SessionRow["session"], latestPrompt: string | null = null): string {
  const { waiting, reason, record, conflicts } = session;
  const about = latestPrompt ?? record?.facts.title ?? record?.facts.prompt ?? "";
  const asked = waiting === null ? null : `${waiting.kind}: ${waiting.text ?? about}`;
  const shown = asked ?? [shownReason(reason) ?? "", about].filter((text) => text !== "").join(" · ");
  return [shown, ...conflicts.map(conflictText)].filter((text) => text !== "").join(" · ");
}
