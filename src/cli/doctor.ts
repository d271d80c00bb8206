// agentctl doctor: what works here, what does not, and what to do about it.
import { accessSync, constants, statSync } from "node:fs";
import { adapters } from "../adapters/registry.ts";
import { findProgram, installedVersion } from "../control/binary.ts";
import { agentctlHome, readNotes } from "../control/notes.ts";
import { type Conflicts, conflictsOf } from "../control/radar.ts";
import { deriveSessions } from "../core/derive.ts";
import type { Evidence } from "../core/evidence.ts";
import type { Problem } from "../core/problem.ts";
import { jsonLine, oneLine } from "../lib/width.ts";
import { failureText, isGone } from "../observe/failure.ts";
import { observe } from "../observe/observe.ts";
import { cacheProblems } from "../observe/record-cache.ts";
import type { Command, Context } from "./command.ts";
import { conflictText, unseenText } from "./conflicts.ts";
import { paint, terminalOf, withTilde } from "./render.ts";

interface Check {
  what: string;
  ok: boolean;
  found: string;
  /** What a person can do; null where nothing needs doing. */
  advice: string | null;
  /** The problem that this check already speaks of. */
  about?: Problem;
}

export const doctor: Command = {
  usage: "agentctl doctor [--json]",
  summary: "Says what works here, what does not, and what to do.",
  notes: "Exit code 0: every status can be told. 8: some are unknown, or something could not be read.",
  words: "none",
  flags: [{ flag: "--json", help: "print JSON" }],
  examples: [["agentctl doctor", "before you trust the list"]],
  async run(args, context) {
    const { evidence } = await observe({ adapters, env: context.env });
    const checks = [
      ...processChecks(evidence),
      ...storeChecks(evidence),
      ...versionChecks(evidence, context),
      ...gitChecks(context),
      ...ownChecks(context),
    ];
    const { problems, complete, sessions } = deriveSessions(evidence, adapters);
    const told = new Set(checks.map((check) => check.about));
    checks.push(
      ...[...problems, ...cacheProblems(context.env)].filter((problem) => !told.has(problem)).map(problemCheck),
    );
    checks.push(...conflictChecks(await conflictsOf(sessions, context.env)));
    const unknown = sessions.filter(({ status }) => status.state === "unknown").length;
    if (unknown > 0)
      checks.push({
        what: "statuses",
        ok: false,
        found: `${counted(unknown, "session")} unknown`,
        advice: "agentctl why <ref>",
      });
    const answer = { complete, checks: checks.map(({ about, ...check }) => check) };
    if (args.has("--json")) context.out(jsonLine(answer));
    else context.out(checks.map((check) => checkText(check, context)).join(""));
    return complete && unknown === 0 ? 0 : 8;
  },
};

function conflictChecks({ conflicts, unseen }: Conflicts): Check[] {
  const what = "conflict";
  const advice = "agentctl diff shows what each of them did";
  const found = conflicts.map((conflict) => ({ what, ok: true, found: conflictText(conflict, new Map()), advice }));
  const slow = "run git status there: it may be slow, or wait for something that its configuration names";
  return unseen.length === 0
    ? found
    : [...found, { what: "conflicts", ok: true, found: unseenText(unseen), advice: slow }];
}

function processChecks({ processes }: Evidence): Check[] {
  const what = "process table";
  if (!processes.ok)
    return [
      {
        what,
        ok: false,
        found: processes.problem.message,
        about: processes.problem,
        advice: "without it every session without a proof is unknown; is /proc mounted for this pid namespace?",
      },
    ];
  const { rows, gaps, hidden, namespace } = processes.value;
  const checks: Check[] = [
    { what, ok: gaps.length === 0, found: `${counted(rows.length, "process")} read`, advice: null },
  ];
  if (!namespace.initial)
    checks.push({
      what: "pid namespace",
      ok: true,
      found: "we are inside one: processes outside of it are invisible",
      advice:
        "sessions whose data is shared from outside show as unknown when no owner is visible; run agentctl outside for those",
    });
  if (hidden.length > 0)
    checks.push({
      what: "hidden processes",
      ok: false,
      found: `pids ${hidden.join(", ")} exist but may not be looked at`,
      advice: "/proc is mounted with hidepid: run as the same user, or ask for gid=",
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
      unknown > 0 ? `${counted(unknown, "line")} of a kind that these rules do not know` : null,
      broken > 0 ? `${broken} broken lines passed over` : null,
    ].filter((extra) => extra !== null);
    return {
      what: `${store.agent} records`,
      ok: store.listing.ok && unreadable === 0,
      found: store.listing.ok
        ? [`${counted(store.rows.length, "session")} in ${store.home}`, ...extras].join(", ")
        : `${store.listing.problem.source}: ${store.listing.problem.message}`,
      advice: store.listing.ok ? null : "its stopped sessions are not shown until this folder can be read",
      ...(store.listing.ok ? {} : { about: store.listing.problem }),
    };
  });

