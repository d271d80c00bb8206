// What the oracle allows, with what only the other steps know: who carries agentctl's tag, and whether its settings are spoiled.
import { type Answer, type Expectation, type Expected, expect } from "./oracle.ts";
import type { Twin } from "./twin.ts";
import type { Session, World } from "./world.ts";

const tagged = new WeakSet<Twin>();
const unsettled = new WeakSet<World>();

/** It was started by agentctl, and says so in its environment. */
export function noteTag(twin: Twin): void {
  tagged.add(twin);
}

export function hasTag(twin: Twin): boolean {
  return tagged.has(twin);
}

/** Settings that cannot be read may name homes that are not looked into. */
export function noteSettings(world: World, state: "readable" | "spoiled"): void {
  if (state === "spoiled") unsettled.add(world);
  else unsettled.delete(world);
}

export function expectNow(world: World): Expected {
  const expected = expect(world);
  return {
    ...expected,
    sessions: expected.sessions.map((each) => ({ ...each, answers: each.answers.map(withTag) })),
    complete: unsettled.has(world) ? null : expected.complete,
  };
}

export function expectationOf(expected: Expected, session: Session): Expectation | null {
  return expected.sessions.find((each) => each.session === session) ?? null;
}

/** The tag is stronger than arguments, and weaker than an announcement that is not a hub's. Who may have gone on elsewhere may be named by it, too. */
function withTag(answer: Answer): Answer {
  if (answer.state !== "running") return answer;
  if (answer.links.includes("announced") && answer.owners.some(({ hosted }) => hosted === null)) return answer;
  if (answer.owners.some(hasTag)) return { ...answer, links: ["assigned"] };
  return answer.mostOwners.some(hasTag) ? { ...answer, links: [...answer.links, "assigned"] } : answer;
}

/** A record too large to be read whole says less, and never something else. */
export function lessCertain(expected: Expected, session: Session): Expected {
  const loosen = (answer: Answer): Answer => {
    if (answer.state === "running") return { ...answer, activities: [...answer.activities, "unclear"] };
    return answer.state === "stopped" ? { ...answer, outcomes: [...answer.outcomes, null] } : answer;
  };
  const sessions = expected.sessions.map(
    (each): Expectation =>
      each.session === session ? { ...each, answers: [...each.answers.map(loosen), { state: "unknown" }] } : each,
  );
  return { ...expected, sessions, complete: null };
}
