// The written rule for processes that name no session (R9), for the oracle: by directory and time, one process and one
// record belong together if there is no other candidate. Close to the start of a process, the order of times is uncertain.

import type { FakeAgent } from "./fake-agent.ts";
import type { RecordReading } from "./read-record.ts";
import type { Session } from "./simulated-host.ts";

/**
 * How well a record fits a process: for certain, perhaps, or not at all. "past": the record is older than the process, but the
 * arguments of the process are hidden and may name it.
 */
export type Strength = "sure" | "maybe" | "past" | "no";

export interface Links {
  /** The processes that must be linked to this session, and those that may be. */
  of(session: Session): { must: FakeAgent[]; may: FakeAgent[] };
  /** A record that fits a live process must not be called stopped. */
  isDoubted(session: Session): boolean;
  /** It has this session open, announces nothing, and nothing on this host names it. */
  isUnseen(fake: FakeAgent, session: Session): boolean;
}

interface Scene {
  nameless: FakeAgent[];
  readings: Map<Session, RecordReading>;
  isNamed(session: Session): boolean;
  /** The store could not be read completely: nothing may be linked by directory. */
  isVague: boolean;
}

/** Clock ticks, and clocks that are not read at the same instant. */
export const aroundStartMs = 100;

export function directoryLinks({ nameless, readings, isNamed, isVague }: Scene): Links {
  const strength = (fake: FakeAgent, session: Session): Strength => {
    const reading = readings.get(session) ?? { kind: "absent" };
    // An agent that announces by a lock has no session before it holds one.
    if (reading.kind === "absent" || isNamed(session) || fake.format.lock?.isExclusive === true) return "no";
    if (reading.kind !== "record") return "maybe";
    if (reading.cwd !== null && reading.cwd !== fake.cwd) return "no";
    // The age of its broken lines is unknown.
    if (reading.damaged) return "maybe";
    if (reading.lastAtMs < fake.startMs - aroundStartMs) return fake.format.hidesArguments ? "past" : "no";
    const isCertain = reading.cwd !== null && reading.lastAtMs > fake.startMs + aroundStartMs;
    return isCertain ? "sure" : "maybe";
  };
  const all = [...readings.keys()];
  const others = (fake: FakeAgent, session: Session): Strength[] => [
    ...all.filter((each) => each !== session).map((each) => strength(fake, each)),
    ...nameless.filter((each) => each !== fake).map((each) => strength(each, session)),
  ];
  const silent = nameless.filter((fake) => !fake.format.announces(fake.argv));
  const isNow = (each: Strength) => each === "sure" || each === "maybe";
  const mayHave = (fake: FakeAgent, session: Session) =>
    silent.includes(fake) && isNow(strength(fake, session)) && !others(fake, session).includes("sure");
  const mustHave = (fake: FakeAgent, session: Session) =>
    !isVague && mayHave(fake, session) && strength(fake, session) === "sure" && !others(fake, session).some(isNow);
  const mayHaveAnother = (fake: FakeAgent, session: Session) =>
    all.some((each) => each !== session && mayHave(fake, each));
  return {
    of(session) {
      const must = silent.filter((fake) => mustHave(fake, session));
      return { must, may: must.length > 0 ? [] : silent.filter((fake) => mayHave(fake, session)) };
    },
    isDoubted: (session) =>
      !isVague &&
      nameless.some((fake) => ["sure", "past"].includes(strength(fake, session)) && !mayHaveAnother(fake, session)),
    isUnseen: (fake, session) =>
      silent.includes(fake) &&
      (!isNow(strength(fake, session)) || isJustBefore(fake, readings.get(session))) &&
      (strength(fake, session) !== "past" || mayHaveAnother(fake, session)),
  };
}

/**
 * The record was written just before the start of the process, by its lines or, if it is damaged, by the time of its file. An
 * answer may treat it as older or as newer than the process.
 */
function isJustBefore({ format, startMs }: FakeAgent, reading: RecordReading | undefined): boolean {
  if (reading?.kind !== "record" || format.hidesArguments) return false;
  return (reading.damaged ? (reading.writtenMs ?? startMs) : reading.lastAtMs) < startMs;
}
