// Sessions in a server: running only if the server lists them. Rule 1.
import { clockSlackMs } from "./announcements.ts";
import type { Evidence, ServedSession, ServerAnswer } from "./evidence.ts";
import { type AgentProcess, add, addOwner, type Matches, type Matching, sessionKey } from "./matches.ts";
import { unread } from "./problem.ts";
import { isLive, mayBeOurs, sameProcess } from "./process.ts";
import type { OwnerDoubt } from "./reason.ts";

export function matchServers({ evidence, table, processes, allRules, found }: Matching): void {
  const asked = evidence.servers.map((server) => ({ server, uid: null }));
  for (const { server, uid } of [...asked, ...unaskedServers(evidence, processes)]) {
    const { process } = server;
    const row = table.rows.find((each) => process !== null && sameProcess(each.identity, process) && isLive(each));
    if (process !== null && row === undefined) continue;
    const byLock = allRules.some(({ agent, serversNameBy }) => agent === server.agent && serversNameBy === "lock");
    if (!server.answer.ok) {
      if (!byLock) doubtWrittenSince(server, uid, evidence, found);
      continue;
    }
    for (const served of server.answer.value) {
      const key = sessionKey(server.agent, server.home, served.id);
      if (byLock) tellActivity(found, key, server, served);
      else addOwner(found, key, { kind: "server", server, row: row ?? null, address: server.address, served });
    }
  }
}

/** The lock proves that the server has the session; the answer tells its activity. */
function tellActivity(found: Matches, key: string, server: ServerAnswer, served: ServedSession): void {
  for (const owner of found.owners.get(key) ?? [])
    if (owner.kind === "server") Object.assign(owner, { server, served, address: server.address });
}

/**
 * Servers in the process table that were not asked: they started after the stores were read, have no address, or are not ours. A
 * server of another user has only sessions of that user (`uid`).
 */
function unaskedServers(evidence: Evidence, processes: readonly AgentProcess[]) {
  const asked = evidence.servers.flatMap((server) => (server.process === null ? [] : [server.process]));
  return processes
    .filter((p) => p.role === "server" && p.rules.serversNameBy === "answer")
    .filter((p) => !asked.some((identity) => sameProcess(identity, p.row.identity)))
    .filter(({ detail }) => mayBeOurs(detail) || detail.uid !== null)
    .map(({ rules, row, home, detail }) => {
      const address = `process ${row.identity.pid}`;
      const server: ServerAnswer = {
        agent: rules.agent,
        // null: not known, so it may be any home of this agent.
        home: home ?? "",
        address,
        process: row.identity,
        startedAt: row.startedAt,
        answer: unread({ code: "server-silent", agent: rules.agent, source: address, detail: { code: "not-asked" } }),
      };
      return { server, uid: mayBeOurs(detail) ? null : detail.uid };
    });
}

/** A server that does not answer may have any session that was written since it started, and no other. */
function doubtWrittenSince(server: ServerAnswer, uid: number | null, evidence: Evidence, found: Matches): void {
  for (const store of evidence.stores) {
    if (store.agent !== server.agent || (server.home !== "" && store.home !== server.home)) continue;
    for (const { id, reading, uid: owner } of store.rows) {
      if (uid !== null && owner !== uid) continue;
      const writtenAt = reading.ok ? reading.value.writtenAt : null;
      if (reading.ok && reading.value.isOver === true) continue;
      if (server.startedAt !== null && writtenAt !== null && writtenAt < server.startedAt - clockSlackMs) continue;
      const why: OwnerDoubt = { code: "server-silent", address: server.address };
      add(found.doubts, sessionKey(store.agent, store.home, id), { why, source: server.address, rule: "R1" });
    }
  }
}
