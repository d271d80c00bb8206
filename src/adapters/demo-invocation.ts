// How the demo agent is started, continued and ended.
import type { Invocation, Order } from "./invocation.ts";

export const demoInvocation: Invocation = {
  chooseId: (uuid) => uuid,
  promptBy: "stdin",
  headless: (order) => ["demo-agent", "-p", ...sessionFlags(order), ...commonFlags(order), ...order.extra],
  interface: (order) => ["demo-agent", ...sessionFlags(order), ...commonFlags(order), ...order.extra, "idle"],
  environmentFor: (home) => ({ DEMO_AGENT_HOME: home }),
  scrubbed: /^DEMO_AGENT_SESSION$/,
  childMark: "DEMO_AGENT_SESSION",
  announcedIn: () => null,
  permissions: {
    read: { flags: ["--permission", "read"], meaning: "it edits nothing and runs nothing" },
    edit: { flags: ["--permission", "edit"], meaning: "it edits files and runs nothing" },
    bypass: { flags: ["--permission", "bypass"], meaning: "it edits files and runs commands" },
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

function sessionFlags(order: Order): string[] {
  if (order.kind === "continue") return ["--resume", order.session];
  const chosen = order.session === null ? [] : ["--session-id", order.session];
  return order.kind === "new" ? chosen : [...chosen, "--parent", order.from];
}

const commonFlags = ({ model, permission }: Order): string[] => [
  ...(model === null ? [] : ["--model", model]),
  ...(permission === null ? [] : demoInvocation.permissions[permission].flags),
];
