// agentctl compare: the sessions of a group side by side, as a table, JSON or a page.
import { lstatSync } from "node:fs";
import { resolve } from "node:path";
import { Failure } from "../core/failure.ts";
import { replaceFile } from "../lib/atomic-file.ts";
import { jsonLine, oneLine } from "../lib/width.ts";
import { failureOf } from "../observe/failure.ts";
import { type Compared, comparedJson, compare as compareSessions } from "../service/compare.ts";
import { countedJson, statusWord } from "../service/session-json.ts";
import type { ShellEnd } from "../sys/spawn.ts";
import { usage } from "./arguments.ts";
import type { Command, Context } from "./command.ts";
import { interruptible } from "./interruption.ts";
import { type Cell, costText, shortCount, shortDuration, statusColour, table, terminalOf } from "./render.ts";
import { callOf } from "./service-call.ts";

export const compare: Command = {
  usage: "agentctl compare GROUP [--check CMD] [--json] [--html FILE]",
  summary: "Compare the sessions of a group: outcome, time, tokens, cost, commits, files, lines, and your own check.",
  notes: [
    "--check runs in the directory of each session, two at a time; exit code 0 means passed. TIME runs from the first message",
    "to the end. A cost that the agent did not record is estimated from a price list.",
  ].join("\n"),
  flags: [
    { flag: "--check", value: "CMD", help: "shell command that tests the work, like `npm test`" },
    { flag: "--html", value: "FILE", help: "write one page with all patches side by side" },
    { flag: "--json", help: "JSON output" },
  ],
  examples: [
    ["agentctl compare speed --check 'npm test'", "which sessions pass"],
    ["agentctl compare speed --html speed.html", "for a browser"],
  ],
  async run(args, context) {
    const [group, more] = args.words;
    if (group === undefined || more !== undefined) throw usage("compare takes one group", "compare");
    const html = args.one("--html");
    const request = { group, check: args.one("--check"), wantsPatches: html !== null };
    const onCheck = (ref: string, end: ShellEnd | null): void =>
      context.err(`agentctl: ${end === null ? `checking ${ref}` : `${ref}: ${checkWord(end)}`}\n`);
    const compared =
      request.check === null
        ? await compareSessions(request, callOf(context), onCheck)
        : await interruptible((signal) => compareSessions(request, callOf(context, signal), onCheck));
    for (const { row, remarks } of compared)
      for (const remark of remarks) context.err(`agentctl: ${row.ref}: ${oneLine(remark)}\n`);
    if (html !== null) await writePage(html, group, compared, context);
    context.out(args.has("--json") ? jsonLine(compared.map(comparedJson)) : comparedTable(compared, context));
    return 0;
  },
};

export function checkWord({ signal, status }: ShellEnd): string {
  if (signal !== null) return `killed (${signal})`;
  if (status === null) return "could not run";
  return status === 0 ? "passed" : `failed (${status})`;
}

function comparedTable(compared: readonly Compared[], context: Context): string {
  const hasCheck = compared.some(({ check }) => check !== null);
  const titles = ["REF", "AGENT", "MODEL", "STATUS", "TIME", "TOKENS", "COST", "DENIED", "COMMITS", "FILES", "LINES"];
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
      { text: counted === null ? "" : (costText(counted) ?? "") },
      { text: String(counted?.denied ?? "") },
      { text: String(changes?.commits ?? "?") },
      { text: String(changes?.files ?? "?") },
      { text: changes === null ? "?" : `+${changes.added} -${changes.removed}` },
      { text: check === null ? "" : checkWord(check), colour: check?.status === 0 ? "green" : "red" },
    ];
  });
  const columns = [...titles, ...(hasCheck ? ["CHECK"] : [])].map((title) => ({ title, most: 40 }));
  return table(columns, cells, terminalOf(context));
}

async function writePage(path: string, group: string, compared: readonly Compared[], context: Context): Promise<void> {
  const { comparePage } = await import("./compare-page.ts");
  writeOver(path, comparePage(group, compared), context);
  context.err(`agentctl: wrote ${oneLine(path)}\n`);
}

/** An earlier page stays until the new one is complete. A link is not followed: it may lead to any file. */
function writeOver(path: string, text: string, { cwd }: Context): void {
  const absolute = resolve(cwd, path);
  try {
    const there = lstatSync(absolute, { throwIfNoEntry: false });
    if (there?.isSymbolicLink() === true) throw new Error("it is a symbolic link; name the file that it leads to");
    if (there !== undefined && !there.isFile()) throw new Error("it is not a regular file");
    if (there !== undefined && there.uid !== process.geteuid?.()) throw new Error("it belongs to another user");
    replaceFile(absolute, text);
  } catch (error) {
    throw new Failure("write-failed", { path, detail: failureOf(error), variable: null }, { cause: error });
  }
}
