// Who belongs to a session and may be ended with it: its owners' descendants and what carries its mark. Everything that
// might be somebody else's is a leftover, with the reason.
import { isLive, type ProcessRow, type ProcessTable, sameProcess } from "./process.ts";
import { isHosted, isSameSession, type Kin, type Session } from "./session.ts";
import { isHeadless, windowKind } from "./windows.ts";

/** How the processes of sessions are marked in their environments. */
export interface Marks {
  /** By agent: its own variable in what its tools start. */
  childMarks: ReadonlyMap<string, string>;
  /** Launches of this session (values of AGENTCTL_TAG), beside those that its live processes carry. */
  launches: readonly string[];
  /** Serves many sessions, whoever started it. */
  isHost?(row: ProcessRow): boolean;
  /** A process of the agent itself, as its helpers are. */
  isOfAgent?(row: ProcessRow, agent: string): boolean;
  /** The libraries that it has loaded, as /proc/PID/maps lists them; empty: not known. */
  readMaps?(row: ProcessRow): string;
}

export interface Leftover {
  row: ProcessRow;
  why: string;
}

export interface Family {
  /** Below the owners or marked; without the owners themselves. */
  members: ProcessRow[];
  leftovers: Leftover[];
}

export function familyOf(
  session: Kin,
  all: readonly Session[],
  table: ProcessTable,
  marks: Marks,
  callerPids: ReadonlySet<number>,
): Family {
  const isOwn = (row: ProcessRow): boolean => session.processes.some((own) => sameProcess(own.identity, row.identity));
  // A host has many sessions: what is below it is ours only where it carries our mark.
  const owners = isHosted(session) ? [] : table.rows.filter(isOwn);
  const others = all.filter((other) => other.status.state === "running" && !isSameSession(other, session));
  const whose = ownersOf(others);
  const launches = new Set([...marks.launches, ...owners.flatMap((row) => launchToEnd(row) ?? [])]);
  const marked = table.rows.filter((row) => isLive(row) && carriesMark(row, session, launches, marks));
  const children = childrenOf(table);
  const related = new Set([...owners, ...marked].flatMap((row) => withDescendants(row, children)));
  const byPid = new Map(table.rows.map((row) => [row.identity.pid, row]));

  /** The first answer on the way up, from the process itself to the nearest of our owners. */
  const nearest = (row: ProcessRow, ask: (at: ProcessRow) => string | null): string | null => {
    for (const at of withAncestors(row, byPid)) {
      if (isOwn(at)) return null;
      const why = ask(at);
      if (why !== null) return at === row ? why : `below a process that stays: ${why}`;
    }
    return null;
  };
  const hosts = (row: ProcessRow): string | null =>
    marks.isHost?.(row) === true ? "it serves other sessions, too" : null;
  /** Itself and those above, up to the nearest of our owners, which is not among them. */
  const upToOwn = (row: ProcessRow): ProcessRow[] => {
    const path = withAncestors(row, byPid);
    const end = path.findIndex(isOwn);
    return end === -1 ? path : path.slice(0, end);
  };
  const window = (row: ProcessRow): string | null => {
    const kind = windowKind(row, (each) => marks.readMaps?.(each) ?? "");
    return kind === null || upToOwn(row).some(isHeadless) ? null : `${kind}: people may work in it`;
  };
  /** The agent itself, and a helper of it, give terminals to its tools; another program gives them to people. */
  const isKeptByAgent = (row: ProcessRow): boolean => {
    const keeper = withAncestors(row, byPid).find((at) => isOwn(at) || at.tty !== row.tty);
    return keeper !== undefined && (isOwn(keeper) || marks.isOfAgent?.(keeper, session.agent) === true);
  };
  const isBelowOwn = (row: ProcessRow): boolean => withAncestors(row, byPid).some(isOwn);
  const left = new Map<ProcessRow, string>();
  const spared = new Map<ProcessRow, string>();
  const candidates = [...related].filter((row) => isLive(row) && !isOwn(row) && !callerPids.has(row.identity.pid));
  for (const row of candidates) {
    const why =
      nearest(row, (at) => whose.get(at.identity.pid) ?? multiplexer(at) ?? hosts(at) ?? window(at)) ??
      otherLaunch(row, session, owners, launches, marks) ??
      (isBelowOwn(row) ? null : (otherMark(row, others, owners, marks) ?? daemon(row))) ??
      (isBelowOwn(row) && isKeptByAgent(row) ? null : ownTerminal(row));
    if (why !== null) left.set(row, why);
  }
  // Whoever holds its other end, or leads its session, takes a terminal and all who work on it along.
  for (const [row] of [...left])
    for (const at of terminalHolders(row, withAncestors(row, byPid), isOwn))
      if (candidates.includes(at) && !left.has(at))
        left.set(at, `the terminal of pid ${row.identity.pid} depends on it`);
  // What lives inside of a daemon is as little ours as that is.
  for (const row of candidates) {
    const why = left.has(row) ? null : nearest(row, (at) => (at === row ? null : (left.get(at) ?? null)));
    if (why !== null) spared.set(row, why);
  }
  return {
    members: candidates.filter((row) => !left.has(row) && !spared.has(row)),
    leftovers: [...left, ...spared].map(([row, why]) => ({ row, why })),
  };
}

const ownersOf = (others: readonly Session[]): Map<number, string> =>
  new Map(others.flatMap((other) => other.processes.map((row) => [row.identity.pid, ownedBy(other)] as const)));

export const ownedBy = ({ id, agent }: Session): string =>
  id === null ? `it is a live ${agent}` : `it has the session ${id}`;

