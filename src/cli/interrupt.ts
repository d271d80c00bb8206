// agentctl interrupt: ends the turn, keeps the session.
import { signalProcess } from "../control/end.ts";
import { callerOf, guardTarget } from "../control/guard.ts";
import { interruptHosted } from "../control/stop.ts";
import { paneOf, typeInPane } from "../control/tmux.ts";
import { waitFor } from "../control/wait.ts";
import { AgentctlError, exitCodes } from "../core/problem.ts";
import type { Session } from "../core/session.ts";
import type { Command, Context } from "./command.ts";
import { problemLines } from "./render.ts";
import { adapterOf, isHosted } from "./send.ts";
import { clean, sessionJson, statusWord } from "./session-json.ts";
import { lookAroundAtRows, lookAtRows, type Row } from "./sessions.ts";
import { chooseRows, severalFlags } from "./several.ts";

export const interrupt: Command = {
  usage: "agentctl interrupt <ref>… [--json]",
  summary: "Ends the turn of a session and keeps the session.",
  notes: [
    "A headless agent ends with its turn, and its session can be continued (agentctl send). An interface is interrupted",
    "by the key that a person would press, if it is in a tmux pane; elsewhere only its own terminal can do that (exit 5).",
    "Exit codes: 0 no turn is going on now; 6 it still is.",
  ].join("\n"),
  flags: [...severalFlags, { flag: "--json", help: "print JSON: the sessions as they are now" }],
  examples: [["agentctl interrupt painter", "as Esc or Ctrl-C would"]],
  async run(args, context) {
    const all = await lookAroundAtRows(context);
    context.err(problemLines(all.problems));
    const rows = chooseRows(args, all, "interrupt", context).map(({ row }) => row);
    const caller = callerOf(all.around, context.env);
    for (const { session, ref } of rows) guardTarget(session, ref, caller, all.around, all.notes);
    for (const row of rows) if (hasTurn(row.session)) await interruptOne(row, context);
    const keys = new Set(rows.filter(({ session }) => hasTurn(session)).map(({ session }) => keyOf(session)));
    const now = await waitFor({
      look: () => lookAtRows(context),
      isEnough: ({ rows: seen }) => !seen.some(({ session }) => keys.has(keyOf(session)) && hasTurn(session)),
      sessions: ({ rows: seen }) =>
        seen.filter(({ session }) => keys.has(keyOf(session))).map(({ session }) => session),
      timeoutMs: patienceMs,
    });
    const after = rows.map((row) => now.value.rows.find(({ session }) => keyOf(session) === keyOf(row.session)) ?? row);
    if (args.has("--json")) {
      const json = after.map(sessionJson);
      context.out(`${JSON.stringify(clean(rows.length === 1 ? json[0] : json))}\n`);
    } else
      for (const [index, row] of after.entries()) {
        const had = hasTurn(rows[index]?.session ?? row.session);
        context.out(`${row.ref} is ${statusWord(row.session)}${had ? "" : ": no turn was going on"}\n`);
      }
    return now.isEnough ? 0 : exitCodes["timed-out"];
  },
};

const patienceMs = 15_000;

const keyOf = ({ agent, home, id, processes }: Session): string =>
  `${agent}\0${home}\0${id ?? processes[0]?.identity.pid}`;

const hasTurn = ({ status }: Session): boolean => status.state === "running" && status.activity !== "idle";

async function interruptOne(row: Row, context: Context): Promise<void> {
  const { session, ref } = row;
  const adapter = adapterOf(row);
  if (isHosted(row)) {
    await interruptHosted(session, adapter);
    return;
  }
  const [process] = session.processes;
  if (process === undefined) return;
  const way = adapter.invocation.interrupt(process.detail?.argv ?? []);
  if ("signal" in way) {
    checkStrong(row);
    signalProcess(process.identity, way.signal);
    return;
  }
  const pane = await paneOf(process, context.env);
  if (pane === null) {
    const where = process.tty ?? "its terminal";
    const hint = `press ${way.keys} there; agentctl stop ${ref} ends the session`;
    throw new AgentctlError("refused", `${ref} is an interface at ${where}: only there its turn can be interrupted`, {
      hint,
    });
  }
  if (!(await typeInPane(pane, way.keys, context.env)))
    throw new AgentctlError("failed", `cannot type in tmux pane ${pane.name}`);
}

/** Rule 8: who is linked only weakly is not signalled unasked. */
function checkStrong({ session: { status }, ref }: Row): void {
  if (status.state !== "running" || status.owner.kind !== "process") return;
  const { link } = status.owner;
  if (link === "announced" || link === "assigned") return;
  throw new AgentctlError("refused", `${ref}: which process has this session is not sure`, {
    hint: `agentctl why ${ref}`,
  });
}
