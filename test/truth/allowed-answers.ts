// The allowed answers of the oracle, with facts from other steps: which processes carry agentctl's tag, and whether its settings are broken.

import type { FakeAgent } from "./fake-agent.ts";
import { type Answer, type Expectation, type Expected, expect } from "./oracle.ts";
import type { Session, SimulatedHost } from "./simulated-host.ts";

const tagged = new WeakSet<FakeAgent>();
const settings = new WeakMap<SimulatedHost, "partly-invalid" | "unreadable">();

/** It was started by agentctl, and says so in its environment. */
export function noteTag(fake: FakeAgent): void {
  tagged.add(fake);
}

export function hasTag(fake: FakeAgent): boolean {
  return tagged.has(fake);
}

export function noteSettings(host: SimulatedHost, state: "readable" | "partly-invalid" | "unreadable"): void {
  if (state === "readable") settings.delete(host);
  else settings.set(host, state);
}

/** They may hold a default permission, so `launch` and `run` must start nothing. */
export function areSettingsUnreadable(host: SimulatedHost): boolean {
  return settings.get(host) === "unreadable";
}

export function expectNow(host: SimulatedHost): Expected {
  const expected = expect(host);
  return {
    ...expected,
    sessions: expected.sessions.map((each) => ({ ...each, answers: each.answers.map(withTag) })),
    // Invalid settings may name homes that are then not read.
    complete: settings.has(host) ? null : expected.complete,
  };
}

export function expectationOf(expected: Expected, session: Session): Expectation | null {
  return expected.sessions.find((each) => each.session === session) ?? null;
}

/** The tag is stronger than arguments, and weaker than an announcement that is not a hub's. It may also name a session that the process has left. */
function withTag(answer: Answer): Answer {
  if (answer.state !== "running") return answer;
  if (answer.links.includes("announced") && answer.owners.some(({ served }) => served === null)) return answer;
  if (answer.owners.some(hasTag)) return { ...answer, links: ["assigned"] };
  return answer.mostOwners.some(hasTag) ? { ...answer, links: [...answer.links, "assigned"] } : answer;
}

/** A record that is too large to be read whole may say less, and never something wrong. */
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
