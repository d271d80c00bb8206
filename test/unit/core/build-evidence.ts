// Builds evidence in a few lines, with four made-up agents whose rules share no code with any adapter.

import { deriveSessions } from "../../../src/core/derive.ts";
import {
  type Activity,
  type Announcement,
  anyPid,
  type Evidence,
  type NativeRecord,
  type ServedSession,
  type ServerAnswer,
  type Store,
  type Turn,
  type Waiting,
} from "../../../src/core/evidence.ts";
import type { ProblemDetail } from "../../../src/core/problem.ts";
import { type Problem, type ProblemCode, type Reading, read, unread } from "../../../src/core/problem.ts";
import type { ProcessDetail, ProcessRow, ProcessTable } from "../../../src/core/process.ts";
import type { Contradiction, StatusReason } from "../../../src/core/reason.ts";
import type { AgentRules } from "../../../src/core/rules.ts";
import type { Link, Session, SessionList, Status } from "../../../src/core/session.ts";

export const now = Date.UTC(2026, 10, 15, 12);
export const ago = (minutes: number): number => now - minutes * 60_000;
export const boot = "boot-1";
export const ownNamespace = "pid:[1]";
/** We, and another user of this machine. */
export const me = 1000;
const somebody = 42;

/** speaker announces by file; mute says nothing; pool has servers that answer; locker holds locks, also in its servers. */
export type Agent = "speaker" | "mute" | "pool" | "locker";
export const homeOf = (agent: Agent): string => `/home/me/.${agent}`;

const isId = (text: string): boolean => /^s[0-9]+$/.test(text);
const idIn = (text: string | undefined): string | null => (text !== undefined && isId(text) ? text : null);

const agentRules = (
  agent: Agent,
  announces: boolean,
  serversNameBy: Exclude<AgentRules["serversNameBy"], undefined>,
): AgentRules => ({
  agent,
  isId,
  processNames: [agent],
  role(name, { argv }) {
    if (name !== agent && argv?.[0] !== agent) return null;
    return argv?.[1] === "serve" ? "server" : argv?.[1] === "helper" ? "helper" : "agent";
  },
  announces: () => announces,
  announcedIds: ({ lockedFiles }) =>
    agent === "locker" ? lockedFiles.flatMap((path) => idIn(/([^/]*)\.lock$/.exec(path)?.[1]) ?? []) : [],
  // Overwritten arguments leave empty ones behind.
  hidesArguments: ({ argv }) => argv?.[1] === "",
  mayMoveOn: ({ argv }) => argv?.[3] === "--interface",
  argvId: (argv) => (argv[1] === "--resume" ? idIn(argv[2]) : null),
  serversNameBy,
  home: (env) => (env["HOME"] === undefined ? null : `${env["HOME"]}/.${agent}`),
});

export const rules: AgentRules[] = [
  agentRules("speaker", true, null),
  agentRules("mute", false, null),
  agentRules("pool", false, "answer"),
  agentRules("locker", true, "lock"),
];

export type RowChange = Partial<Omit<ProcessRow, "identity" | "detail">> &
  Partial<ProcessDetail> & { start?: string; boot?: string };

/** A live process of the agent, of ours, in /project, ten minutes old. With `ours: false` it is another user's. */
export function process(pid: number, agent: Agent, change: RowChange = {}): ProcessRow {
  const detail: ProcessDetail = {
    uid: change.ours === false ? somebody : me,
    ours: true,
    argv: [agent],
    exe: `/usr/bin/${agent}`,
    cwd: "/project",
    env: { HOME: "/home/me" },
    lockedFiles: [],
    namespace: ownNamespace,
    innerPid: pid,
    sameFiles: true,
    confinement: null,
    unread: [],
  };
  for (const key of Object.keys(detail)) if (key in change) Object.assign(detail, { [key]: Reflect.get(change, key) });
  return {
    identity: { pid, start: change.start ?? String(pid * 100), boot: change.boot ?? boot },
    parent: change.parent ?? 1,
    session: change.session ?? pid,
    state: change.state ?? "S",
    name: change.name ?? agent,
    tty: change.tty ?? null,
    startedAt: change.startedAt ?? ago(10),
    detail,
  };
}

/** No agent asked for it. */
export const stranger = (pid: number, change: RowChange = {}): ProcessRow => ({
  ...process(pid, "mute", { name: "nginx", ...change }),
  detail: null,
});

export const problem = (code: ProblemCode, source: string, text = "input/output error"): Problem => ({
  code,
  agent: null,
  source,
  detail: systemError(text),
});

export const systemError = (text: string): ProblemDetail => ({ code: "system-error", errno: "", text });

export const closed: Turn = { state: "closed", at: ago(1), outcome: "completed" };
export const open: Turn = { state: "open", since: ago(2), doubt: null };

/** Of /work, last message a minute ago, its turn completed. */
export const record = (id: string, change: Partial<NativeRecord> = {}): NativeRecord => ({
  id,
  source: `/records/${id}.jsonl`,
  cwd: "/project",
  createdAt: ago(9),
  lastMessageAt: ago(1),
  writtenAt: ago(1),
  turn: closed,
  waiting: null,
  background: null,
  parent: null,
  continuedBy: null,
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
  pending: null,
  subagentOf: null,
  unknownLines: 0,
  ...change,
});

/** The word of `process(pid, …)`: its start, this boot, our namespace. */
export const announcement = (pid: number, session: string, change: Partial<Announcement> = {}): Announcement => ({
  session,
  pid,
  start: String(pid * 100),
  boot,
  namespace: ownNamespace,
  source: `/live/${pid}.json`,
  writtenAt: ago(9),
  cwd: "/project",
  says: null,
  waiting: null,
  background: null,
  job: null,
  ...change,
});

