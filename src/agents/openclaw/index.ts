// OpenClaw, whose sessions run in its gateway. Its README describes what it writes and answers, and how that was tested.
import type { Adapter } from "../adapter.ts";
import { openclawInvocation } from "./invocation.ts";
import { parseLine, parseRecord } from "./lines.ts";
import { gateway, stateLock } from "./server.ts";
import { isSessionId, store } from "./store.ts";

export const openclaw: Adapter = {
  agent: "openclaw",
  title: "OpenClaw",
  aliases: [],
  command: "openclaw",
  install: "npm install -g openclaw",
  verified: ["2026.9.6"],
  ties: "Its gateway names the sessions that it works on. OpenClaw chooses the id, and the gateway returns it when a session begins.",
  knows:
    "Working, waiting with the question or the command; how each turn ended. Between its turns a session is stopped.",
  unknowable: [
    "A session runs only while its gateway works on it; between its turns it is stopped.",
    "A process without a gateway (openclaw agent --local, openclaw chat) does not say which session it has: sessions written since it started are unknown.",
    "A gateway cannot be asked if its token is neither in its environment nor in openclaw.json, if it uses TLS, or if it does not listen on the loopback address: unknown.",
    "A busy gateway may answer too late: unknown until it answers in time.",
    "A command that OpenClaw runs in the background names no session: it is not shown, and stop does not end it.",
    "If its gateway was killed, a session is cut off; the next gateway may continue it by itself.",
    "A gateway that is shutting down first finishes its turns, for some minutes, and does not answer meanwhile: unknown.",
    "If agentctl run is killed (SIGKILL), its turn continues in the gateway, because no process of agentctl watches the turn.",
    "Sessions on other hosts (cloud workers, paired devices) are shown as the gateway describes them; their processes are not visible.",
  ],
  isId: isSessionId,
  // OpenClaw overwrites its arguments with its command as a title. Processes with these titles may use a data folder or show a session.
  processNames: ["openclaw-gatewa", "openclaw-agent", "openclaw-tui", "openclaw-chat", "openclaw-termin", "openclaw"],
  environment: ["OPENCLAW_STATE_DIR", "OPENCLAW_HOME", "HOME"],
  records: [{ folder: "agents/*/agent", name: /^(?<id>openclaw-agent)\.sqlite$/, assembled: store }],
  lockedFiles: stateLock,
  serversNameBy: "answer",
  server: gateway,
  countsDenied: false,
  countedIn: ['"usage"'],
  /** A command without a gateway locks the data folder: it is a server that does not answer. All other commands are clients of a gateway. */
  role(name, { lockedFiles }) {
    if (!openclaw.processNames.includes(name)) return null;
    return name === "openclaw-gatewa" || lockedFiles.some((path) => stateLock.test(path)) ? "server" : "helper";
  },
  announces: () => false,
  argvId: () => null,
  /** 2026.9.6 treats blanks and these two words as unset. */
  home(env) {
    const given = (key: string): string | null => {
      const value = env[key]?.trim() ?? "";
      return value === "" || value === "undefined" || value === "null" ? null : value;
    };
    const own = given("HOME");
    const whole = (path: string): string => (own === null ? path : path.replace(/^~(?=\/|$)/, own));
    const state = env["OPENCLAW_STATE_DIR"]?.trim() || null;
    const base = given("OPENCLAW_HOME") ?? own;
    return state !== null ? whole(state) : base === null ? null : `${whole(base)}/.openclaw`;
  },
  heldHome: ({ lockedFiles }) => lockedFiles.flatMap((path) => stateLock.exec(path)?.[1] ?? [])[0] ?? null,
  parseRecord,
  parseLine,
  invocation: openclawInvocation,
};
