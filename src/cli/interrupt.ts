// agentctl interrupt: ends the turn, keeps the session.
import { lookForDueHooks } from "../control/due-hooks.ts";
import { signalProcess } from "../control/end.ts";
import { callerOf, guardTarget } from "../control/guard.ts";
import { interruptHosted } from "../control/hosted.ts";
import { stopSessions } from "../control/stop.ts";
import { lookAround } from "../control/surroundings.ts";
import { paneOf, typeInPane } from "../control/tmux.ts";
import { isLeaving, waitFor } from "../control/wait.ts";
import { launchOf } from "../core/family.ts";
import { AgentctlError, exitCodes } from "../core/problem.ts";
import { isHosted, type Session } from "../core/session.ts";
import { deadlineIn } from "../lib/deadline.ts";
import { jsonLine, oneLine } from "../lib/width.ts";
import { wantedOr, withIds } from "../observe/wanted.ts";
import { adapterOf, checkKnown } from "./acted-row.ts";
import { parseDuration } from "./arguments.ts";
import type { Command, Context } from "./command.ts";
import { problemLines } from "./render.ts";
import { sessionJson, statusWord } from "./session-json.ts";
import { lookAroundAtRows, lookAtRows, type Row, type Rows } from "./sessions.ts";
import { chooseRows, isOne, lookForAll, severalFlags } from "./several.ts";

export const interrupt: Command = {
  usage: "agentctl interrupt <ref>… [--timeout T] [--json]",
  summary: "Ends the turn of a session and keeps the session.",
  notes: [
    "A headless agent ends with its turn, and its session can be continued (agentctl send). An interface is interrupted",
    "by the key that a person would press, if it is in a tmux pane; elsewhere only its own terminal can do that (exit 5).",
    "Exit codes: 0 no turn is going on now; 6 it still is.",
  ].join("\n"),
  flags: [
    ...severalFlags,
    { flag: "--timeout", value: "T", help: "how long its turn may take to end (default: 15s)" },
    { flag: "--json", help: "print JSON: the sessions as they are now" },
  ],
  examples: [["agentctl interrupt painter", "as Esc or Ctrl-C would"]],
  async run(args, context) {
    const { all, wanted } = await lookForAll(args, context, lookAroundAtRows);
    context.err(problemLines(all.problems));
    const rows = chooseRows(args, all, "interrupt", context).map(({ row }) => row);
    const caller = callerOf(all.around, context.env);
    for (const row of rows) {
      const { session, ref } = row;
      guardTarget(session, ref, caller, all.around, all.notes);
      checkKnown(row);
    }
    const patienceMs = parseDuration(args.one("--timeout") ?? "15s", "interrupt");
    // All or nothing: what one of them refuses is found before another one is interrupted.
    const open = rows.filter(({ session }) => hasTurn(session));
    const ways = await Promise.all(open.map((row) => wayFor(row, context)));
    for (const { act } of ways) await act();
    const keys = new Set(open.map(({ session }) => keyOf(session)));
    const mine = (seen: Rows) => seen.rows.map(({ session }) => session).filter((each) => keys.has(keyOf(each)));
    const deadline = deadlineIn(patienceMs);
    // `pid:` and `@self` name nobody who has stopped.
    const later = wantedOr(wanted, withIds(rows.map(({ session }) => session.id)));
    const wait = (timeoutMs: number) =>
      waitFor({
        look: () => lookAtRows(context, later),
        isEnough: (seen) => (mine(seen).some(hasTurn) ? false : mine(seen).some(isLeaving) ? "for now" : true),
        sessions: mine,
        timeoutMs,
      });
    let now = await wait(Math.min(againMs, deadline.remainingMs()));
    while (!now.isEnough && !deadline.isOver()) {
      const still = new Set(mine(now.value).filter(hasTurn).map(keyOf));
      for (const { key, again } of ways) if (still.has(key)) await again();
      now = await wait(Math.min(againMs, deadline.remainingMs()));
    }
    await endTools(ways, now.value.rows, caller.pids, context);
    await lookForDueHooks(context.env, (text) => context.err(`agentctl: ${oneLine(text)}\n`));
    const after = rows.map((row) => now.value.rows.find(({ session }) => keyOf(session) === keyOf(row.session)));
    if (args.has("--json")) {
      const json = after.map((row) => (row === undefined ? null : sessionJson(row)));
      context.out(jsonLine(isOne(args) ? json[0] : json));
    } else
      for (const [index, { ref, session }] of rows.entries()) {
        const word = statusWordOf(after[index]);
        context.out(`${ref} is ${word}${hasTurn(session) ? "" : ": no turn was going on"}\n`);
      }
    return now.isEnough ? 0 : exitCodes["timed-out"];
  },
};

