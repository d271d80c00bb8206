// The same question without a process: asked of the product's own code, to compare the product with itself.
// The only place of the harness that imports from src/, and no answer of it is ever taken for the truth.
import { resolve } from "node:path";
import { adapters } from "../../src/adapters/registry.ts";
import type { Session } from "../../src/core/session.ts";
import { lookAtSessions } from "../../src/observe/observe.ts";
import type { ListAnswer, Row } from "./answer.ts";
import { askEnvironment } from "./ask.ts";
import type { Lie, Tally } from "./tally.ts";
import type { World } from "./world.ts";

/** Every row of the list, once more: a check each. Another binary than the built one may be of another source. */
export async function compareInProcess(bin: string, world: World, list: ListAnswer, tally: Tally): Promise<Lie[]> {
  if (resolve(bin) !== resolve(import.meta.dir, "../../dist/agentctl")) return [];
  const { sessions } = await lookAtSessions({ adapters, env: askEnvironment(world) });
  const told = new Map(list.rows.map((row) => [nameOf(row), gistOf(row)]));
  const again = new Map(sessions.map(rowOf).map((row) => [nameOf(row), gistOf(row)]));
  const lies: Lie[] = [];
  for (const name of new Set([...told.keys(), ...again.keys()])) {
    tally.checks++;
    const [first, second] = [told.get(name), again.get(name)];
    if (first === second) tally.passed++;
    else lies.push({ kind: "list≠in-process", text: `${name}: list says ${first}, lookAtSessions says ${second}` });
  }
  tally["list≠in-process"] += lies.length;
  return lies;
}

type Gist = Omit<Row, "reason" | "waitingText" | "processes">;

function rowOf({ agent, id, status, processes }: Session): Gist {
  const owner = status.state === "running" ? status.owner : null;
  return {
    agent,
    id,
    state: status.state,
    activity: status.state === "running" ? status.activity : null,
    outcome: status.state === "stopped" ? status.outcome : null,
    link: owner?.kind === "host" ? "announced" : (owner?.link ?? null),
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
