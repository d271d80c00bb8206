// Who belongs to a session and may be ended with it: its owners' descendants and what carries its mark. Everything that
// might be somebody else's is a leftover, with the reason.
import { isLive, type ProcessRow, type ProcessTable, sameProcess } from "./process.ts";
import type { Session } from "./session.ts";

/** How the processes of a session are marked in their environments. */
export interface Marks {
  /** The agent's own variable in what its tools start, by name; null: it sets none. */
  childMark: string | null;
  /** Launches of this session (values of AGENTCTL_TAG), beside those that its live processes carry. */
  launches: readonly string[];
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
  session: Session,
  all: readonly Session[],
  table: ProcessTable,
  marks: Marks,
  callerPids: ReadonlySet<number>,
): Family {
  const hosted = session.status.state === "running" && session.status.owner.kind === "host";
  const owners = hosted ? [] : session.processes;
  const isOwner = (row: ProcessRow): boolean => owners.some((owner) => sameProcess(owner.identity, row.identity));
  const others = ownersOfOthers(session, all);
  const children = childrenOf(table);
  const foreign = new Map<number, string>();
  for (const { row, whose } of others)
    for (const below of withDescendants(row, children)) foreign.set(below.identity.pid, whose);

  const launches = launchesOf(owners, marks);
  const marked = table.rows.filter((row) => isLive(row) && carriesMark(row, session, launches, marks.childMark));
  const related = new Set<ProcessRow>();
  for (const row of [...owners, ...marked]) for (const below of withDescendants(row, children)) related.add(below);
  const inTree = new Set(owners.flatMap((owner) => withDescendants(owner, children)));

  const family: Family = { members: [], leftovers: [] };
  for (const row of related) {
    if (!isLive(row) || isOwner(row) || callerPids.has(row.identity.pid)) continue;
    const why =
      foreign.get(row.identity.pid) ??
      otherLaunch(row, launches) ??
      multiplexer(row) ??
      (inTree.has(row) ? null : (daemon(row) ?? ownTerminal(row)));
    if (why === null) family.members.push(row);
    else family.leftovers.push({ row, why });
  }
  // What lives inside of a multiplexer or a daemon is as little ours as that is.
  const spared = new Map(
    family.leftovers.flatMap((left) => withDescendants(left.row, children).map((row) => [row, left.why] as const)),
  );
  const reachable = family.members.filter((row) => !spared.has(row));
  for (const row of family.members) {
    const why = spared.get(row);
    if (why !== undefined) family.leftovers.push({ row, why: `below a process that stays: ${why}` });
  }
  return { members: reachable, leftovers: family.leftovers };
}

function ownersOfOthers(session: Session, all: readonly Session[]): { row: ProcessRow; whose: string }[] {
  return all.flatMap((other) => {
    if (other === session || (other.id !== null && other.id === session.id && other.agent === session.agent)) return [];
    if (other.status.state !== "running") return [];
    const whose = other.id === null ? `it is a live ${other.agent}` : `it has the session ${other.id}`;
    return other.processes.map((row) => ({ row, whose }));
  });
}

const launchesOf = (owners: readonly ProcessRow[], marks: Marks): Set<string> =>
  new Set([...marks.launches, ...owners.flatMap((row) => row.detail?.env?.["AGENTCTL_TAG"] ?? [])]);

function carriesMark(
  row: ProcessRow,
  { agent, id }: Session,
  launches: ReadonlySet<string>,
  childMark: string | null,
): boolean {
  const env = row.detail?.env ?? {};
  if (launches.has(env["AGENTCTL_TAG"] ?? "")) return true;
  if (id === null) return false;
  return env["AGENTCTL_TAG_SESSION"] === `${agent}:${id}` || (childMark !== null && env[childMark] === id);
}

function otherLaunch(row: ProcessRow, launches: ReadonlySet<string>): string | null {
  const tag = row.detail?.env?.["AGENTCTL_TAG"];
  return tag === undefined || launches.has(tag) ? null : `it belongs to the launch ${tag}`;
}

const multiplexers = /^(tmux|screen|zellij|dtach|abduco|dvtm|shpool)\b/i;

const multiplexer = ({ name }: ProcessRow): string | null =>
  multiplexers.test(name) ? "a terminal multiplexer: people may work in it" : null;

const services =
  /^(ssh-agent|gpg-agent|dbus-daemon|dbus-launch|systemd|dockerd|containerd.*|podman|colima|watchman|sccache|ccache|bazel.*|buck2d|adb|pulseaudio|pipewire|emacs.*|code-server|mosh-server|sshd|Xvfb|Xorg)$/i;

/** Left the tree, and lives as daemons do: in the root directory, or under the name of a known shared service. */
function daemon({ name, detail }: ProcessRow): string | null {
  if (services.test(name)) return "a shared service: others may use it";
  return detail?.cwd === "/" ? "a daemon: it left the session's tree for the root directory" : null;
}

const ownTerminal = ({ tty }: ProcessRow): string | null =>
  tty === null ? null : `it has a terminal of its own: ${tty}`;

function childrenOf(table: ProcessTable): Map<number, ProcessRow[]> {
  const children = new Map<number, ProcessRow[]>();
  for (const row of table.rows) {
    const siblings = children.get(row.parent);
    if (siblings === undefined) children.set(row.parent, [row]);
    else siblings.push(row);
  }
  return children;
}

function withDescendants(row: ProcessRow, children: ReadonlyMap<number, readonly ProcessRow[]>): ProcessRow[] {
  const found = [row];
  const seen = new Set([row.identity.pid]);
  for (const each of found)
    for (const child of children.get(each.identity.pid) ?? [])
      if (!seen.has(child.identity.pid)) {
        seen.add(child.identity.pid);
        found.push(child);
      }
  return found;
}
