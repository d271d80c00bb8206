// agentctl compare: the sessions of a group side by side: how they ended, what they cost, what they changed, and whether it works.
import { lstatSync } from "node:fs";
import { resolve } from "node:path";
import { type Beginning, beginningOf, type Changes, changesSince, patchSince } from "../control/changes.ts";
import { runForPerson } from "../control/person-command.ts";
import { interruption } from "../control/start-session.ts";
import { AgentctlError } from "../core/problem.ts";
import { replaceFile } from "../lib/atomic-file.ts";
import { jsonLine, oneLine, plainText } from "../lib/width.ts";
import { failureText } from "../observe/failure.ts";
import type { ShellEnd } from "../sys/spawn.ts";
import { type Arguments, usage } from "./arguments.ts";
import type { Command, Context } from "./command.ts";
import { count } from "./count.ts";
import { type Cell, costText, shortCount, shortDuration, statusColour, table, terminalOf } from "./render.ts";
import { countedJson, statusWord, time } from "./session-json.ts";
import { launchedSessions, lookAtRows, type Row } from "./sessions.ts";

export const compare: Command = {
  usage: "agentctl compare <group> [--check CMD] [--json] [--html FILE]",
  summary:
    "Compares the sessions of a group: outcome, time, tokens, cost, commits, files and lines, and a check of your own.",
  notes: [
    "--check runs in the place of each session, two at a time, and its exit status is shown: 0 is good. Time is from the first",
    "message to the end. Costs that an agent did not write are estimated from a price list.",
  ].join("\n"),
  flags: [
    { flag: "--check", value: "CMD", help: "a shell command that says whether it works, like `npm test`" },
    { flag: "--html", value: "FILE", help: "write one page with bars and the patches side by side" },
    { flag: "--json", help: "print JSON" },
  ],
  examples: [
    ["agentctl compare speed --check 'npm test'", "which one works"],
    ["agentctl compare speed --html speed.html", "to look at"],
  ],
  async run(args, context) {
    const [group, more] = args.words;
    if (group === undefined || more !== undefined) throw usage("compare takes one group", "compare");
    const compared = await look(group, args, context);
    const html = args.one("--html");
    if (html !== null) await writePage(html, group, compared, context);
    if (args.has("--json")) context.out(jsonLine(compared.map(comparedJson)));
    else context.out(comparedTable(compared, context));
    return 0;
  },
};

export interface Compared {
  row: Row;
  wallMs: number | null;
  /** null: nobody can tell; why is said. */
  changes: Changes | null;
  patch: string | null;
  /** Neither a status nor a signal: it could not be run. */
  check: ShellEnd | null;
}

async function look(group: string, args: Arguments, context: Context): Promise<Compared[]> {
  const { rows, at } = await lookAtRows(context, launchedSessions(context));
  const members = rows.filter(({ launch }) => launch?.group === group).reverse();
  if (members.length === 0)
    throw new AgentctlError("not-found", `no session is in the group ${group}`, { hint: "agentctl list -a" });
  const wantsPatch = args.has("--html");
  const compared: Compared[] = [];
  for (const member of members) {
    const row = await count(member, context);
    const { session } = row;
    const end = session.endedAt ?? (session.status.state === "stopped" ? session.updatedAt : at);
    const wallMs = session.startedAt === null || end === null ? null : Math.max(0, end - session.startedAt);
    const beginning = await known(row, context);
    const { changes, unshown } =
      beginning === null ? { changes: null, unshown: [] } : await changesSince(beginning, context.env);
    for (const text of unshown) context.err(`agentctl: ${row.ref}: ${oneLine(text)}\n`);
    const patch = beginning === null || !wantsPatch ? null : (await patchSince(beginning, context.env)).patch;
    compared.push({ row, wallMs, changes, patch, check: null });
  }
  const command = args.one("--check");
  if (command !== null) await checkAll(command, compared, context);
  return compared;
}

async function known(row: Row, context: Context): Promise<Beginning | null> {
  try {
    return await beginningOf(row.session, row.launch, context.env);
  } catch (error) {
    if (!(error instanceof AgentctlError)) throw error;
    context.err(`agentctl: ${row.ref}: ${oneLine(error.message)}\n`);
    return null;
  }
}

const checksAtOnce = 2;

