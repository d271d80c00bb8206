// The processes that are ended with a session: descendants of its owners, and processes that carry its tag. A process that may
// belong to another session or to a person is a leftover, with the reason.
import { isLive, type ProcessRow, type ProcessTable, sameProcess, withAncestors } from "./process.ts";
import type { SpareReason } from "./reason.ts";
import { isSameSession, isServed, type Kin, type Session } from "./session.ts";
import { isHeadless, windowKind } from "./windows.ts";

/** Everything besides parents and children that shows to which session a process belongs. */
export interface FamilySigns {
  /** For each agent, the variable that gives its tools the id of the session. */
  sessionVariables: ReadonlyMap<string, string>;
  /** Launches of this session (values of AGENTCTL_TAG), beside those that its live processes carry. */
  launches: readonly string[];
  isServer?(row: ProcessRow): boolean;
  /** Is it a process of the agent itself, for example a helper? */
  isOfAgent?(row: ProcessRow, agent: string): boolean;
  /** The libraries that it has loaded, as /proc/PID/maps lists them; empty: not known. */
  readMaps?(row: ProcessRow): string;
}

export interface Leftover {
  row: ProcessRow;
  why: SpareReason;
}

export interface Family {
  /** Descendants of the owners, and tagged processes; without the owners themselves. */
  members: ProcessRow[];
  leftovers: Leftover[];
}

export function familyOf(
  session: Kin,
  all: readonly Session[],
  table: ProcessTable,
  signs: FamilySigns,
  callerPids: ReadonlySet<number>,
): Family {
  const isOwn = (row: ProcessRow): boolean => session.processes.some((own) => sameProcess(own.identity, row.identity));
  // A server has many sessions: its descendants are ours only if they carry our tag.
  const owners = isServed(session) ? [] : table.rows.filter(isOwn);
  const others = all.filter((other) => other.status.state === "running" && !isSameSession(other, session));
  const otherOwners = new Map(
    others.flatMap((other) => other.processes.map(({ identity }) => [identity.pid, ownedBy(other)] as const)),
  );
  const launches = new Set([...signs.launches, ...owners.flatMap((row) => launchToEnd(row) ?? [])]);
  const tagged = table.rows.filter((row) => isLive(row) && carriesTag(row, session, launches, signs));
  const children = Map.groupBy(table.rows, ({ parent }) => parent);
  const related = new Set([...owners, ...tagged].flatMap((row) => withDescendants(row, children)));
  const byPid = new Map(table.rows.map((row) => [row.identity.pid, row]));

  /** The first answer on the way up, from the process itself to the nearest of our owners. */
  const nearest = (row: ProcessRow, ask: (at: ProcessRow) => SpareReason | null): SpareReason | null => {
    for (const at of chainAbove(row, byPid)) {
      if (isOwn(at)) return null;
      const why = ask(at);
      if (why !== null)
        return at === row || why.code === "below-spared-process" ? why : { code: "below-spared-process", why };
    }
    return null;
  };
  const servers = (row: ProcessRow): SpareReason | null =>
    signs.isServer?.(row) === true ? { code: "serves-other-sessions" } : null;
  /** The process and its ancestors below the nearest of our owners. */
  const upToOwn = (row: ProcessRow): ProcessRow[] => {
    const path = chainAbove(row, byPid);
    const end = path.findIndex(isOwn);
    return end === -1 ? path : path.slice(0, end);
  };
  const window = (row: ProcessRow): SpareReason | null => {
    const kind = windowKind(row, (each) => signs.readMaps?.(each) ?? "");
    return kind === null || upToOwn(row).some(isHeadless) ? null : { code: "window", kind };
  };
  /** The agent and its helpers create terminals for tools; other programs create them for people. */
  const isKeptByAgent = (row: ProcessRow): boolean => {
    const keeper = chainAbove(row, byPid).find((at) => isOwn(at) || at.tty !== row.tty);
    return keeper !== undefined && (isOwn(keeper) || signs.isOfAgent?.(keeper, session.agent) === true);
  };
  /** A launch from inside the session removes its variable; a tag beside the variable is that of an outer session. */
  const otherLaunch = (row: ProcessRow): SpareReason | null => {
    const tag = tagOf(row);
    if (tag === null || launches.has(tag) || isToolOf(row, session, signs)) return null;
    return owners.some((owner) => tagOf(owner) === tag) ? null : { code: "of-launch", launch: tag };
  };
  /** Other sessions that ours does not run inside of. */
  const unrelated = others.filter((other) => !owners.some((owner) => isToolOf(owner, other, signs)));
  const otherTool = (row: ProcessRow): SpareReason | null => {
    const id = unrelated.find((other) => isToolOf(row, other, signs))?.id ?? null;
    return id === null ? null : { code: "of-session", id };
  };
  /** Its ancestors on the same terminal and the first one that is not on it; none if the agent created the terminal. */
  const terminalHolders = (row: ProcessRow): ProcessRow[] => {
    const [, ...above] = chainAbove(row, byPid);
    const end = above.findIndex((at) => isOwn(at) || at.tty !== row.tty);
    const last = above[end];
    return row.tty === null || last === undefined || isOwn(last) ? [] : above.slice(0, end + 1);
  };
  const isBelowOwn = (row: ProcessRow): boolean => chainAbove(row, byPid).some(isOwn);
  const left = new Map<ProcessRow, SpareReason>();
  const candidates = [...related].filter((row) => isLive(row) && !isOwn(row) && !callerPids.has(row.identity.pid));
  for (const row of candidates) {
    const why =
      nearest(row, (at) => otherOwners.get(at.identity.pid) ?? multiplexer(at) ?? servers(at) ?? window(at)) ??
      otherLaunch(row) ??
      (isBelowOwn(row) ? null : (otherTool(row) ?? daemon(row))) ??
      (isBelowOwn(row) && isKeptByAgent(row) ? null : ownTerminal(row));
    if (why !== null) left.set(row, why);
  }
  // Killing the owner of the other end, or the session leader, hangs up this terminal.
  for (const [row] of [...left])
    for (const at of terminalHolders(row))
      if (candidates.includes(at) && !left.has(at))
        left.set(at, { code: "terminal-depends-on-it", pid: row.identity.pid });
  // Descendants of spared processes are spared, too.
  const below = candidates.flatMap((row): [ProcessRow, SpareReason][] => {
    const why = left.has(row) ? null : nearest(row, (at) => left.get(at) ?? null);
    return why === null ? [] : [[row, why]];
  });
  const leftovers = [...left, ...below].map(([row, why]) => ({ row, why }));
  const spared = new Set(leftovers.map(({ row }) => row));
  return { members: candidates.filter((row) => !spared.has(row)), leftovers };
}

