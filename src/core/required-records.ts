// Which records must be read to list sessions that are or may be running, by their names alone. A session that no process can have
// is not running, so its record is read only if the caller asks for it.
import { type Evidence, emptyRecord, type Store, type Turn } from "./evidence.ts";
import { matchProcesses } from "./match.ts";
import { type FoundOwner, namedHome, sessionKey } from "./matches.ts";
import { read } from "./problem.ts";
import { examinedIn, type ProcessRow, type ProcessTable } from "./process.ts";
import { type AgentRules, roleOf } from "./rules.ts";
import { namelessOf } from "./session-facts.ts";

/** A record of which only the name is known, and sometimes the directory. Its unknown facts rule nothing out. */
export const outline = (id: string, source: string, cwd: string | null): Store["rows"][number] => ({
  id,
  reading: read({ ...emptyRecord({ id, path: source, writtenAt: null, torn: false }), cwd, turn: notRead }),
  writtenAt: null,
  uid: null,
});

const notRead: Turn = { state: "unclear", why: { code: "not-read" } };

/** An outline for all records of its store: a process that may have any of them may have this one. */
export const anyRecord = "\0any";

export interface Needed {
  /** "owned": a live process or server has it; "doubted": one may have it; null: neither. */
  of(store: Store, id: string): "owned" | "doubted" | null;
  /** The sessions of this store whose records are needed, recorded or not; null: any may be. */
  idsOf(store: Store): ReadonlySet<string> | null;
  /** If any may be needed: only records of these directories, or without a known directory; null: of all directories. */
  directoriesOf(store: Store): ReadonlySet<string> | null;
  /** The sessions that are needed in any store, or recorded in none; if `idsOf` is null, there are more. */
  ids: ReadonlySet<string>;
  /** The processes whose session is known; null: that is all of them. */
  named: ReadonlySet<ProcessRow> | null;
}

/** The rows of the stores are outlines. An unknown fact can only make a record needed. */
export function neededRecords(evidence: Evidence, rules: readonly AgentRules[]): Needed {
  if (!evidence.processes.ok || evidence.processes.value.gaps.length > 0)
    return { of: () => "doubted", idsOf: () => null, directoriesOf: () => null, ids: new Set(), named: null };
  const table = withoutStrangers(evidence.processes.value);
  const matches = matchProcesses({ ...evidence, processes: read(table) }, table, rules);
  const { owners, doubts, agentDoubts, unrecorded } = matches;
  // If records may belong to several users, their names do not tell which user owns them, nor which process may have them.
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
    // If a process without a known home names the session, it may be the session of any home.
    const isNamed = owners.has(key) || owners.has(sessionKey(store.agent, "", id));
    const isDoubtful = whole.has(homeKey(store)) || doubts.has(key) || namelessOf(store, id).length > 0;
    return isNamed ? "owned" : isDoubtful ? "doubted" : null;
  };
  // Successors of /clear are found by creation time, so read all records.
  const left = evidence.stores.filter((store) =>
    store.successions.some(({ from, to }) => to === null && of(store, from) !== null),
  );
  for (const store of left) whole.add(homeKey(store));
  const keys = [...owners.keys(), ...doubts.keys()];
  // If a process without a known home names a session, only the names of records tell the home.
  const mayBeLost = ({ agent, nameless = [] }: Store): boolean =>
    nameless.length > 0 || keys.some((key) => key.startsWith(`${agent}\0\0`));
  const idsOf: Needed["idsOf"] = (store) => {
    const own = `${homeKey(store)}\0`;
    const ids = new Set(keys.flatMap((key) => (key.startsWith(own) ? [key.slice(own.length)] : [])));
    return whole.has(homeKey(store)) || ids.has(anyRecord) || mayBeLost(store) ? null : ids;
  };
  const directoriesOf: Needed["directoriesOf"] = (store) => {
    const why = doubts.get(sessionKey(store.agent, store.home, anyRecord)) ?? [];
    if (mayBeLost(store) || whole.has(homeKey(store)) || why.some(({ rule }) => rule !== "R9")) return null;
    return directoriesOfSilent(table, rules, store.agent);
  };
  const all = [...owners.values()].flat();
  const isGuessed = (owner: FoundOwner): boolean => owner.kind === "process" && owner.link === "cwd";
  const isSilent = unrecorded.length > 0 || all.some(isGuessed);
  const rows = all.flatMap((owner) => (owner.row === null || isGuessed(owner) ? [] : [owner.row]));
  const ids = new Set(keys.map((key) => key.split("\0")[2] ?? ""));
  return { of, idsOf, directoriesOf, ids, named: isSilent ? new Set(rows) : null };
}

/** The directories of processes for rule 9. null: one of the processes may have records of other directories. */
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

/** The owner of a record is not known by its name, so treat processes of other users as ours. */
function withoutStrangers(table: ProcessTable): ProcessTable {
  if (examinedIn(table).every(({ detail }) => detail.ours)) return table;
  // Their home is not read, so it may be any.
  const rows = table.rows.map((row) =>
    row.detail === null || row.detail.ours ? row : { ...row, detail: { ...row.detail, ours: true, sameFiles: false } },
  );
  return { ...table, rows };
}
