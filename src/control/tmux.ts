// Where a session's terminal is a tmux pane: which one, how to go there, how to type there. A tmux server can make its client run
// anything, so only a server of ours is asked: one that is above the session's own process, over a socket that others cannot swap.

import { isMultiplexer } from "../core/family.ts";
import { isSuspended, type ProcessRow } from "../core/process.ts";
import { ancestorsOf } from "../observe/ancestors.ts";
import { ownUid } from "../observe/files.ts";
import type { Environment } from "../observe/homes.ts";
import { listenerAt, unswappablePath } from "../observe/own-socket.ts";
import { readProcess } from "../observe/processes.ts";
import { runCommand } from "../sys/spawn.ts";

export interface Pane {
  /** The server's socket. */
  socket: string;
  /** "%3" */
  id: string;
  /** "main:2.1", for people. */
  name: string;
  session: string;
}

/** For looking, and for acting. */
const lookMs = 1_000;
const actMs = 3_000;

/** What was asked before, in the same look: servers by their sockets. */
interface Asked {
  panes: Map<string, Promise<Listed[]>>;
  servers: Map<string, ProcessRow | null>;
}

const nothingAsked = (): Asked => ({ panes: new Map(), servers: new Map() });

/** The panes of many processes at once; only of those that were started inside of tmux. */
export async function panesOf(rows: readonly ProcessRow[], env: Environment): Promise<Map<ProcessRow, Pane>> {
  const asked = nothingAsked();
  const inside = rows.filter((row) => row.detail?.env?.["TMUX"] !== undefined);
  const found = await Promise.all(inside.map(async (row) => [row, await paneOf(row, env, asked)] as const));
  return new Map(found.flatMap(([row, pane]) => (pane === null ? [] : [[row, pane] as const])));
}

/**
 * The pane whose terminal is the process's own. The variables of its environment only say which server to ask: they are
 * inherited by whatever was started there, and TMUX_PANE decides only where the terminal is not told.
 */
export async function paneOf(row: ProcessRow, env: Environment, asked = nothingAsked()): Promise<Pane | null> {
  const { detail, tty } = row;
  if (tty === null || detail === null || !detail.ours || detail.confinement !== null) return null;
  const own = socketIn(detail.env?.["TMUX"]);
  const ancestors = ancestorsOf(row);
  // A suspended server would never answer: it is not even connected to.
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

/** The process that listens there, if it is wholly ours, lives in our namespaces, and is not suspended: then it would never answer. */
function serverBehind(socket: string, { servers }: Asked): ProcessRow | null {
  const known = servers.get(socket);
  if (known !== undefined) return known;
  const listener = listenerAt(socket);
  const row = listener.kind === "listener" && listener.pid > 0 ? processOf(listener.pid) : null;
  const mayBeAsked = row?.detail?.ours === true && row.detail.confinement === null && !isSuspended(row);
  const server = mayBeAsked ? row : null;
  servers.set(socket, server);
  return server;
}

function processOf(pid: number): ProcessRow | null {
  try {
    return readProcess(pid, "with details");
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return null;
  }
}

/** Where tmux itself looks without -L and -S. */
const defaultSocket = (env: Environment): string => `${env["TMUX_TMPDIR"] || "/tmp"}/tmux-${ownUid}/default`;

/**
 * A terminal inside of the pane's terminal (script, expect). A server that was started anew counts its panes from %0 again, and
 * a window that was opened from a pane is no part of it: only what is below the pane's own process is in it.
 */
function nested(panes: readonly Listed[], row: ProcessRow): Listed | undefined {
  const pane = panes.find(({ id }) => id === row.detail?.env?.["TMUX_PANE"]);
  const isBelow = (pid: number): boolean => ancestorsOf(row).some(({ identity }) => identity.pid === pid);
  return pane !== undefined && isBelow(pane.pid) ? pane : undefined;
}

const socketIn = (tmux: string | undefined): string | null => tmux?.split(",")[0] || null;

interface Listed {
  tty: string;
  /** Of what the pane was opened with. */
  pid: number;
  id: string;
  session: string;
  name: string;
}

async function listPanes(socket: string, env: Environment): Promise<Listed[]> {
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

/** Selects the pane. Inside of the same server the caller's client goes there; where it cannot, the command that attaches is given back. */
export async function goToPane(pane: Pane, env: Environment): Promise<string[] | null> {
  await tmux(pane.socket, ["select-window", "-t", pane.id, ";", "select-pane", "-t", pane.id], env);
  const isInside = isInTmux(env) && (await isSameServer(pane, env));
  // Without a client (nobody is attached) there is nobody to take there.
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

/** Who scrolls back there would get the key instead of the program: tmux's own modes are left first. */
export async function typeInPane(pane: Pane, key: string, env: Environment): Promise<boolean> {
  const leave = ["if-shell", "-F", "-t", pane.id, "#{pane_in_mode}", `send-keys -t ${pane.id} -X cancel`];
  return (await tmux(pane.socket, [...leave, ";", "send-keys", "-t", pane.id, key], env)).status === 0;
}

/** Without tmux on this machine nothing is in one of its panes. */
async function tmux(
  socket: string,
  words: readonly string[],
  env: Environment,
  mostMs = actMs,
): Promise<{ status: number | null; text: string }> {
  try {
    // TMUX is of the server that we are in; TMUX_PANE still says which client is ours.
    const { TMUX: own, ...rest } = env;
    const asked = socket !== socketIn(own) ? rest : env;
    // -u: in the C locale it would put _ for everything that is not ASCII.
    return await runCommand(["tmux", "-u", "-S", socket, ...words], { cwd: "/", env: asked, mostMs });
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return { status: null, text: "" };
    throw error;
  }
}
