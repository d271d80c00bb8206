// Commands that take several sessions: references, a group, labels.
import { AgentctlError } from "../core/problem.ts";
import { oneLine } from "../lib/width.ts";
import { noneStopped, type Wanted } from "../observe/wanted.ts";
import { type Arguments, type FlagSpec, usage } from "./arguments.ts";
import type { Context } from "./command.ts";
import { lookFor, resolve } from "./reference.ts";
import { launchedSessions, type Row, type Rows } from "./sessions.ts";

export const severalFlags: readonly FlagSpec[] = [
  { flag: "--group", value: "G", help: "all sessions of this group" },
  { flag: "--label", value: "k=v", repeated: true, help: "all sessions with this label" },
];

/** A reference as a person gave it, and the session that it means now. */
export interface Chosen {
  reference: string;
  row: Row;
  /** What answers call it: as the person did; one of a group by its name, if no other one there has the same. */
  called: string;
}

/** Whoever asks for one session by its reference gets one JSON value; a group is a list, however many are in it. */
export const isOne = (args: Arguments): boolean =>
  args.words.length === 1 && !args.has("--group") && !args.has("--label");

/** A look at what may be meant: by the references; with a group or a label, whatever was launched. */
export async function lookForAll<T extends Rows>(
  args: Arguments,
  context: Context,
  look: (context: Context, wanted: Wanted) => Promise<T>,
): Promise<{ all: T; wanted: Wanted }> {
  const isGrouped = args.has("--group") || args.has("--label");
  return await lookFor(args.words, context, look, isGrouped ? launchedSessions(context) : noneStopped);
}

export function chooseRows(args: Arguments, all: Rows, command: string, context: Context): Chosen[] {
  const group = args.one("--group");
  const labels = args.all("--label").map((label) => {
    const equals = label.indexOf("=");
    if (equals < 1) throw usage(`not a label: ${label} (like key=value)`, command);
    return [label.slice(0, equals), label.slice(equals + 1)] as const;
  });
  const isGrouped = group !== null || labels.length > 0;
  if (args.words.length === 0 && !isGrouped) throw usage(`${command} needs a session`, command);
  const named = args.words.map((reference) => ({
    ...{ reference, called: reference },
    row: resolve(reference, all, context),
  }));
  const grouped = isGrouped ? all.rows.filter((row) => isSelected(row, group, labels)) : [];
  if (isGrouped && grouped.length === 0) {
    const what = [group === null ? "" : `group ${group}`, ...labels.map(([key, value]) => `${key}=${value}`)].filter(
      Boolean,
    );
    throw new AgentctlError("not-found", `no session has ${what.join(", ")}`, { hint: "agentctl list -a --group G" });
  }
  const byName = Map.groupBy(grouped, ({ launch }) => launch?.name ?? null);
  const members = grouped.map((row) => {
    const reference = row.session.id ?? row.ref;
    const name = row.launch?.name ?? null;
    return { reference, row, called: name !== null && byName.get(name)?.length === 1 ? oneLine(name) : reference };
  });
  const chosen = [...named, ...members];
  return [...new Map(chosen.map((each) => [each.row, each] as const)).values()];
}

const isSelected = ({ launch }: Row, group: string | null, labels: readonly (readonly [string, string])[]): boolean =>
  launch !== null &&
  (group === null || launch.group === group) &&
  labels.every(([key, value]) => launch.labels[key] === value);