/** Another version than those that the rules were seen to hold for is worth a word; only a shape that they do not know changes an answer. */
const versionChecks = ({ stores }: Evidence, { env }: Context): Check[] =>
  adapters.flatMap((adapter) => {
    const recorded = stores.filter(({ agent }) => agent === adapter.agent).flatMap(({ rows }) => rows);
    const versions = recorded.flatMap(({ reading }) => (reading.ok ? (reading.value.facts.agentVersion ?? []) : []));
    const installed = installedVersion(adapter, env);
    const newer = [...new Set([...versions, ...(installed === null ? [] : [installed])])]
      .filter((version) => adapter.verified.every((known) => isNewer(version, known)))
      .sort((a, b) => (isNewer(a, b) ? 1 : -1));
    if (newer.length === 0) return [];
    return {
      what: `${adapter.agent} version`,
      ok: true,
      found: `${newer.join(", ")} is newer than what agentctl was tried with (${adapter.verified.join(", ")})`,
      advice:
        "its answers hold as long as its files have the known shape; where they do not, they say unclear or unknown",
    };
  });

/** "1.10.0" is newer than "1.9.3": number by number. What is no number counts as none. */
function isNewer(a: string, b: string): boolean {
  const [left, right] = [a, b].map((version) => version.split(/[.+-]/).map((part) => Number.parseInt(part, 10) || 0));
  for (let index = 0; index < Math.max(left?.length ?? 0, right?.length ?? 0); index += 1) {
    const difference = (left?.[index] ?? 0) - (right?.[index] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return false;
}

/** No status needs it. */
const gitChecks = ({ env }: Context): Check[] =>
  findProgram("git", env) !== null
    ? []
    : [
        {
          what: "git",
          ok: true,
          found: "not in PATH",
          advice: "without it agentctl worktree, launch --worktree and diff fail, and compare cannot say what changed",
        },
      ];

function ownChecks({ env }: Context): Check[] {
  const home = agentctlHome(env);
  const what = "agentctl's own notes";
  try {
    const stat = statSync(home);
    if (!stat.isDirectory())
      return [{ what, ok: false, found: `${home} is not a folder`, advice: "set AGENTCTL_HOME to a folder" }];
    const mode = stat.mode & 0o077;
    accessSync(home, constants.R_OK | constants.W_OK);
    const { notes, problems } = readNotes(env);
    const open: Check[] =
      mode === 0 ? [] : [{ what, ok: false, found: `${home} is open to other users`, advice: `chmod 700 ${home}` }];
    return [
      { what, ok: true, found: `${notes.length} in ${home}`, advice: null },
      ...open,
      ...problems.map(problemCheck),
    ];
  } catch (error) {
    if (isGone(error)) return [{ what, ok: true, found: "none (that changes no status)", advice: null }];
    return [{ what, ok: false, found: failureText(error), advice: `check the permissions of ${home}` }];
  }
}

const counted = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? "" : noun.endsWith("s") ? "es" : "s"}`;

const problemCheck = ({ code, source, message }: Problem): Check => ({
  what: code,
  ok: false,
  found: `${source}: ${message}`,
  advice: "docs/errors.md explains this code",
});

function checkText({ what, ok, found, advice }: Check, context: Context): string {
  const terminal = terminalOf(context);
  const mark = ok ? paint("ok", "green", terminal) : paint("!!", "red", terminal);
  const line = `${mark}  ${oneLine(what)}: ${withTilde(oneLine(found), context)}\n`;
  return advice === null ? line : `${line}    ${oneLine(advice)}\n`;
}
