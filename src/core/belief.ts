// Who may be believed about whom. A file speaks for the processes of its owner, and ours for every process; a home that only
// confined processes name speaks for processes of the same confinement. Rule 13 of docs/truth.md.
import type { Evidence, Store } from "./evidence.ts";
import type { ProcessDetail, ProcessRow, ProcessTable } from "./process.ts";

/** Why an announcement in a file of this user does not count for this process; null: it counts. */
export function whyNotBelieved(
  store: Pick<Store, "namedOnlyIn">,
  uid: number | null,
  { identity, detail }: Pick<ProcessRow, "identity" | "detail">,
  table: ProcessTable,
): string | null {
  const { pid } = identity;
  if (!mayNameOwner(uid, detail, table)) {
    const file = uid === null ? "whose file it is cannot be seen" : `the announcement is a file of uid ${uid}`;
    const owner = detail?.uid == null ? "no single user's" : `of uid ${detail.uid}`;
    return `${file}, but process ${pid} is ${owner}`;
  }
  if (!isWithin(store, detail))
    return `announced in a home that only a sandboxed process names, and process ${pid} is outside of the sandbox`;
  return null;
}

/** May a file of this user name the process as the owner of a session? */
export const mayNameOwner = (
  uid: number | null,
  detail: Pick<ProcessDetail, "uid"> | null,
  table: Pick<ProcessTable, "uid">,
): boolean => uid !== null && (uid === table.uid || uid === detail?.uid);

/** Does the store speak for this process? */
export const isWithin = (
  { namedOnlyIn }: Pick<Store, "namedOnlyIn">,
  detail: Pick<ProcessDetail, "confinement"> | null,
): boolean => namedOnlyIn === undefined || (detail?.confinement != null && namedOnlyIn.includes(detail.confinement));

/** A record of another user is never tied to a process by what the process was started with, or by where it works. */
export const mayBeTied = (uid: number | null, detail: Pick<ProcessDetail, "uid">): boolean =>
  uid === null || uid === detail.uid;

/** Why a process does not have a session although its arguments name it; null: the record may be its own, or there is none. */
export function whyNotTied(
  { row: { identity }, detail }: { row: Pick<ProcessRow, "identity">; detail: ProcessDetail },
  session: { agent: string; home: string; id: string },
  { stores }: Evidence,
): string | null {
  const { agent, home, id } = session;
  const rows = stores.flatMap((store) => (store.agent === agent && store.home === home ? store.rows : []));
  const foreign = rows.find((row) => row.id === id && !mayBeTied(row.uid, detail));
  if (foreign === undefined) return null;
  return `process ${identity.pid} was started with it, but its record is a file of uid ${foreign.uid}`;
}