export const ownedBy = ({ id, agent }: Session): SpareReason =>
  id === null ? { code: "live-agent", agent } : { code: "has-session", id };

const tagOf = ({ detail }: ProcessRow): string | null => detail?.env?.["AGENTCTL_TAG"] ?? null;

/** The launch that this process was started for. Outside of the holder's kernel session the tag was only inherited. */
export const launchOf = (row: ProcessRow): string | null =>
  row.detail?.env?.["AGENTCTL_TAG_SID"] === String(row.session) ? tagOf(row) : null;

/** The launch that ends with this owner. A sandboxed process could name any launch, so its tag is not believed. */
export const launchToEnd = (row: ProcessRow): string | null =>
  row.detail?.confinement === null ? launchOf(row) : null;

/** If another user owns the record of a session, its id makes no process of ours a member, unless a process of ours has it. */
const mayBeOf = ({ detail }: ProcessRow, { recordOwner = null, processes }: Kin): boolean =>
  recordOwner === null ||
  recordOwner === detail?.uid ||
  processes.some((owner) => owner.detail?.uid != null && owner.detail.uid === detail?.uid);

function carriesTag(row: ProcessRow, session: Kin, launches: ReadonlySet<string>, signs: FamilySigns): boolean {
  const env = row.detail?.env ?? {};
  if (launches.has(env["AGENTCTL_TAG"] ?? "")) return true;
  const isNamed = session.id !== null && env["AGENTCTL_TAG_SESSION"] === `${session.agent}:${session.id}`;
  return (isNamed || isToolOf(row, session, signs)) && mayBeOf(row, session);
}

function isToolOf({ detail }: ProcessRow, { agent, id }: Kin, { sessionVariables }: FamilySigns): boolean {
  const variable = sessionVariables.get(agent);
  return id !== null && variable !== undefined && detail?.env?.[variable] === id;
}

const multiplexers = /^(tmux|screen|zellij|dtach|abduco|dvtm|shpool)\b/i;

export const isMultiplexer = ({ name }: ProcessRow): boolean => multiplexers.test(name);

const multiplexer = (row: ProcessRow): SpareReason | null => (isMultiplexer(row) ? { code: "multiplexer" } : null);

const services =
  /^(ssh-agent|gpg-agent|dbus-daemon|dbus-launch|systemd|dockerd|containerd.*|podman|colima|watchman|sccache|ccache|bazel.*|buck2d|adb|pulseaudio|pipewire|emacs.*|code-server|mosh-server|sshd|Xvfb|Xorg)$/i;

/** It has left the tree and looks like a daemon: in the root directory, or named like a known shared service. */
function daemon({ name, detail }: ProcessRow): SpareReason | null {
  if (services.test(name)) return { code: "shared-service" };
  return detail?.cwd === "/" ? { code: "daemon" } : null;
}

const ownTerminal = ({ tty }: ProcessRow): SpareReason | null => (tty === null ? null : { code: "has-terminal", tty });

/** A table is not read in one instant: a process older than its parent has another parent, whose pid was reused. */
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

const chainAbove = (row: ProcessRow, byPid: ReadonlyMap<number, ProcessRow>): ProcessRow[] =>
  withAncestors(row, (each) => {
    const parent = byPid.get(each.parent);
    return parent !== undefined && isChild(each, parent) ? parent : null;
  });
