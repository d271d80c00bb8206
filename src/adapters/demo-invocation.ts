// How the demo agent is started, continued and ended.
import { type Argv, argv, handedOn, noWords } from "./argv.ts";
import { type Invocation, modelAndPermission, type Order } from "./invocation.ts";

export const demoInvocation: Invocation = {
  chooseId: (uuid) => uuid,
  promptBy: "stdin",
  headless: (order) => argv`demo-agent -p ${sessionFlags(order)} ${commonFlags(order)} ${handedOn(order.extra)}`,
  interface: (order) => argv`demo-agent ${sessionFlags(order)} ${commonFlags(order)} ${handedOn(order.extra)} idle`,
  environmentFor: (home) => ({ DEMO_AGENT_HOME: home }),
  scrubbed: /^DEMO_AGENT_SESSION$/,
  childMark: "DEMO_AGENT_SESSION",
  announcedIn: () => null,
  permissions: {
    read: { flags: argv`--permission read`, meaning: "it edits nothing and runs nothing" },
    edit: { flags: argv`--permission edit`, meaning: "it edits files and runs nothing" },
    bypass: { flags: argv`--permission bypass`, meaning: "it edits files and runs commands" },
  },
  ownSetting: {
    files: () => [],
    judge: () => ({ meaning: "it edits files and runs commands, as its script says", isBypass: true }),
  },
  refuses: () => null,
  startFailures: [],
  stopSignals: [
    { signal: "SIGINT", patienceMs: 5_000 },
    { signal: "SIGTERM", patienceMs: 5_000 },
  ],
  ownStop: () => null,
  interrupt: () => ({ signal: "SIGINT" }),
};

function sessionFlags(order: Order): Argv {
  if (order.kind === "continue") return argv`--resume ${order.session}`;
  const chosen = order.session === null ? noWords : argv`--session-id ${order.session}`;
  return order.kind === "new" ? chosen : argv`${chosen} --parent ${order.from}`;
}

const commonFlags = (order: Order): Argv => modelAndPermission(order, demoInvocation);
