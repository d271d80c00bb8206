// The built-in scripted agent. Its README describes what it writes; src/demo/agent.ts is the agent itself.
import type { Announcement, ServedSession } from "../../core/evidence.ts";
import type { RequestAnswer } from "../../core/failure.ts";
import { type ProblemDetail, type Reading, read, unread } from "../../core/problem.ts";
import type { Adapter, Talk } from "../adapter.ts";
import { announcementFiles } from "../announcements.ts";
import { type Argv, argv, baseName, flagValue } from "../argv.ts";
import { type Fields, fieldsOf, isUuid, listIn, textIn, uuidIn, uuidOrNull } from "../fields.ts";
import { commonFlags, type Invocation, type Order, sessionFlags, stopStep } from "../invocation.ts";
import { parseLine, parseRecord, questionIn } from "./lines.ts";

const demoInvocation: Invocation = {
  chooseId: (uuid) => uuid,
  promptBy: "stdin",
  headless: (order) => argv`demo-agent -p ${sessionWords(order)} ${commonFlags(order, demoInvocation)}`,
  interface: (order) => argv`demo-agent ${sessionWords(order)} ${commonFlags(order, demoInvocation)} idle`,
  environmentFor: (home) => ({ DEMO_AGENT_HOME: home }),
  scrubbed: /^DEMO_AGENT_SESSION$/,
  sessionVariable: "DEMO_AGENT_SESSION",
  announcedIn: () => null,
  permissions: {
    read: { flags: argv`--permission read`, effect: "changes-nothing" },
    edit: { flags: argv`--permission edit`, effect: "edits-no-commands" },
    bypass: { flags: argv`--permission bypass`, effect: "edits-and-runs" },
  },
  ownSetting: { files: () => [], judge: () => ({ mode: null, effect: "edits-and-runs", isBypass: true }) },
  startFailures: [],
  stopSignals: [stopStep("SIGINT", 5_000), stopStep("SIGTERM", 5_000)],
  interrupt: () => ({ signal: "SIGINT" }),
};

const sessionWords = (order: Order): Argv => sessionFlags(order, (from, chosen) => argv`${chosen} --parent ${from}`);

export const demo: Adapter = {
  agent: "demo",
  title: "Demo agent (built in)",
  aliases: [],
  command: "agentctl",
  install: "it is part of agentctl: try `agentctl demo`",
  verified: ["1"],
  ties: "Its file live/<pid>.json names the process and its session; with --no-announce its arguments or, weakly, its directory.",
  knows: "Working, waiting with the question, idle; how each turn ended.",
  unknowable: [
    "With --no-announce it writes no such file: then its session is found by its arguments or, weakly, by its directory.",
  ],
  isId: isUuid,
  processNames: ["demo-agent", "agentctl"],
  environment: ["DEMO_AGENT_HOME", "HOME"],
  records: [{ folder: "sessions", name: /^(?<id>[0-9a-f-]{36})\.jsonl$/ }],
  announcements: announcementFiles("demo", "live", "session", announced),
  serversNameBy: "answer",
  server: {
    at: { folder: "servers", name: /^(?<pid>[1-9][0-9]{0,9})\.sock$/ },
    transport: "plain",
    sessions: () => ({ opening: ["?\n"], next: (heard) => ({ answer: parseServerAnswer(heard.join("")) }) }),
    send: (id, text) => talk(`message ${id} ${JSON.stringify(text)}`),
    interrupt: (id) => talk(`interrupt ${id}`),
  },
  countsDenied: true,
  countedIn: ['"tokens"', '"denied"'],
  role(name, { argv }) {
    const own = argv === null ? null : ownArguments(argv);
    if (own === null) return name === "demo-agent" ? "agent" : null;
    return own[0] === "serve" ? "server" : "agent";
  },
  announces: ({ argv }) => argv === null || !ownArguments(argv)?.includes("--no-announce"),
  argvId: (argv) => uuidOrNull(flagValue(ownArguments(argv) ?? [], "--session-id", "--resume")),
  home: (env) => env["DEMO_AGENT_HOME"] || (env["HOME"] ? `${env["HOME"]}/.demo-agent` : null),
  parseRecord,
  parseLine,
  invocation: demoInvocation,
};

/** The arguments after `demo-agent`, which is a link to the binary, a command (`agentctl demo-agent`) or a script. */
function ownArguments(argv: readonly string[]): readonly string[] | null {
  for (const index of [0, 1]) if (baseName(argv[index] ?? "") === "demo-agent") return argv.slice(index + 1);
  return null;
}

function announced(fields: Fields): Partial<Announcement> {
  const text = (key: string): string | null => textIn(fields, key);
  return { start: text("start"), boot: text("boot"), namespace: text("namespace"), cwd: text("cwd") };
}

function parseServerAnswer(text: string): Reading<ServedSession[]> {
  try {
    const answer = fieldsOf(JSON.parse(text)) ?? {};
    if (!Array.isArray(answer["sessions"])) return silent({ code: "answer-unknown-shape" });
    const sessions = listIn(answer, "sessions").flatMap((fields): ServedSession[] => {
      const id = uuidIn(fields, "id");
      const activity = (["working", "waiting", "idle"] as const).find((known) => known === fields["activity"]);
      const waiting = fieldsOf(fields["waiting"]);
      return id === null
        ? []
        : [{ id, activity: activity ?? "unclear", waiting: waiting && questionIn(waiting, null) }];
    });
    return read(sessions);
  } catch (error) {
    return silent({ code: "answer-not-json", text: String(error) });
  }
}

const silent = (detail: ProblemDetail): Reading<never> =>
  unread({ code: "server-silent", agent: "demo", source: "", detail });

const talk = (request: string): Talk<RequestAnswer> => ({
  opening: [`${request}\n`],
  next: (heard) => ({ answer: answerIn(heard.join("").trim()) }),
});

function answerIn(text: string): Reading<RequestAnswer> {
  if (text === "interrupted" || text === "no-turn" || text === "begun") return read(text);
  return silent(text === "" ? { code: "no-answer", request: "" } : { code: "server-refused", text });
}
