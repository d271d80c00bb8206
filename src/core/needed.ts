// Which records must be read to tell what runs or may run, by their names alone. What nobody has or may have is not running,
// whatever its record holds: it is read only for those who ask about it.
import type { Evidence, NativeRecord, Store } from "./evidence.ts";
import { type FoundOwner, namedHome, sessionKey } from "./found.ts";
import { matchProcesses } from "./match.ts";
import { read } from "./problem.ts";
import { examinedIn, type ProcessRow, type ProcessTable } from "./process.ts";
import { type AgentRules, roleOf } from "./rules.ts";
import { namelessOf } from "./subjects.ts";

/** A record of which only the name is known, and where it works, if that is told with it. Nothing is ruled out by it. */
export const outline = (id: string, source: string, cwd: string | null): Store["rows"][number] => ({
  id,
  reading: read({ ...nothing, id, source, cwd }),
  writtenAt: null,
  uid: null,
});

const nothing: NativeRecord = {
  id: "",
  source: "",
  cwd: null,
  createdAt: null,
  lastMessageAt: null,
  writtenAt: null,
  turn: { state: "unclear", why: "not read" },
  waiting: null,
  pending: null,
  background: null,
  parent: null,
  continuedBy: null,
  subagentOf: null,
  facts: {
    model: null,
    title: null,
    prompt: null,
    branch: null,
    agentVersion: null,
    permission: null,
    denied: null,
    tokens: null,
    costUsd: null,
  },
  skippedLines: 0,
  torn: false,
  unknownLines: 0,
};

/** An outline that stands for every record of its store: who may have any may have this one. */
export const anyRecord = "\0any";

export interface Needed {
  /** "owned": a live process or host has it; "doubted": one may have it; null: neither. */
  of(store: Store, id: string): "owned" | "doubted" | null;
  /** Sessions of this store that are needed, recorded or not; null: any may be. */
  idsOf(store: Store): ReadonlySet<string> | null;
  /** Where any may be: the directories that those work in, whose records do not tell another one; null: anywhere. */
  directoriesOf(store: Store): ReadonlySet<string> | null;
  /** Sessions that are needed in any store or none; where any may be, there are more. */
  ids: ReadonlySet<string>;
  /** Processes that say which session they have; null: all of them do. */
  named: ReadonlySet<ProcessRow> | null;
}

/** The rows of the stores are outlines; what they do not tell makes a record needed, never dispensable. */
export function neededRecords(evidence: Evidence, rules: readonly AgentRules[]): Needed {
  if (!evidence.processes.ok || evidence.processes.value.gaps.length > 0)
    return { of: () => "doubted", idsOf: () => null, directoriesOf: () => null, ids: new Set(), named: null };
  const table = withoutStrangers(evidence.processes.value);
  const { owners, doubts, agentDoubts, unrecorded } = matchProcesses(
    { ...evidence, processes: read(table) },
    table,
    rules,
  );
  // Where records may belong to several users, their names do not tell whose they are, nor which process may have them.
  const examined = examinedIn(evidence.processes.value);
  const live = new Set(
    rules.filter((each) => examined.some((row) => roleOf(each, row) !== null)).map(({ agent }) => agent),
  );
  const isDoubted = ({ agent, listing, onRootDevice, isShared, mayHoldOthers }: Store): boolean =>
    !listing.ok ||
    isShared === true ||
    agentDoubts.has(agent) ||
    (!table.namespace.initial && !onRootDevice) ||
    (mayHoldOthers === true && (evidence.othersAreHidden === true || live.has(agent)));
  const whole = new Set(evidence.stores.filter(isDoubted).map(homeKey));
  const of: Needed["of"] = (store, id) => {
    const key = sessionKey(store.agent, store.home, id);
    // Named by a process whose home nobody knows, it may be the one of any home.
    const isNamed = owners.has(key) || owners.has(sessionKey(store.agent, "", id));
    const isDoubtful = whole.has(homeKey(store)) || doubts.has(key) || namelessOf(store, id).length > 0;
    return isNamed ? "owned" : isDoubtful ? "doubted" : null;
  };
  // Whom a live session was left for is told by the beginnings of others.
  const left = evidence.stores.filter((store) =>
    store.successions.some(({ from, to }) => to === null && of(store, from) !== null),
  );
  for (const store of left) whole.add(homeKey(store));
  const keys = [...owners.keys(), ...doubts.keys()];
  const idsOf: Needed["idsOf"] = (store) => {
    // A process whose home nobody knows names a session: only names can tell where that is.
    const isLost = keys.some((key) => key.startsWith(`${store.agent}\0\0`));
    const own = `${homeKey(store)}\0`;
    const ids = new Set(keys.flatMap((key) => (key.startsWith(own) ? [key.slice(own.length)] : [])));
    const isAny = whole.has(homeKey(store)) || ids.has(anyRecord) || (store.nameless ?? []).length > 0;
    return isLost || isAny ? null : ids;
  };
  const directoriesOf: Needed["directoriesOf"] = (store) => {
    const isElsewhere = keys.some((key) => key.startsWith(`${store.agent}\0\0`)) || (store.nameless ?? []).length > 0;
    const why = doubts.get(sessionKey(store.agent, store.home, anyRecord)) ?? [];
    if (isElsewhere || whole.has(homeKey(store)) || why.some(({ rule }) => rule !== "R9")) return null;
    return directoriesOfSilent(table, rules, store.agent);
  };
  const all = [...owners.values()].flat();
  const isGuessed = (owner: FoundOwner): boolean => owner.kind === "process" && owner.link === "cwd";
  const isSilent = unrecorded.length > 0 || all.some(isGuessed);
  const rows = all.flatMap((owner) => (owner.row === null || isGuessed(owner) ? [] : [owner.row]));
  const ids = new Set(keys.map((key) => key.split("\0")[2] ?? ""));
  return { of, idsOf, directoriesOf, ids, named: isSilent ? new Set(rows) : null };
}

/** Rule 9 is about processes and the records of their directories. null: one of the processes may have others, too. */
function directoriesOfSilent(table: ProcessTable, rules: readonly AgentRules[], agent: string): Set<string> | null {
  const found = new Set<string>();
  for (const row of examinedIn(table))
    for (const each of rules) {
      if (each.agent !== agent || roleOf(each, row) !== "agent") continue;
      const { cwd, sameFiles } = row.detail;
      if (cwd === null || !sameFiles || namedHome(each, row.detail) === null) return null;
      found.add(cwd);
    }
  return found;
}

const homeKey = ({ agent, home }: Store): string => `${agent}\0${home}`;

/** Whose file a record is does not stand in its name: what somebody else's process names may be ours. */
function withoutStrangers(table: ProcessTable): ProcessTable {
  if (examinedIn(table).every(({ detail }) => detail.ours)) return table;
  // Which home they use is not asked of them: any may be theirs.
  const rows = table.rows.map((row) =>
    row.detail === null || row.detail.ours ? row : { ...row, detail: { ...row.detail, ours: true, sameFiles: false } },
  );
  return { ...table, rows };
}
