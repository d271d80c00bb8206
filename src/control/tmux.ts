// Finds the tmux pane of a session, goes there, and types there. A tmux server can make its client run anything, so only a server
// of this user is asked: an ancestor of the session's process, through a socket that other users cannot replace.

import { isMultiplexer } from "../core/family.ts";
import { isSuspended, type ProcessRow } from "../core/process.ts";
import { errorCode, isError, tryOr } from "../lib/errors.ts";
import { ownUid } from "../observe/files.ts";
import type { Environment } from "../observe/homes.ts";
import { listenerAt, unswappablePath } from "../observe/own-socket.ts";
import { readAncestors, readProcess } from "../observe/processes.ts";
import { runCommand } from "../sys/spawn.ts";

export interface Pane {
  socket: string;
  /** "%3" */
  id: string;
  /** "main:2.1", for people. */
  name: string;
  session: string;
}

const lookMs = 1_000;
const actMs = 3_000;

/** Answers that were received before, by socket. */
interface AskedBefore {
  panes: Map<string, Promise<ListedPane[]>>;
  servers: Map<string, ProcessRow | null>;
}

const nothingAsked = (): AskedBefore => ({ panes: new Map(), servers: new Map() });

/** The panes of many processes at once; only for processes that were started in tmux. */
export async function panesOf(rows: readonly ProcessRow[], env: Environment): Promise<Map<ProcessRow, Pane>> {
  const asked = nothingAsked();
  const inside = rows.filter((row) => row.detail?.env?.["TMUX"] !== undefined);
  const found = await Promise.all(inside.map(async (row) => [row, await paneOf(row, env, asked)] as const));
  return new Map(found.flatMap(([row, pane]) => (pane === null ? [] : [[row, pane] as const])));
}

/**
 * The pane with the terminal of the process. Its variables only say which server to ask, because every descendant inherits them.
 * TMUX_PANE decides only if no pane has the terminal.
 */
export async function paneOf(row: ProcessRow, env: Environment, asked = nothingAsked()): Promise<Pane | null> {
  const { detail, tty } = row;
  if (tty === null || detail === null || !detail.ours || detail.confinement !== null) return null;
  const own = socketIn(detail.env?.["TMUX"]);
  const ancestors = readAncestors(row);
  // A suspended server never answers, so do not connect to it.
  if (ancestors.some((each) => isMultiplexer(each) && isSuspended(each))) return null;
  const above = new Set(ancestors.map(({ identity }) => identity.pid));
  for (const named of new Set([own, socketIn(env["TMUX"]), defaultSocket(env)])) {
    const socket = named === null ? null : unswappablePath(named);
    const server = socket === null ? null : serverBehind(socket, asked);
    if (socket === null || server === null || !above.has(server.identity.pid)) continue;
    const listing = asked.panes.get(socket) ?? listPanes(socket, env);
    asked.panes.set(socket, listing);
    const panes = await listing;
    const pane = panes.find((each) => each.tty === tty) ?? (named === own ? nested(panes, row) : undefined);
    if (pane !== undefined) return { socket, id: pane.id, name: pane.name, session: pane.session };
  }
  return null;
}

/** The process that listens on the socket, if it is ours, in our namespaces, and not suspended (then it would never answer). */
function serverBehind(socket: string, { servers }: AskedBefore): ProcessRow | null {
  const known = servers.get(socket);
  if (known !== undefined) return known;
  const listener = listenerAt(socket);
  const pid = listener.kind === "listener" ? listener.pid : 0;
  const row = pid > 0 ? tryOr(null, () => readProcess(pid, "with details"), isError) : null;
  const mayBeAsked = row?.detail?.ours === true && row.detail.confinement === null && !isSuspended(row);
  const server = mayBeAsked ? row : null;
  servers.set(socket, server);
  return server;
}

/** The socket that tmux uses without -L and -S. */
const defaultSocket = (env: Environment): string => `${env["TMUX_TMPDIR"] || "/tmp"}/tmux-${ownUid}/default`;

/**
 * For a terminal inside the pane's terminal (script, expect). A restarted server numbers its panes from %0 again, and a window
 * that was opened from a pane inherits TMUX_PANE: so the process must be a descendant of the pane's own process.
 */
function nested(panes: readonly ListedPane[], row: ProcessRow): ListedPane | undefined {
  const pane = panes.find(({ id }) => id === row.detail?.env?.["TMUX_PANE"]);
  const isBelow = (pid: number): boolean => readAncestors(row).some(({ identity }) => identity.pid === pid);
  return pane !== undefined && isBelow(pane.pid) ? pane : undefined;
}

const socketIn = (tmux: string | undefined): string | null => tmux?.split(",")[0] || null;

interface ListedPane {
  tty: string;
  /** The process that the pane was opened with. */
  pid: number;
  id: string;
  session: string;
  name: string;
}

async function listPanes(socket: string, env: Environment): Promise<ListedPane[]> {
  const format = "#{pane_tty} #{pane_pid} #{pane_id} #{window_index}.#{pane_index} #{session_name}";
  const { status, text } = await tmux(socket, ["list-panes", "-a", "-F", format], env, lookMs);
  if (status !== 0) return [];
  return text.split("\n").flatMap((line) => {
    const [, tty, pid, id, place, session] = /^(\S+) (\d+) (%\d+) (\S+) (.*)$/.exec(line) ?? [];
    return tty === undefined || id === undefined || session === undefined
      ? []
      : [{ tty, pid: Number(pid), id, session, name: `${session}:${place}` }];
  });
}

/** Selects the pane, and switches the caller's client if it is in the same server. Otherwise returns the command that attaches. */
export async function goToPane(pane: Pane, env: Environment): Promise<string[] | null> {
  await tmux(pane.socket, ["select-window", "-t", pane.id, ";", "select-pane", "-t", pane.id], env);
  const isInside = isInTmux(env) && (await isSameServer(pane, env));
  // Fails if no client is attached.
  if (isInside && (await tmux(pane.socket, ["switch-client", "-t", pane.id], env)).status === 0) return null;
  return ["tmux", "-S", pane.socket, "attach-session", "-t", pane.session];
}

export const isInTmux = (env: Environment): boolean => Boolean(env["TMUX"]);

async function isSameServer(pane: Pane, env: Environment): Promise<boolean> {
  const own = socketIn(env["TMUX"]);
  if (own === pane.socket) return true;
  const { text } = await tmux(pane.socket, ["display-message", "-p", "#{socket_path}"], env);
  return text.trim() === own;
}

/** Leaves tmux's copy mode first: it would take the key instead of the program. */
export async function typeInPane(pane: Pane, key: string, env: Environment): Promise<boolean> {
  const leave = ["if-shell", "-F", "-t", pane.id, "#{pane_in_mode}", `send-keys -t ${pane.id} -X cancel`];
  return (await tmux(pane.socket, [...leave, ";", "send-keys", "-t", pane.id, key], env)).status === 0;
}

/** Fails without an error if tmux is not installed. */
async function tmux(
  socket: string,
  words: readonly string[],
  env: Environment,
  maxMs = actMs,
): Promise<{ status: number | null; text: string }> {
  try {
    // TMUX names the server that we are in, so drop it for another server. TMUX_PANE still identifies our client.
    const { TMUX: own, ...rest } = env;
    const asked = socket !== socketIn(own) ? rest : env;
    // -u: in the C locale tmux would print _ for every character that is not ASCII.
    return await runCommand(["tmux", "-u", "-S", socket, ...words], { cwd: "/", env: asked, maxMs });
  } catch (error) {
    if (errorCode(error) === "ENOENT") return { status: null, text: "" };
    throw error;
  }
}