/** The launch that this process was started for. Elsewhere than in the holder's kernel session the tag is an inheritance. */
export function launchOf({ session, detail }: ProcessRow): string | null {
  const env = detail?.env ?? {};
  return env["AGENTCTL_TAG_SID"] === String(session) ? (env["AGENTCTL_TAG"] ?? null) : null;
}

/** The launch that ends with this owner. A sandboxed process may claim any: what it says of processes outside is not believed. */
export const launchToEnd = (row: ProcessRow): string | null =>
  row.detail?.confinement === null ? launchOf(row) : null;

/** The id of a session whose record is another user's makes no process of ours its member, unless a process of ours has it. */
const mayBeOf = ({ detail }: ProcessRow, { recordOwner = null, processes }: Kin): boolean =>
  recordOwner === null ||
  recordOwner === detail?.uid ||
  processes.some((owner) => owner.detail?.uid != null && owner.detail.uid === detail?.uid);

function carriesMark(row: ProcessRow, session: Kin, launches: ReadonlySet<string>, marks: Marks): boolean {
  const env = row.detail?.env ?? {};
  if (launches.has(env["AGENTCTL_TAG"] ?? "")) return true;
  const isNamed = session.id !== null && env["AGENTCTL_TAG_SESSION"] === `${session.agent}:${session.id}`;
  return (isNamed || isToolOf(row, session, marks)) && mayBeOf(row, session);
}

function isToolOf({ detail }: ProcessRow, { agent, id }: Pick<Kin, "agent" | "id">, { childMarks }: Marks): boolean {
  const mark = childMarks.get(agent);
  return id !== null && mark !== undefined && detail?.env?.[mark] === id;
}

/** A launch from inside the session scrubs its mark; a tag beside the mark is that of a session around ours. */
function otherLaunch(
  row: ProcessRow,
  session: Kin,
  owners: readonly ProcessRow[],
  launches: ReadonlySet<string>,
  marks: Marks,
): string | null {
  const tag = row.detail?.env?.["AGENTCTL_TAG"];
  if (tag === undefined || launches.has(tag) || isToolOf(row, session, marks)) return null;
  return owners.some(({ detail }) => detail?.env?.["AGENTCTL_TAG"] === tag) ? null : `it belongs to the launch ${tag}`;
}

/** Another live session's tool started it, unless that session is one that ours runs in. */
function otherMark(
  row: ProcessRow,
  others: readonly Session[],
  owners: readonly ProcessRow[],
  marks: Marks,
): string | null {
  const other = others.find(
    (each) => isToolOf(row, each, marks) && !owners.some((owner) => isToolOf(owner, each, marks)),
  );
  return other === undefined ? null : `a tool of the live session ${other.id}`;
}

const multiplexers = /^(tmux|screen|zellij|dtach|abduco|dvtm|shpool)\b/i;

export const isMultiplexer = ({ name }: ProcessRow): boolean => multiplexers.test(name);

const multiplexer = (row: ProcessRow): string | null =>
  isMultiplexer(row) ? "a terminal multiplexer: people may work in it" : null;

const services =
  /^(ssh-agent|gpg-agent|dbus-daemon|dbus-launch|systemd|dockerd|containerd.*|podman|colima|watchman|sccache|ccache|bazel.*|buck2d|adb|pulseaudio|pipewire|emacs.*|code-server|mosh-server|sshd|Xvfb|Xorg)$/i;

/** Left the tree, and lives as daemons do: in the root directory, or under the name of a known shared service. */
function daemon({ name, detail }: ProcessRow): string | null {
  if (services.test(name)) return "a shared service: others may use it";
  return detail?.cwd === "/" ? "a daemon: it left the session's tree for the root directory" : null;
}

const ownTerminal = ({ tty }: ProcessRow): string | null =>
  tty === null ? null : `it has a terminal of its own: ${tty}`;

/** Those above it on the same terminal, and the first one that is not; none, if it is the agent's own terminal. */
function terminalHolders(
  { tty }: ProcessRow,
  [, ...above]: readonly ProcessRow[],
  isOwn: (row: ProcessRow) => boolean,
): ProcessRow[] {
  const end = above.findIndex((at) => isOwn(at) || at.tty !== tty);
  const last = above[end];
  return tty === null || last === undefined || isOwn(last) ? [] : above.slice(0, end + 1);
}

function childrenOf(table: ProcessTable): Map<number, ProcessRow[]> {
  const children = new Map<number, ProcessRow[]>();
  for (const row of table.rows) {
    const siblings = children.get(row.parent);
    if (siblings === undefined) children.set(row.parent, [row]);
    else siblings.push(row);
  }
  return children;
}

/** A table is not read in one instant: who is older than its parent has another one, whose pid was used again. */
const isChild = (row: ProcessRow, parent: ProcessRow): boolean => row.startedAt >= parent.startedAt;

function withDescendants(row: ProcessRow, children: ReadonlyMap<number, readonly ProcessRow[]>): ProcessRow[] {
  const found = [row];
  const seen = new Set([row.identity.pid]);
  for (const each of found)
    for (const child of children.get(each.identity.pid) ?? [])
      if (!seen.has(child.identity.pid) && isChild(child, each)) {
        seen.add(child.identity.pid);
        found.push(child);
      }
  return found;
}

/** Nearest first. */
function withAncestors(row: ProcessRow, byPid: ReadonlyMap<number, ProcessRow>): ProcessRow[] {
  const found = [row];
  for (const each of found) {
    const parent = byPid.get(each.parent);
    if (parent !== undefined && isChild(each, parent) && !found.includes(parent)) found.push(parent);
  }
  return found;
}