async function checkAll(command: string, compared: Compared[], context: Context): Promise<void> {
  const queue = [...compared];
  const { interrupted, release } = interruption();
  const work = async (): Promise<void> => {
    for (let each = queue.shift(); each !== undefined; each = queue.shift()) {
      const cwd = each.row.session.cwd;
      if (cwd === null) continue;
      context.err(`agentctl: checking ${each.row.ref}\n`);
      each.check = await checked(command, cwd, interrupted, context);
      context.err(`agentctl: ${each.row.ref}: ${checkWord(each.check)}\n`);
    }
  };
  // Each ends its own: nobody goes before the last one has.
  const ends = await Promise.allSettled(Array.from({ length: checksAtOnce }, work));
  release();
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}

async function checked(command: string, cwd: string, interrupted: Promise<never>, { env }: Context): Promise<ShellEnd> {
  try {
    return await runForPerson(command, { cwd, env, interrupted });
  } catch (error) {
    if (error instanceof AgentctlError) throw error;
    return { status: null, signal: null, text: failureText(error) };
  }
}

export function checkWord(check: Compared["check"]): string {
  if (check === null) return "";
  if (check.signal !== null) return `killed (${check.signal})`;
  if (check.status === null) return "could not run";
  return check.status === 0 ? "passed" : `failed (${check.status})`;
}

function comparedTable(compared: readonly Compared[], context: Context): string {
  const hasCheck = compared.some(({ check }) => check !== null);
  const titles = [
    "REF",
    "AGENT",
    "MODEL",
    "STATUS",
    "TIME",
    "TOKENS",
    "COST",
    "DENIED",
    "COMMITS",
    "FILES",
    "LINES",
    ...(hasCheck ? ["CHECK"] : []),
  ];
  const cells = compared.map(({ row, wallMs, changes, check }): Cell[] => {
    const counted = row.counted === undefined ? null : countedJson(row.counted);
    const word = statusWord(row.session);
    return [
      { text: row.launch?.name == null ? row.ref : `${row.ref} ${row.launch.name}` },
      { text: row.session.agent },
      { text: row.session.record?.facts.model ?? "" },
      { text: word, colour: statusColour(word) },
      { text: wallMs === null ? "" : shortDuration(wallMs) },
      { text: counted?.tokens == null ? "" : shortCount(counted.tokens.total) },
      { text: row.counted === undefined ? "" : (costText(row.counted) ?? "") },
      { text: counted?.denied == null ? "" : String(counted.denied) },
      { text: changes === null ? "?" : String(changes.commits) },
      { text: changes === null ? "?" : String(changes.files) },
      { text: changes === null ? "?" : `+${changes.added} -${changes.removed}` },
      ...(hasCheck
        ? [{ text: checkWord(check), colour: check?.status === 0 ? ("green" as const) : ("red" as const) }]
        : []),
    ];
  });
  return table(
    titles.map((title) => ({ title, most: 40 })),
    cells,
    terminalOf(context),
  );
}

export function comparedJson({ row, wallMs, changes, check }: Compared) {
  const { session } = row;
  return {
    id: session.id,
    ref: row.ref,
    agent: session.agent,
    model: session.record?.facts.model ?? null,
    name: row.launch?.name ?? null,
    status: statusWord(session),
    outcome: session.status.state === "stopped" ? session.status.outcome : null,
    startedAt: time(session.startedAt),
    wallMs,
    ...(row.counted === undefined ? {} : countedJson(row.counted)),
    changes,
    check:
      check === null
        ? null
        : { status: check.status, signal: check.signal, output: plainText(check.text).slice(-4000) },
  };
}

async function writePage(path: string, group: string, compared: readonly Compared[], context: Context): Promise<void> {
  const { comparePage } = await import("./compare-page.ts");
  try {
    writeOver(resolve(context.cwd, path), comparePage(group, compared));
  } catch (error) {
    throw new AgentctlError("failed", `cannot write ${path}: ${failureText(error)}`, { cause: error });
  }
  context.err(`agentctl: wrote ${oneLine(path)}\n`);
}

/** A page that was there stays until the new one is whole. Whatever else stands there may lead to a file that is not meant. */
function writeOver(path: string, text: string): void {
  const there = lstatSync(path, { throwIfNoEntry: false });
  if (there?.isSymbolicLink() === true) throw new Error("it is a symbolic link; name the file that it leads to");
  if (there !== undefined && !there.isFile()) throw new Error("it is not a regular file");
  if (there !== undefined && there.uid !== process.geteuid?.()) throw new Error("it belongs to another user");
  replaceFile(path, text);
}
