// Where a session's terminal is a tmux pane: which one, how to go there, how to type there.
import type { ProcessRow } from "../core/process.ts";
import type { Environment } from "../observe/homes.ts";
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
      panes.find(({ tty }) => tty === row.tty) ?? (of["TMUX"] === undefined ? undefined : nested(panes, of, socket));
    if (pane !== undefined) return { socket, id: pane.id, name: pane.name, session: pane.session };
  }
  return null;
}

/** A terminal inside of the pane's terminal (script, ssh to here, another multiplexer). */
const nested = (
  panes: readonly Listed[],
  of: Readonly<Record<string, string>>,
  socket: string | null,
): Listed | undefined => (socketIn(of["TMUX"]) === socket ? panes.find(({ id }) => id === of["TMUX_PANE"]) : undefined);

const socketIn = (tmux: string | undefined): string | null => tmux?.split(",")[0] || null;

interface Listed {
  tty: string;
  id: string;
  session: string;
  name: string;
}

async function listPanes(socket: string | null, env: Environment): Promise<Listed[]> {
  const format = "#{pane_tty}\t#{pane_id}\t#{session_name}\t#{session_name}:#{window_index}.#{pane_index}";
  const { status, text } = await tmux(socket, ["list-panes", "-a", "-F", format], env);
  if (status !== 0) return [];
  return text.split("\n").flatMap((line) => {
    const [tty, id, session, name] = line.split("\t");
    return tty === undefined || id === undefined || session === undefined || name === undefined
      ? []
      : [{ tty, id, session, name }];
  });
}

/** Selects the pane. Inside of the same server the caller's client goes there; else the command that attaches is given back. */
export async function goToPane(pane: Pane, env: Environment): Promise<string[] | null> {
  await tmux(pane.socket, ["select-window", "-t", pane.id, ";", "select-pane", "-t", pane.id], env);
  const inside = env["TMUX"] !== undefined && env["TMUX"] !== "" && (await isSameServer(pane, env));
  if (!inside) return ["tmux", ...socketWords(pane.socket), "attach-session", "-t", pane.session];
  await tmux(pane.socket, ["switch-client", "-t", pane.id], env);
  return null;
}

async function isSameServer(pane: Pane, env: Environment): Promise<boolean> {
  const own = socketIn(env["TMUX"]);
  if (own === pane.socket) return true;
  const { text } = await tmux(pane.socket, ["display-message", "-p", "#{socket_path}"], env);
  return text.trim() === own;
}

export async function typeInPane(pane: Pane, key: string, env: Environment): Promise<boolean> {
  return (await tmux(pane.socket, ["send-keys", "-t", pane.id, key], env)).status === 0;
}

const socketWords = (socket: string | null): string[] => (socket === null ? [] : ["-S", socket]);

/** Without tmux on this machine nothing is in one of its panes. */
async function tmux(
  socket: string | null,
  words: readonly string[],
  env: Environment,
): Promise<{ status: number | null; text: string }> {
  try {
    return await runCommand(["tmux", ...socketWords(socket), ...words], { cwd: "/", env, mostMs: patienceMs });
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return { status: null, text: "" };
    throw error;
  }
}
