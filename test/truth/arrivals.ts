// Agents that came into a world by another way than its own: adopted as twins, under numbers that stay free.
import type { Dice } from "./random.ts";
import { identify, type Twin } from "./twin.ts";
import type { Session, World } from "./world.ts";

/** What it was started with, and what that makes of it. */
export type Bearing = Pick<Twin, "cwd" | "argv" | "argvSession" | "raised" | "child">;

export function adopt(world: World, session: Session, pid: number, bornMs: number, bearing: Bearing): Twin {
  const { format, id } = session;
  const word = format.firstWord(bearing.argv, session);
  const twin: Twin = {
    ...identify(pid),
    format,
    bornMs,
    session: id,
    also: null,
    hosted: null,
    memory: null,
    word,
    wrapper: null,
    orders: null,
    ...bearing,
  };
  world.twins.push(twin);
  return twin;
}

/** High, so that a shortened list keeps its other numbers. */
export function freeNumber(world: World, dice: Dice): number {
  const number = 100 + dice.below(900);
  return world.sessions.has(number) ? freeNumber(world, dice) : number;
}

export function numbersOf(world: World, fits: (session: Session) => boolean): number[] {
  return [...world.sessions.values()].filter(fits).map((session) => session.number);
}
