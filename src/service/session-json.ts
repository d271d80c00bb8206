// The JSON that the contract promises for a session. Text from records loses its escape sequences on the way.
import { adapterNamed } from "../agents/registry.ts";
import type { HookKind } from "../control/hooks/hook-run.ts";
import { type ReadNote, wantsHooks } from "../control/notes.ts";
import type { Session } from "../core/session.ts";
import { plainValue } from "../lib/width.ts";
import type { Counted } from "../observe/usage/cost.ts";
import { conflictText, reasonText } from "../words/reasons.ts";
import type { SessionRow } from "./look.ts";

export function sessionJson(row: SessionRow) {
  const { session, ref, launch } = row;
  const { status, record } = session;
  const owner = status.state === "running" ? status.owner : null;
  const identities = session.processes.map((row) => row.identity);
  return plainValue({
    id: session.id,
    ref,
    agent: session.agent,
    home: session.home,
    state: status.state,
    activity: status.state === "running" ? status.activity : null,
    outcome: status.state === "stopped" ? status.outcome : null,
    status: statusWord(session),
    reason: session.reason === null ? null : reasonText(session.reason),
    reasonCode: session.reason?.code ?? null,
    since: time(session.since),
    waiting: waitingJson(session),
    background: session.background,
    link: owner?.kind === "process" ? owner.link : owner === null ? null : "announced",
    process: identities[0] ?? null,
    processes: identities.length > 1 ? identities : [],
    served: owner?.kind === "server",
    // The old name of `served`, kept until 1.0.
    hosted: owner?.kind === "server",
    tty: session.processes[0]?.tty ?? null,
    tmux: row.tmux ?? null,
    cwd: session.cwd,
    branch: record?.facts.branch ?? null,
    model: record?.facts.model ?? null,
    title: record?.facts.title ?? null,
    prompt: record?.facts.prompt?.slice(0, 200) ?? null,
    agentVersion: record?.facts.agentVersion ?? null,
    permission: record?.facts.permission ?? null,
    startedAt: time(session.startedAt),
    updatedAt: time(session.updatedAt),
    endedAt: time(session.endedAt),
    parent: session.parent,
    continuedBy: session.continuedBy,
    ...countedJson(row.counted ?? countedInTail(session)),
    conflicts: session.conflicts.map(conflictText),
    name: launch?.name ?? null,
    labels: launch?.labels ?? {},
    launch:
      launch === null || launch.byHand === true
        ? null
        : {
            id: launch.id,
            name: launch.name,
            group: launch.group,
            labels: launch.labels,
            spec: launch.spec,
            worktree: launch.worktree,
            exit: launch.exit,
            hooks: hooksJson(launch),
          },
  });
}

/** null: the launch has no hooks. */
function hooksJson({ hooks, hookRuns }: ReadNote) {
  if (!wantsHooks(hooks)) return null;
  const one = (kind: HookKind) => {
    const [command, run] = [hooks[kind], hookRuns[kind]];
    if (command === null) return null;
    const { state, begunAt, endedAt, status, timedOut, late, attempts, problem } = run ?? notBegun;
    return { command, state, begunAt, endedAt, status, timedOut, late, attempts, problem };
  };
  return { start: one("start"), exit: one("exit") };
}

const notBegun = {
  ...{ state: "pending", begunAt: null, endedAt: null, status: null },
  ...{ timedOut: false, late: false, attempts: 0, problem: null },
};

/** One word for people; never "running", and in the first seconds of a process not "unclear". */
export function statusWord({ status, reason }: Pick<Session, "status" | "reason">): string {
  if (status.state === "running") return reason?.code === "starting" ? "starting" : status.activity;
  return status.state === "stopped" ? (status.outcome ?? "stopped") : "unknown";
}

function waitingJson({ waiting }: Session) {
  return waiting && { kind: waiting.kind, text: waiting.text, tool: waiting.tool, options: waiting.options };
}

export const countedJson = ({ denied, tokens, costUsd, costSource }: Counted) => ({
  denied,
  tokens: tokens && { ...tokens, total: tokens.input + tokens.output + tokens.cacheRead + tokens.cacheWrite },
  costUsd,
  costSource,
});

/** The counts that are at the end of a record; tokens only if the adapter says that its records have totals there. */
function countedInTail({ agent, record }: Session): Counted {
  const { denied = null, tokens = null, costUsd = null } = record?.facts ?? {};
  const hasTokens = adapterNamed(agent)?.tokensInTail === true;
  return { denied, tokens: hasTokens ? tokens : null, costUsd, costSource: costUsd === null ? null : "agent" };
}

/** null also for a time outside the range of a date: a record may contain any number. */
export const time = (ms: number | null): string | null =>
  ms === null || !(Math.abs(ms) <= 8.64e15) ? null : new Date(ms).toISOString();
