// agentctl doctor: checks what agentctl can read and use on this host.
import type { Evidence } from "../core/evidence.ts";
import type { Problem } from "../core/problem.ts";
import { jsonLine, oneLine } from "../lib/width.ts";
import { checkHealth, type Health, type NotesHealth } from "../service/health.ts";
import { detailText, problemText } from "../words/problems.ts";
import type { Command, Context } from "./command.ts";
import { conflictText, unseenText } from "./conflicts.ts";
import { paint, terminalOf, withTilde } from "./render.ts";

interface Check {
  what: string;
  ok: boolean;
  found: string;
  /** What a person can do; null if nothing needs to be done. */
  advice: string | null;
  /** The problem that this check reports; it is not reported twice. */
  about?: Problem;
}

export const doctor: Command = {
  usage: "agentctl doctor [--json]",
  summary: "Check this host: what works, what does not, and what to do.",
  notes: "Exit code 0: every status is known. 8: some statuses are unknown, or something could not be read.",
  words: "none",
  flags: [{ flag: "--json", help: "JSON output" }],
  examples: [["agentctl doctor", "before you rely on the list"]],
  async run(args, context) {
    const health = await checkHealth(context.env);
    const { evidence, list, conflicts } = health;
    const checks = [
      ...processChecks(evidence),
      ...storeChecks(evidence),
      ...agentChecks(health),
      ...toolChecks(health),
      ...notesChecks(health.notes),
    ];
    const reported = new Set(checks.map((check) => check.about));
    checks.push(...health.problems.filter((problem) => !reported.has(problem)).map(problemCheck));
    checks.push(...conflictChecks(conflicts));
    const unknown = list.sessions.filter(({ status }) => status.state === "unknown").length;
    if (unknown > 0) {
      const found = `the status of ${counted(unknown, "session")} is unknown`;
      checks.push({ what: "statuses", ok: false, found, advice: "agentctl why <ref> explains a status" });
    }
    const answer = { complete: list.complete, checks: checks.map(({ about, ...check }) => check) };
    if (args.has("--json")) context.out(jsonLine(answer));
    else context.out(checks.map((check) => checkText(check, context)).join(""));
    return list.complete && unknown === 0 ? 0 : 8;
  },
};

function processChecks({ processes }: Evidence): Check[] {
  const what = "process table";
  if (!processes.ok) {
    const { problem } = processes;
    const advice = "sessions without other proof are unknown; check that /proc is mounted in this pid namespace";
    return [{ what, ok: false, found: problemText(problem), about: problem, advice }];
  }
  const { rows, gaps, hidden, namespace } = processes.value;
  const checks: Check[] = [
    { what, ok: gaps.length === 0, found: `${counted(rows.length, "process")} read`, advice: null },
  ];
  if (!namespace.initial)
    checks.push({
      what: "pid namespace",
      ok: true,
      found: "agentctl runs inside a pid namespace and cannot see processes outside",
      advice: "sessions of processes outside are unknown here; for those, run agentctl outside",
    });
  if (hidden.length > 0)
    checks.push({
      what: "hidden processes",
      ok: false,
      found: `pids ${hidden.join(", ")} exist but cannot be read`,
      advice: "/proc is mounted with hidepid: run agentctl as the same user, or mount it with gid=",
    });
  return checks;
}

