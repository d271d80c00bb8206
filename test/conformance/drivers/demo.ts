// Plays schedules with the built-in agent: `agentctl demo-agent`, told by stdin, read by its record.
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Driver, Order, Place, Sign, Step } from "../driver.ts";

export const demoDriver: Driver = {
  agent: "demo",
  lacks: {},
  environment: ({ home, agentHome }) => ({ HOME: home, DEMO_AGENT_HOME: agentHome }),
  command: (place, order) => [
    place.binary,
    "demo-agent",
    ...options(order),
    ...order.steps.map((step) => stepText(place, step)),
  ],
  forking,
  release: (place, name) => writeFileSync(goFile(place, name), ""),
  answer: (text) => `${text}\n`,
  prompt: (text) => `${text}\n`,
  sign: (place, id) => signs[lastType(recordPath(place, id))] ?? null,
  turns: (place, id) => readFileSync(recordPath(place, id), "utf8").split('\n{"type":"end"').length - 1,
  recorded: (place) =>
    existsSync(join(place.agentHome, "sessions"))
      ? readdirSync(join(place.agentHome, "sessions")).map((name) => name.replace(/\.jsonl$/, ""))
      : [],
  outcomes: { SIGINT: "interrupted", SIGTERM: "cut-off", SIGHUP: "cut-off", SIGKILL: "cut-off" },
  waiting: (kind, text) => ({ kind, text, tool: kind === "permission" ? "shell" : null, options: ["yes", "no"] }),
  server: {
    command: ({ binary }) => [binary, "demo-agent", "serve"],
    isReady: ({ agentHome }, pid) => existsSync(join(agentHome, "servers", `${pid}.sock`)),
    start: (id, text) => `start ${id} ${text}\n`,
    ask: (id, text) => `ask ${id} ${text}\n`,
    end: (id) => `end ${id}\n`,
  },
};

const options = ({ id, resume, silent, parent }: Order): string[] => [
  ...(id === null ? [] : [resume ? "--resume" : "--session-id", id]),
  ...(silent ? ["--no-announce"] : []),
  ...(parent === undefined ? [] : ["--parent", parent]),
];

function stepText(place: Place, step: Step): string {
  switch (step.do) {
    case "prompt":
      return `prompt:${step.text}`;
    case "work":
      // Ends with the throw-away folder, too: a tool outlives its agent.
      return `tool:until [ -e ${quoted(goFile(place, step.name))} ] || [ ! -d ${quoted(place.root)} ]; do sleep 0.02; done`;
    case "run":
      return `tool:${underOwnName(place, step.command).map(quoted).join(" ")}`;
    case "ask":
      return `ask:${step.kind}:${step.text}`;
    case "end":
      return `end:${step.outcome}`;
    case "stay":
      return "idle";
  }
}

/** As a command of agentctl it would run no tools inside of another agent's session; under its own name it is any agent. */
function underOwnName({ root, binary }: Place, command: readonly string[]): readonly string[] {
  const [program, , ...words] = command;
  if (program !== binary) return command;
  const link = join(root, "own-name", "demo-agent");
  mkdirSync(dirname(link), { recursive: true });
  if (!existsSync(link)) symlinkSync(binary, link);
  return [link, ...words];
}

/** A shell forks for `( … )` and runs nothing in its place. It ends with the throw-away folder. */
function forking({ root }: Place, id: string): { command: string[]; hasForked(): boolean } {
  const script = join(root, "demo-agent");
  const child = `: >"$0.forked"; while [ -e "$0" ]; do sleep 0.02; done`;
  writeFileSync(script, `#!/bin/sh\n( ${child} ) &\nwait\n`, { mode: 0o755 });
  return { command: [script, "--session-id", id], hasForked: () => existsSync(`${script}.forked`) };
}

const goFile = ({ root }: Place, name: string): string => join(root, `go-${name}`);

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

const recordPath = ({ agentHome }: Place, id: string): string => join(agentHome, "sessions", `${id}.jsonl`);

const signs: Record<string, Sign> = {
  prompt: "prompted",
  tool: "tool",
  question: "asking",
  answer: "answered",
  end: "ended",
};

function lastType(path: string): string {
  if (!existsSync(path)) return "";
  const line = readFileSync(path, "utf8").trimEnd().split("\n").at(-1) ?? "";
  return /^\{"type":"([a-z-]+)".*\}$/.exec(line)?.[1] ?? "";
}
