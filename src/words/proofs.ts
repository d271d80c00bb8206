// The words for every proof of a status, for the rules that proofs name, and for the events that would change a status.
import type { Fact, StatusTrigger } from "../core/proof.ts";
import type { StatusReason, TruthRule } from "../core/reason.ts";
import type { Link } from "../core/session.ts";
import { detailText } from "./problems.ts";
import { counted, reasonText, type Sentences, sentenceFor, staleText } from "./reasons.ts";

/** What kind of fact it is, in a word or two, and its value. */
export const factText = (fact: Fact): { fact: string; value: string } => ({
  fact: factNames[fact.code] ?? fact.code.replaceAll("-", " "),
  value: sentenceFor(values, fact),
});

/** The names that are not simply the code. */
const factNames: Partial<Record<Fact["code"], string>> = {
  "agent-says": "the agent says",
  "stale-announcement": "announcement",
  "record-unreadable": "record",
  "store-incomplete": "record",
  "no-record": "record",
  "broken-lines": "record",
};

const links: Record<Link, string> = {
  announced: "the process announced this session itself",
  assigned: "agentctl started the process for this session (environment tag, same kernel session)",
  argv: "the process was started with this session id in its arguments",
  cwd: "matched by directory (weak): the only process without a known session here, and the only record newer than it",
};

const values: Sentences<Fact> = {
  process: ({ pid, name, state, start, isSuspended }) =>
    `pid ${pid} (${name}) is ${isSuspended ? "suspended" : "alive"}, state ${state}, start ${start}`,
  link: ({ link, start, announced }) => {
    if (announced === null) return links[link];
    const told = announced.start === null ? "no start" : `start ${announced.start}`;
    const boot = announced.boot === null ? "" : ", this boot";
    return `${links[link]}: it wrote pid ${announced.pid}, ${told}${boot}; the kernel says start ${start}`;
  },
  "agent-says": ({ activity }) => activity,
  server: ({ activity }) =>
    activity === null ? "the server holds the lock of this session" : `the server lists it: ${activity}`,
  dialog: ({ waiting }) => waiting.text ?? waiting.kind,
  "stale-announcement": ({ why }) => `stale: ${staleText(why)}`,
  "no-owner": ({ agent, processes, pids }) => {
    const others =
      pids.length === 0
        ? `no ${agent} process is running`
        : `running ${agent} processes (${pids.join(", ")}) have other sessions or none`;
    return `all ${processes} processes were read; ${others}`;
  },
  "not-proven": ({ why }) => reasonText(why),
  turn: ({ turn, asks }) => {
    if (turn.state === "none") return "no prompt recorded";
    if (turn.state === "unclear") return `unclear: ${reasonText(turn.why)}`;
    if (turn.state === "closed") return `ended, outcome ${turn.outcome ?? "not recorded"}`;
    const why: StatusReason | null = asks === null ? turn.doubt : { code: "waiting", kind: asks };
    return `open: ${why === null ? "no end recorded" : reasonText(why)}`;
  },
  "record-unreadable": ({ detail }) => detailText(detail),
  "store-incomplete": ({ detail }) => `its data directory was read only in part: ${detailText(detail)}`,
  "no-record": ({ isHomeKnown }) => (isHomeKnown ? "none yet" : "none: its data directory is not known"),
  "broken-lines": ({ count }) => `${counted(count, "broken line")} skipped`,
};

export const triggerText = (trigger: StatusTrigger): string => triggers[trigger];

const triggers: Record<StatusTrigger, string> = {
  "agent-asks": "the agent asks a person: waiting",
  "agent-is-answered": "the question is answered: working",
  "owner-becomes-clear": "it is clear which process has it, or that none does: running or stopped",
  "process-exits": "the process exits: stopped",
  "prompt-is-recorded": "a new prompt is recorded: working",
  resumed: "a live process opens it again (resume): running",
  "server-drops-it": "the server no longer lists it: stopped",
  "turn-becomes-clear": "the record says how far the turn is: working, waiting or idle",
  "turn-end-is-recorded": "the record gets an end of turn: idle",
  "turn-ends": "the turn ends: idle",
};

/** Each rule in half a sentence; docs/truth.md has them whole. */
export const ruleText: Record<TruthRule, string> = {
  R1: "a session is running if and only if a live process (pid, start and boot) has it, or its server lists it",
  R2: "stopped needs proof: everything was read and no process has the session; if a file cannot be read, it is unknown",
  R3: "idle needs a recorded end of turn, waiting needs a question that the agent recorded or its server reports; time alone changes nothing",
  R9: "links have a strength: announced, assigned, by arguments, by directory; the strongest one wins",
  R10: "an announcement from another pid namespace or host proves nothing unless that very process is seen",
  R13: "a file counts for processes of its owner, a file of this user for every process; a sandbox only for itself",
};