const storeChecks = ({ stores }: Evidence): Check[] =>
  stores.map((store) => {
    const unreadable = store.rows.filter((row) => !row.reading.ok).length + (store.nameless ?? []).length;
    const broken = store.rows.reduce((sum, { reading }) => sum + (reading.ok ? reading.value.skippedLines : 0), 0);
    const unknown = store.rows.reduce((sum, { reading }) => sum + (reading.ok ? reading.value.unknownLines : 0), 0);
    const extras = [
      unreadable > 0 ? `${unreadable} cannot be read` : null,
      unknown > 0 ? `${counted(unknown, "line")} of an unknown kind skipped` : null,
      broken > 0 ? `${counted(broken, "broken line")} skipped` : null,
    ].filter((extra) => extra !== null);
    return {
      what: `${store.agent} records`,
      ok: store.listing.ok && unreadable === 0,
      found: store.listing.ok
        ? [`${counted(store.rows.length, "session")} in ${store.home}`, ...extras].join(", ")
        : `${store.listing.problem.source}: ${problemText(store.listing.problem)}`,
      advice: store.listing.ok ? null : "its stopped sessions are not shown until this folder can be read",
      ...(store.listing.ok ? {} : { about: store.listing.problem }),
    };
  });

/** A newer version than the tested ones is worth a warning. Only records of an unknown shape change an answer. */
const agentChecks = ({ agents }: Health): Check[] =>
  agents.flatMap(({ agent, binary, version, verified, newer }) => {
    const installed =
      binary === null ? [] : [{ what: agent, ok: true, found: `${version ?? "?"} in ${binary}`, advice: null }];
    if (newer.length === 0) return installed;
    const found = `${newer.join(", ")} is newer than the versions that agentctl was tested with (${verified.join(", ")})`;
    const advice = "statuses are right while its files keep their shape; otherwise they are unclear or unknown";
    return [...installed, { what: `${agent} version`, ok: true, found, advice }];
  });

const withoutTool = {
  tmux: "without it agentctl attach and interrupt cannot reach sessions in tmux panes",
  git: "without it agentctl worktree, launch --worktree and diff fail, and compare cannot show changes",
};

/** No status needs these programs. */
const toolChecks = ({ tools }: Health): Check[] =>
  tools.map(({ name, path, version }) =>
    path === null
      ? { what: name, ok: true, found: "not in PATH", advice: withoutTool[name] }
      : { what: name, ok: true, found: `${version ?? "?"} in ${path}`, advice: null },
  );

function notesChecks(notes: NotesHealth): Check[] {
  const what = "agentctl's own notes";
  if (notes.state === "none") return [{ what, ok: true, found: "none; no status needs them", advice: null }];
  const { home } = notes;
  if (notes.state === "not-a-folder")
    return [{ what, ok: false, found: `${home} is not a folder`, advice: "set AGENTCTL_HOME to a folder" }];
  if (notes.state === "unreadable")
    return [{ what, ok: false, found: notes.message, advice: `check the permissions of ${home}` }];
  const open = { what, ok: false, found: `other users can read ${home}`, advice: `chmod 700 ${home}` };
  return [
    { what, ok: true, found: `${notes.count} in ${home}`, advice: null },
    ...(notes.isOpenToOthers ? [open] : []),
    ...notes.problems.map(problemCheck),
  ];
}

function conflictChecks({ conflicts, unseen }: Health["conflicts"]): Check[] {
  const advice = "agentctl diff <ref> shows what each of them changed";
  const slow = "run git status there: it may be slow, or wait for a program that its configuration names";
  return [
    ...conflicts.map((each) => ({ what: "conflict", ok: true, found: conflictText(each, new Map()), advice })),
    ...(unseen.length === 0 ? [] : [{ what: "conflicts", ok: true, found: unseenText(unseen), advice: slow }]),
  ];
}

const counted = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? "" : noun.endsWith("s") ? "es" : "s"}`;

const problemCheck = ({ code, source, detail }: Problem): Check => ({
  what: code,
  ok: false,
  found: `${source}: ${detailText(detail)}`,
  advice: "docs/errors.md explains this code",
});

function checkText({ what, ok, found, advice }: Check, context: Context): string {
  const terminal = terminalOf(context);
  const mark = ok ? paint("ok", "green", terminal) : paint("!!", "red", terminal);
  const line = `${mark}  ${oneLine(what)}: ${withTilde(oneLine(found), context)}\n`;
  return advice === null ? line : `${line}    ${oneLine(advice)}\n`;
}