export const badAnnouncement = (pid: number): Store["announcements"][number] => ({
  pid,
  uid: me,
  reading: unread(problem("announcement-unreadable", pid === anyPid ? "/live" : `/live/${pid}.json`)),
});

/** The same as a file of this user. */
export const fileOf = (uid: number, value: NativeRecord): Store["rows"][number] => ({
  id: value.id,
  reading: read(value),
  writtenAt: value.writtenAt,
  uid,
});

export const badRecord = (id: string): Store["rows"][number] => ({
  id,
  writtenAt: null,
  uid: me,
  reading: unread(problem("record-unreadable", `/records/${id}.jsonl`, "EIO")),
});

type StoreChange = Partial<
  Pick<Store, "home" | "names" | "onRootDevice" | "listing" | "nameless" | "isShared" | "namedOnlyIn" | "mayHoldOthers">
>;

export function store(
  agent: Agent,
  rows: (NativeRecord | Store["rows"][number])[],
  announcements: (Announcement | Store["announcements"][number])[] = [],
  change: StoreChange = {},
): Store {
  const home = change.home ?? homeOf(agent);
  return {
    agent,
    home,
    names: [home],
    onRootDevice: true,
    listing: read(rows.length),
    rows: rows.map((row) => ("reading" in row ? row : fileOf(me, row))),
    announcements: announcements.map((word) =>
      "reading" in word ? word : { pid: word.pid, reading: read(word), uid: me },
    ),
    successions: [],
    ...change,
  };
}

export const served = (id: string, activity: Activity, waiting: Waiting | null = null): ServedSession => ({
  id,
  activity,
  waiting,
});

/** What the server in this row answered; "silent": nothing. A null row: a gateway without a process here. */
export const serverAnswer = (
  row: ProcessRow | null,
  answer: ServedSession[] | "silent",
  address = "/run/server",
): ServerAnswer => ({
  agent: "pool",
  home: homeOf("pool"),
  address,
  process: row?.identity ?? null,
  startedAt: row?.startedAt ?? null,
  answer: answer === "silent" ? unread(problem("server-silent", address)) : read(answer),
});

export interface PartialEvidence {
  host?: string;
  othersAreHidden?: boolean;
  processes?: ProcessRow[] | "failed";
  table?: Partial<ProcessTable>;
  stores?: Store[];
  servers?: ServerAnswer[];
  directories?: Evidence["directories"];
  problems?: Problem[];
  at?: number;
}

export function evidence(partial: PartialEvidence): Evidence {
  const { processes = [] } = partial;
  const table: Reading<ProcessTable> =
    processes === "failed"
      ? unread(problem("processes-unreadable", "/proc"))
      : read({
          boot,
          uid: me,
          namespace: { id: ownNamespace, initial: true },
          rows: processes,
          gaps: [],
          hidden: [],
          ...partial.table,
        });
  return {
    at: partial.at ?? now,
    host: partial.host ?? null,
    othersAreHidden: partial.othersAreHidden ?? false,
    processes: table,
    stores: partial.stores ?? [],
    servers: partial.servers ?? [],
    dialogs: [],
    directories: partial.directories ?? {},
    problems: partial.problems ?? [],
  };
}

export const derive = (partial: PartialEvidence): SessionList => deriveSessions(evidence(partial), rules);

/** What a case compares: everything of a row that a truth rule speaks of. */
export interface Seen {
  id: string | null;
  state: Status["state"];
  activity: Activity | null;
  outcome: string | null;
  reason: StatusReason | null;
  link: Link | "server" | null;
  processes: number[];
  waiting: Waiting | null;
  conflicts: Contradiction[];
}

export const seen = (session: Session): Seen => {
  const { status } = session;
  return {
    id: session.id,
    state: status.state,
    activity: status.state === "running" ? status.activity : null,
    outcome: status.state === "stopped" ? status.outcome : null,
    reason: session.reason,
    link: status.state !== "running" ? null : status.owner.kind === "server" ? "server" : status.owner.link,
    processes: session.processes.map((row) => row.identity.pid),
    waiting: session.waiting,
    conflicts: session.conflicts,
  };
};

/** Rows with an id by their name, then those without by their pid. */
export const look = (partial: PartialEvidence): Seen[] =>
  derive(partial)
    .sessions.map(seen)
    .sort((a, b) => (key(a) < key(b) ? -1 : 1));

const key = (row: Seen): string => row.id ?? `~${row.processes.join()}`;

const nothing: Omit<Seen, "id" | "state"> = {
  activity: null,
  outcome: null,
  reason: null,
  link: null,
  processes: [],
  waiting: null,
  conflicts: [],
};

export const stopped = (id: string, change: Partial<Seen> = {}): Seen => ({
  ...nothing,
  id,
  state: "stopped",
  outcome: "completed",
  ...change,
});

export const unknown = (id: string, reason: StatusReason, change: Partial<Seen> = {}): Seen => ({
  ...nothing,
  id,
  state: "unknown",
  reason,
  ...change,
});

export const running = (id: string, pids: number[], link: Seen["link"], change: Partial<Seen> = {}): Seen => ({
  ...nothing,
  id,
  state: "running",
  activity: "idle",
  link,
  processes: pids,
  ...change,
});

/** A live process without a known session. */
export const unrecorded = (pid: number, reason: StatusReason = { code: "session-unknown" }): Seen => ({
  ...nothing,
  id: null,
  state: "running",
  activity: "unclear",
  reason,
  processes: [pid],
});
