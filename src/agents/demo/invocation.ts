// How the demo agent is started, continued and ended.
import { type Argv, argv } from "../argv.ts";
import { commonFlags, type Invocation, type Order, sessionFlags, stopStep } from "../invocation.ts";

export const demoInvocation: Invocation = {
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
