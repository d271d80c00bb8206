// The written rule for processes that name no session (R9), for the oracle: by directory and time, one process and one
// record belong together if nothing else could. Around the start of a process nobody can tell before from after.
import type { RecordReading } from "./record.ts";
import type { Twin } from "./twin.ts";
import type { Session } from "./world.ts";

/**
 * How well a record fits a process: for certain, perhaps, or not at all. "past": older than the process, whose arguments
 * are hidden, so that it may have been started with it all the same.
 */
export type Strength = "sure" | "maybe" | "past" | "no";

export interface Links {
  /** Who must be linked to this session, and who may be. */
  of(session: Session): { must: Twin[]; may: Twin[] };
  /** A record that certainly fits a live process must not be called ownerless. */
  isDoubted(session: Session): boolean;
  /** It has this session open, never speaks, and nothing on this machine tells of it. */
  isUnseen(twin: Twin, session: Session): boolean;
}

interface Scene {
  nameless: Twin[];
  readings: Map<Session, RecordReading>;
  isNamed(session: Session): boolean;
  /** What there is could not be read whole: nothing must be linked, and little is certain. */
  isVague: boolean;
}

/** Ticks, and clocks that are not read in one instant. */
export const aroundStartMs = 100;

export function directoryLinks({ nameless, readings, isNamed, isVague }: Scene): Links {
  const strength = (twin: Twin, session: Session): Strength => {
    const reading = readings.get(session) ?? { kind: "absent" };
    // Who announces by a lock has nothing before it holds one.
    if (reading.kind === "absent" || isNamed(session) || twin.format.lock?.isExclusive === true) return "no";
    if (reading.kind !== "record") return "maybe";
    if (reading.cwd !== null && reading.cwd !== twin.cwd) return "no";
    // How young its broken lines are, nobody knows.
    if (reading.damaged) return "maybe";
    if (reading.lastAtMs < twin.startMs - aroundStartMs) return twin.format.hidesArguments ? "past" : "no";
    const isCertain = reading.cwd !== null && reading.lastAtMs > twin.startMs + aroundStartMs;
    return isCertain ? "sure" : "maybe";
  };
  const all = [...readings.keys()];
  const others = (twin: Twin, session: Session): Strength[] => [
    ...all.filter((each) => each !== session).map((each) => strength(twin, each)),
    ...nameless.filter((each) => each !== twin).map((each) => strength(each, session)),
  ];
  const silent = nameless.filter((twin) => !twin.format.announces(twin.argv));
  const isNow = (each: Strength) => each === "sure" || each === "maybe";
  const mayHave = (twin: Twin, session: Session) =>
    silent.includes(twin) && isNow(strength(twin, session)) && !others(twin, session).includes("sure");
  const mustHave = (twin: Twin, session: Session) =>
    !isVague && mayHave(twin, session) && strength(twin, session) === "sure" && !others(twin, session).some(isNow);
  const mayHaveAnother = (twin: Twin, session: Session) => all.some((each) => each !== session && mayHave(twin, each));
  return {
    of(session) {
      const must = silent.filter((twin) => mustHave(twin, session));
      return { must, may: must.length > 0 ? [] : silent.filter((twin) => mayHave(twin, session)) };
    },
    isDoubted: (session) =>
      !isVague &&
      nameless.some((twin) => ["sure", "past"].includes(strength(twin, session)) && !mayHaveAnother(twin, session)),
    isUnseen: (twin, session) =>
      silent.includes(twin) &&
      (!isNow(strength(twin, session)) || isJustBefore(twin, readings.get(session))) &&
      (strength(twin, session) !== "past" || mayHaveAnother(twin, session)),
  };
}

/**
 * So close to its start that nobody can tell the record from a younger one, or broken, so that only its file tells; telling them
 * apart all the same is right.
 */
function isJustBefore({ format, startMs }: Twin, reading: RecordReading | undefined): boolean {
  if (reading?.kind !== "record" || format.hidesArguments) return false;
  return (reading.damaged ? (reading.writtenMs ?? startMs) : reading.lastAtMs) < startMs;
}
