// Where a session's terminal is a tmux pane: which one, how to go there, how to type there.
import type { ProcessRow } from "../core/process.ts";
import type { Environment } from "../observe/homes.ts";
import { readProcess } from "../observe/processes.ts";
import { runCommand } from "../sys/spawn.ts";

export interface Pane {
  /** The server's socket; null: the default one. */
  socket: string | null;
  /** "%3" */
  id: string;
  /** "main:2.1", for people. */
  name: string;
  session: string;
}

const patienceMs = 3_000;

/** The panes of many processes at once; only of those that were started inside of tmux. */
export async function panesOf(rows: readonly ProcessRow[], env: Environment): Promise<Map<ProcessRow, Pane>> {
  const listed = new Map<string | null, Promise<Listed[]>>();
  const inside = rows.filter((row) => row.detail?.env?.["TMUX"] !== undefined);
  const found = await Promise.all(inside.map(async (row) => [row, await paneOf(row, env, listed)] as const));
  return new Map(found.flatMap(([row, pane]) => (pane === null ? [] : [[row, pane] as const])));
}

/**
 * The pane whose terminal is the process's own. The variables of its environment only say which server to ask: they are
 * inherited by whatever was started there, and TMUX_PANE decides only where the terminal is not told.
 */
export async function paneOf(
  row: ProcessRow,
  env: Environment,
  listed: Map<string | null, Promise<Listed[]>> = new Map(),
): Promise<Pane | null> {
  if (row.tty === null) return null;
  const of = row.detail?.env ?? {};
  const sockets = new Set([socketIn(of["TMUX"]), socketIn(env["TMUX"]), null]);
  for (const socket of sockets) {
    const asked = listed.get(socket) ?? listPanes(socket, env);
    listed.set(socket, asked);
    const panes = await asked;
    const pane =
      panes.find(({ tty }) => tty === row.tty) ??
      (of["TMUX"] === undefined || socketIn(of["TMUX"]) !== socket ? undefined : nested(panes, row));
    if (pane !== undefined) return { socket, id: pane.id, name: pane.name, session: pane.session };
  }
  return null;
}

/**
 * A terminal inside of the pane's terminal (script, expect). A server that was started anew counts its panes from %0 again, and
 * a window that was opened from a pane is no part of it: only what is below the pane's own process is in it.
 */
function nested(panes: readonly Listed[], row: ProcessRow): Listed | undefined {
  const pane = panes.find(({ id }) => id === row.detail?.env?.["TMUX_PANE"]);
  return pane !== undefined && isBelow(row, pane.pid) ? pane : undefined;
}

function isBelow(row: ProcessRow, pid: number): boolean {
  for (let above: ProcessRow | null = row; above !== null && above.parent > 0; above = readProcess(above.parent))
    if (above.parent === pid) return true;
  return false;
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

async function listPanes(socket: string | null, env: Environment): Promise<Listed[]> {
  const format = "#{pane_tty} #{pane_pid} #{pane_id} #{window_index}.#{pane_index} #{session_name}";
  const { status, text } = await tmux(socket, ["list-panes", "-a", "-F", format], env);
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
  return ["tmux", ...socketWords(pane.socket), "attach-session", "-t", pane.session];
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

const socketWords = (socket: string | null): string[] => (socket === null ? [] : ["-S", socket]);

/** Without tmux on this machine nothing is in one of its panes. */
async function tmux(
  socket: string | null,
  words: readonly string[],
  env: Environment,
): Promise<{ status: number | null; text: string }> {
  try {
    // By TMUX it would ask the server that we are in, not the default one; TMUX_PANE still says which client is ours.
    const { TMUX: own, ...rest } = env;
    const asked = socket === null || socket !== socketIn(own) ? rest : env;
    // -u: in the C locale it would put _ for everything that is not ASCII.
    const command = ["tmux", "-u", ...socketWords(socket), ...words];
    return await runCommand(command, { cwd: "/", env: asked, mostMs: patienceMs });
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return { status: null, text: "" };
    throw error;
  }
}
