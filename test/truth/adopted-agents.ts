// Agents that another step started: they are adopted as fake agents, under numbers that stay free.

import { type FakeAgent, identify } from "./fake-agent.ts";
import type { Dice } from "./random.ts";
import type { Session, SimulatedHost } from "./simulated-host.ts";

/** Its command line, and the properties that follow from it. */
export type Bearing = Pick<FakeAgent, "cwd" | "argv" | "argvSession" | "raised" | "child">;

export function adopt(host: SimulatedHost, session: Session, pid: number, bornMs: number, bearing: Bearing): FakeAgent {
  const { format, id } = session;
  const word = format.firstWord(bearing.argv, session);
  const fake: FakeAgent = {
    ...identify(pid),
    format,
    bornMs,
    session: id,
    also: null,
    served: null,
    memory: null,
    word,
    wrapper: null,
    orders: null,
    ...bearing,
  };
  host.fakes.push(fake);
  return fake;
}

/** High numbers, so that the other sessions keep theirs in a shortened list. */
export function freeNumber(host: SimulatedHost, dice: Dice): number {
  const number = 100 + dice.below(900);
  return host.sessions.has(number) ? freeNumber(host, dice) : number;
}

export function numbersOf(host: SimulatedHost, fits: (session: Session) => boolean): number[] {
  return [...host.sessions.values()].filter(fits).map((session) => session.number);
}
