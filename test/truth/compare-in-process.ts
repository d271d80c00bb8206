// Asks the product's own code instead of a process, to compare the product with itself.
// The only file of the harness that imports from src/; its answer is never taken as the truth.
import { resolve } from "node:path";
import { adapters } from "../../src/agents/registry.ts";
import type { Session } from "../../src/core/session.ts";
import { listSessions } from "../../src/observe/observe.ts";
import type { ListAnswer, Row } from "./answer.ts";
import { askEnvironment } from "./ask-agentctl.ts";
import type { SimulatedHost } from "./simulated-host.ts";
import type { Lie, Tally } from "./tally.ts";

/** Compares every row of the list. A binary other than the built one may have another source, so it is not compared. */
export async function compareInProcess(
  bin: string,
  host: SimulatedHost,
  list: ListAnswer,
  tally: Tally,
): Promise<Lie[]> {
  if (resolve(bin) !== resolve(import.meta.dir, "../../dist/agentctl")) return [];
  const { sessions } = await listSessions({ adapters, env: askEnvironment(host) });
  const told = new Map(list.rows.map((row) => [nameOf(row), gistOf(row)]));
  const again = new Map(sessions.map(rowOf).map((row) => [nameOf(row), gistOf(row)]));
  const lies: Lie[] = [];
  for (const name of new Set([...told.keys(), ...again.keys()])) {
    tally.checks++;
    const [first, second] = [told.get(name), again.get(name)];
    if (first === second) tally.passed++;
    else lies.push({ kind: "list≠in-process", text: `${name}: list says ${first}, listSessions says ${second}` });
  }
  tally["list≠in-process"] += lies.length;
  return lies;
}

type Gist = Omit<Row, "reasonCode" | "waitingText" | "processes">;

function rowOf({ agent, id, status, processes }: Session): Gist {
  const owner = status.state === "running" ? status.owner : null;
  return {
    agent,
    id,
    state: status.state,
    activity: status.state === "running" ? status.activity : null,
    outcome: status.state === "stopped" ? status.outcome : null,
    link: owner?.kind === "server" ? "announced" : (owner?.link ?? null),
    process: processes[0]?.identity ?? null,
  };
}

function nameOf({ agent, id, process }: Gist): string {
  return id === null ? `process ${process?.pid} of ${agent}` : `${agent} ${id}`;
}

function gistOf({ state, activity, outcome, link, process }: Gist): string {
  const { pid, start } = process ?? { pid: null, start: null };
  return JSON.stringify({ state, activity, outcome, link, pid, start });
}
