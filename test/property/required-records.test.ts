// Reading only the required records must give the same answer about all sessions that run or may run. A failure prints its seed.
import { expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { deriveSessions } from "../../src/core/derive.ts";
import type { Evidence, Store } from "../../src/core/evidence.ts";
import { anyRecord, neededRecords, outline } from "../../src/core/required-records.ts";
import { me, rules } from "../unit/core/build-evidence.ts";
import { anEvidence, anyEvidence } from "./arbitrary-evidence.ts";

setDefaultTimeout(60_000);

/** As it is when only names were read, and where sessions work, if names tell that; times, if they can be told for little. */
function outlined(evidence: Evidence, tells: { cwd: boolean; times: boolean }): Evidence {
  const stores = evidence.stores.map((store) => ({
    ...store,
    rows: store.rows.map(({ id, reading, writtenAt }) => {
      const record = reading.ok ? reading.value : null;
      const row = outline(id, "", tells.cwd ? (record?.cwd ?? null) : null);
      const newest = Math.max(
        record?.lastMessageAt ?? 0,
        record?.createdAt ?? 0,
        record?.writtenAt ?? 0,
        writtenAt ?? 0,
      );
      const isTold = tells.times && record?.writtenAt != null && writtenAt !== null && row.reading.ok;
      if (isTold && row.reading.ok) row.reading.value.writtenAt = newest;
      return isTold ? { ...row, writtenAt: newest } : row;
    }),
  }));
  return { ...evidence, stores };
}

test.each([
  { cwd: false, times: false },
  { cwd: true, times: false },
  { cwd: true, times: true },
])("a record that is not required belongs to a stopped session and changes no other answer: %j", (tells) => {
  fc.assert(
    fc.property(fc.oneof(anEvidence, anyEvidence), (whole) => {
      const each = neededRecords(outlined(whole, tells), rules);
      // As observe does it: one outline for all of a store, and one for each record only where that one is needed.
      const stores = whole.stores.map((store) => ({ ...store, rows: [outline(anyRecord, "", null)] }));
      const any = neededRecords({ ...whole, stores }, rules);
      // Where names tell directories, first only those of the processes' own.
      const near = outlined(whole, tells);
      for (const store of near.stores) {
        const directories = any.directoriesOf(store);
        const isNear = ({ id, reading }: Store["rows"][number]): boolean =>
          any.ids.has(id) ||
          directories === null ||
          !reading.ok ||
          reading.value.cwd === null ||
          directories.has(reading.value.cwd);
        store.rows = any.idsOf(store) === null ? store.rows.filter(isNear) : [outline(anyRecord, "", null)];
      }
      const first = neededRecords(near, rules);
      const needed = {
        of: (store: Store, id: string): boolean => {
          const ids = any.idsOf(store);
          if (ids !== null) return ids.has(id);
          if (first.named !== null) return each.of(store, id) !== null;
          const has = (each: Store | undefined): boolean => each?.rows.some((row) => row.id === id) === true;
          const isFar = has(store) && !has(near.stores[whole.stores.indexOf(store)]);
          return !isFar && first.of(store, id) !== null;
        },
      };
      const few: Evidence = {
        ...whole,
        stores: whole.stores.map((store) => ({
          ...store,
          rows: store.rows.filter(({ id }) => needed.of(store, id)),
        })),
      };
      const storeOf = (agent: string, home: string) =>
        whole.stores.filter((store) => store.agent === agent && store.home === home);
      const isNeeded = ({ agent, home, id }: { agent: string; home: string; id: string | null }): boolean =>
        id === null || storeOf(agent, home).length === 0 || storeOf(agent, home).some((store) => needed.of(store, id));
      const { sessions } = deriveSessions(whole, rules);
      const told = deriveSessions(few, rules).sessions;
      expect(told.filter(isNeeded)).toEqual(sessions.filter(isNeeded));
      for (const session of sessions.filter((each) => !isNeeded(each))) {
        const records = storeOf(session.agent, session.home).flatMap(({ rows }) =>
          rows.filter(({ id }) => id === session.id),
        );
        // Where there is one of ours, another user's does not speak.
        const ours = records.filter(({ uid }) => uid === me);
        const unread = (ours.length > 0 ? ours : records).some(({ reading }) => !reading.ok);
        // Unread parts of it are no evidence that a process has it.
        expect([session.id, session.status.state]).toEqual([session.id, unread ? "unknown" : "stopped"]);
      }
    }),
    { numRuns: 300 },
  );
});
