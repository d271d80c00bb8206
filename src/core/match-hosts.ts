// Sessions that live in a process which serves many: running only if that host names them. Rule 1.
import { clockSlackMs } from "./claims.ts";
import type { Evidence, HostAnswer, HostedSession } from "./evidence.ts";
import { type AgentProcess, add, addOwner, type Matches, sessionKey } from "./found.ts";
import { unread } from "./problem.ts";
import { isLive, mayBeOurs, type ProcessIdentity, type ProcessRow, type ProcessTable, sameProcess } from "./process.ts";
import type { AgentRules } from "./rules.ts";

export function matchHosts(
  evidence: Evidence,
  table: ProcessTable,
  processes: AgentProcess[],
  allRules: readonly AgentRules[],
  found: Matches,
): void {
  for (const { host, uid } of [
    ...evidence.hosts.map((each) => ({ host: each, uid: null })),
    ...unaskedHosts(evidence, processes),
  ]) {
    const row = host.process === null ? null : liveRow(table, host.process);
    if (host.process !== null && row === null) continue;
    const byLock = allRules.some(({ agent, hostsNameBy }) => agent === host.agent && hostsNameBy === "lock");
    if (!host.answer.ok) {
      if (!byLock) doubtWrittenSince(host, uid, evidence, found);
      continue;
    }
    for (const hosted of host.answer.value) {
      const key = sessionKey(host.agent, host.home, hosted.id);
      if (byLock) tellActivity(found, key, host, hosted);
      else addOwner(found, key, { kind: "host", host, row, address: host.address, hosted });
    }
  }
}

/** Its lock says that the host has the session; the answer says what it is doing there. */
function tellActivity(found: Matches, key: string, host: HostAnswer, hosted: HostedSession): void {
  for (const owner of found.owners.get(key) ?? [])
    if (owner.kind === "host") Object.assign(owner, { host, hosted, address: host.address });
}

/** A server, and whose records it may have; null: anybody's. */
interface Server {
  host: HostAnswer;
  uid: number | null;
}

/**
 * Servers in the process table that were not asked: they started after the stores were read, have no address, or are not ours. One of
 * another user has only that user's sessions.
 */
function unaskedHosts(evidence: Evidence, processes: AgentProcess[]): Server[] {
  const asked = evidence.hosts.flatMap((host) => (host.process === null ? [] : [host.process]));
  return processes
    .filter((p) => p.role === "host" && p.rules.hostsNameBy === "answer")
    .filter((p) => !asked.some((identity) => sameProcess(identity, p.row.identity)))
    .filter(({ detail }) => mayBeOurs(detail) || detail.uid !== null)
    .map(({ rules, row, home, detail }) => {
      const address = `process ${row.identity.pid}`;
      const message = "a host that could not be asked";
      const host: HostAnswer = {
        agent: rules.agent,
        // null: nobody knows which; any of this agent's.
        home: home ?? "",
        address,
        process: row.identity,
        startedAt: row.startedAt,
        answer: unread({ code: "host-silent", agent: rules.agent, source: address, message }),
      };
      return { host, uid: mayBeOurs(detail) ? null : detail.uid };
    });
}

/** A host that does not answer may have any session that was written since it started, and no other. */
function doubtWrittenSince(host: HostAnswer, uid: number | null, evidence: Evidence, found: Matches): void {
  for (const store of evidence.stores) {
    if (store.agent !== host.agent || (host.home !== "" && store.home !== host.home)) continue;
    for (const { id, reading, uid: owner } of store.rows) {
      if (uid !== null && owner !== uid) continue;
      const writtenAt = reading.ok ? reading.value.writtenAt : null;
      if (reading.ok && reading.value.isOver === true) continue;
      if (host.startedAt !== null && writtenAt !== null && writtenAt < host.startedAt - clockSlackMs) continue;
      const why = `its host ${host.address} does not answer`;
      add(found.doubts, sessionKey(store.agent, store.home, id), { why, source: host.address, rule: "R1" });
    }
  }
}

const liveRow = (table: ProcessTable, wanted: ProcessIdentity): ProcessRow | null =>
  table.rows.find((row) => sameProcess(row.identity, wanted) && isLive(row)) ?? null;