/** Claude 2.1.325 swallows a key in the first moments of a dialog: a key is pressed again, a signal is not sent twice. */
const againMs = 3_000;

interface Way {
  key: string;
  /** That it was launched by, where a signal may cost it its life. */
  launch?: string | null;
  act(): Promise<unknown>;
  again(): Promise<unknown>;
}

const once = async (): Promise<void> => {};

const keyOf = ({ agent, home, id, processes }: Session): string =>
  `${agent}\0${home}\0${id ?? processes[0]?.identity.pid}`;

const hasTurn = ({ status }: Session): boolean => status.state === "running" && status.activity !== "idle";

/** An agent that dies of the signal (OpenCode's `run`) leaves the tool of its turn behind. */
async function endTools(
  ways: readonly Way[],
  rows: readonly Row[],
  callerPids: ReadonlySet<number>,
  { env }: Context,
): Promise<void> {
  const over = ways.flatMap(({ key, launch }) => {
    const session = rows.find((row) => keyOf(row.session) === key)?.session;
    return launch == null || session?.status.state !== "stopped" ? [] : [{ session, launches: [launch] }];
  });
  const options = { graceMs: 1_000, now: false, leftovers: false, server: false };
  if (over.length > 0) await stopSessions(over, options, await lookAround(env), callerPids, env);
}

const statusWordOf = (row: Row | undefined): string => (row === undefined ? "gone" : statusWord(row.session));

/** Throws where there is none. */
async function wayFor(row: Row, context: Context): Promise<Way> {
  const { session, ref } = row;
  const adapter = adapterOf(row);
  const key = keyOf(session);
  if (isHosted(session)) return { key, act: () => interruptHosted(session, adapter), again: once };
  const [process] = session.processes;
  if (process === undefined) throw new Error(`${ref} runs without a process`);
  checkStrong(row);
  // Without a terminal there are no keys to press, whatever its arguments say.
  const wish = adapter.invocation.interrupt(process.detail?.argv ?? [], process.tty);
  const way = process.tty === null && "keys" in wish ? { signal: "SIGINT" as const } : wish;
  if ("signal" in way) {
    const act = async () => {
      for (const { identity } of session.processes) signalProcess(identity, way.signal);
    };
    return { key, launch: launchOf(process), act, again: once };
  }
  const pane = await paneOf(process, context.env);
  if (pane === null) {
    const where = process.tty ?? "its terminal";
    const hint = `press ${way.keys} there; agentctl stop ${ref} ends the session`;
    throw new AgentctlError("refused", `${ref} is an interface at ${where}: only there its turn can be interrupted`, {
      hint,
    });
  }
  const press = async () => {
    if (await typeInPane(pane, way.keys, context.env)) return;
    throw new AgentctlError("failed", `cannot type in tmux pane ${pane.name}`);
  };
  return { key, act: press, again: press };
}

/** Rule 8: who is linked only weakly is not signalled unasked. */
function checkStrong({ session: { id, status }, ref }: Row): void {
  // Without an id it was called by its pid: no other can be meant.
  if (id === null || status.state !== "running" || status.owner.kind !== "process") return;
  const { link } = status.owner;
  if (link === "announced" || link === "assigned") return;
  throw new AgentctlError("refused", `${ref}: which process has this session is not sure`, {
    hint: `agentctl why ${ref}`,
  });
}
