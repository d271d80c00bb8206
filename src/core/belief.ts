// Which files count for which processes. A file counts for processes of its owner, and a file of ours for every process; a home
// that only confined processes name counts for processes of the same confinement. Rule 13 of docs/truth.md.
import type { Evidence, Store } from "./evidence.ts";
import type { AgentProcess } from "./matches.ts";
import type { ProcessDetail, ProcessRow, ProcessTable } from "./process.ts";
import type { OwnerDoubt } from "./reason.ts";

/** Why an announcement in a file of this user does not count for this process; null: it counts. */
export function whyNotBelieved(
  store: Store,
  uid: number | null,
  { identity: { pid }, detail }: ProcessRow,
  table: ProcessTable,
): OwnerDoubt | null {
  if (!mayNameOwner(uid, detail, table))
    return { code: "file-of-other-user", pid, fileUid: uid, processUid: detail?.uid ?? null };
  return isWithin(store, detail) ? null : { code: "outside-sandbox", pid };
}

/** May a file of this user name the process as the owner of a session? */
export const mayNameOwner = (uid: number | null, detail: ProcessDetail | null, table: ProcessTable): boolean =>
  uid !== null && (uid === table.uid || uid === detail?.uid);

/** Does the store count for this process? */
export const isWithin = ({ namedOnlyIn }: Store, detail: ProcessDetail | null): boolean =>
  namedOnlyIn === undefined || (detail?.confinement != null && namedOnlyIn.includes(detail.confinement));

/** A record of another user is never linked to a process by arguments or by directory. */
export const mayBeTied = (uid: number | null, detail: ProcessDetail): boolean => uid === null || uid === detail.uid;

/** Why a process does not have a session although its arguments name it; null: the record may be its own, or there is none. */
export function whyNotTied(
  { row, detail }: AgentProcess,
  { agent, home, id }: { agent: string; home: string; id: string },
  { stores }: Evidence,
): OwnerDoubt | null {
  const rows = stores.flatMap((store) => (store.agent === agent && store.home === home ? store.rows : []));
  const foreign = rows.find((each) => each.id === id && !mayBeTied(each.uid, detail));
  return foreign === undefined ? null : { code: "record-of-other-user", pid: row.identity.pid, uid: foreign.uid };
}
