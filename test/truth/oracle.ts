// The oracle: what may be said about each session, from what the harness did and what stands in the files.
// It knows every process; it shares no code with the product, only the written format and the contract.
import { isFromHere, readClaims } from "./announcement.ts";
import { pidNamespace } from "./proc.ts";
import { type RecordReading, readRecord, type Turn } from "./record.ts";
import { isAlive, isSuspended, type Twin } from "./twin.ts";
import type { Session, World } from "./world.ts";

export type Answer =
  | {
      state: "running";
      /** At least these processes, at most those. */
      owners: Twin[];
      mostOwners: Twin[];
      links: string[];
      activities: string[];
      questions: string[];
      suspended: boolean;
      /** Allowed by the rule for weak links, and yet not true. */
      wrongGuess: boolean;
    }
  | { state: "stopped"; outcomes: (string | null)[] }
  | { state: "unknown" };

export interface Expectation {
  session: Session;
  row: "required" | "optional" | "forbidden";
  answers: Answer[];
}

export interface Expected {
  sessions: Expectation[];
  /** Live twins that name no session: each must be seen, once. */
  nameless: Twin[];
  /** Live twins whose announcement cannot be read: they may be named by their arguments, or count as nameless. */
  muted: Twin[];
  complete: boolean | null;
}

interface Sight {
  world: World;
  live: Twin[];
  announced: Set<Twin>;
  nameless: Twin[];
  muted: Twin[];
  readings: Map<Session, RecordReading>;
  /** Session ids claimed from another pid namespace: their process may live where we cannot see. */
  claimedElsewhere: Set<string>;
  claimed: Set<string>;
  someClaimUnread: boolean;
}

export function expect(world: World): Expected {
  const sight = look(world);
  const sessions = [...world.sessions.values()].map((session) => expectSession(sight, session));
  return { sessions, nameless: sight.nameless, muted: sight.muted, complete: expectComplete(sight) };
}

function look(world: World): Sight {
  const live = world.twins.filter(isAlive);
  const announced = new Set(live.filter((twin) => world.isAnnounced(twin)));
  const claims = world.liveBroken ? [] : readClaims(world.liveFolder);
  const understood = claims.flatMap(({ claim }) => (claim === null ? [] : [claim]));
  const unreadPids = new Set(claims.flatMap(({ pid, claim }) => (claim === null ? [pid] : [])));
  return {
    world,
    live,
    announced,
    nameless: live.filter((twin) => !announced.has(twin) && twin.argvSession === null),
    muted: live.filter((twin) => !announced.has(twin) && twin.argvSession !== null && unreadPids.has(twin.pid)),
    readings: new Map([...world.sessions.values()].map((each) => [each, readRecord(world.recordPath(each))])),
    claimedElsewhere: new Set(understood.filter(isFromElsewhere).map(({ session }) => session)),
    claimed: new Set(understood.map(({ session }) => session)),
    someClaimUnread: world.liveBroken || claims.some(({ claim }) => claim === null),
  };
}

function expectSession(sight: Sight, session: Session): Expectation {
  const owners = sight.live.filter((twin) => twin.session === session.id);
  const named = owners.filter((twin) => !sight.nameless.includes(twin) && !sight.muted.includes(twin));
  const muted = owners.filter((twin) => sight.muted.includes(twin));
  const reading = readingOf(sight, session);
  // What it was started with may be stale (`/clear`), and what it says now cannot be read: unknown is honest, too.
  if (named.length === 0 && muted.length > 0) {
    const guesses = muted.map((twin) => running(reading, [twin], owners, ["argv"]));
    return { session, row: "required", answers: [...guesses, { state: "unknown" }] };
  }
  if (named.length > 0) {
    const links = [...new Set(named.map((twin) => (sight.announced.has(twin) ? "announced" : "argv")))];
    // The stronger link speaks for the session; a second writer may be linked less well.
    const answer = running(reading, named, owners, links.includes("announced") ? ["announced"] : links);
    answer.suspended &&= muted.every(isSuspended);
    return { session, row: "required", answers: [answer] };
  }
  if (owners.length > 0) return expectNameless(sight, session, owners);
  return expectDead(sight, session);
}

/** Its process lives but does not say which session it serves: anything but "stopped". */
function expectNameless(sight: Sight, session: Session, owners: Twin[]): Expectation {
  const reading = readingOf(sight, session);
  const guesses = owners.map((twin) => running(reading, [twin], owners, ["cwd"]));
  return {
    session,
    row: rowOf(sight, session, sight.claimed.has(session.id)),
    answers: [{ state: "unknown" }, ...guesses],
  };
}

function expectDead(sight: Sight, session: Session): Expectation {
  const elsewhere = sight.claimedElsewhere.has(session.id);
  const row = rowOf(sight, session, elsewhere);
  if (elsewhere || sight.world.sessionsBroken) return { session, row, answers: [{ state: "unknown" }] };
  const answers = deadAnswers(readingOf(sight, session));
  // A live process that cannot be placed, or a claim that cannot be read, may be this session's: unknown is honest.
  if (sight.nameless.length > 0 || sight.someClaimUnread) answers.push({ state: "unknown" });
  answers.push(...weakGuesses(sight, session));
  return { session, row, answers };
}

function rowOf(sight: Sight, session: Session, mayBeKnown: boolean): Expectation["row"] {
  if (sight.world.sessionsBroken) return "optional";
  if (readingOf(sight, session).kind !== "absent") return "required";
  return mayBeKnown ? "optional" : "forbidden";
}

// One process that announces nothing and one record of its directory that is younger: linked by the written rule.
// Here the oracle knows better, so the answer is allowed and counted as a wrong guess.
function weakGuesses(sight: Sight, session: Session): Answer[] {
  const onlyCandidate = (twin: Twin) => {
    const candidates = [...sight.readings].filter(([each, reading]) => isCandidate(sight, twin, each, reading));
    return candidates.length === 1 && candidates[0]?.[0] === session;
  };
  const reading = readingOf(sight, session);
  return sight.nameless
    .filter(onlyCandidate)
    .map((twin) => ({ ...running(reading, [twin], [twin], ["cwd"]), wrongGuess: true }));
}

// Start times have ticks of 10 ms, and the wall clock is read at another moment.
const clockSlackMs = 25;

function isCandidate(sight: Sight, twin: Twin, session: Session, reading: RecordReading): boolean {
  if (reading.kind !== "record" || reading.cwd !== twin.cwd) return false;
  if (reading.lastAtMs < twin.bornMs - clockSlackMs) return false;
  return !sight.live.some((each) => each.session === session.id && !sight.nameless.includes(each));
}

function running(reading: RecordReading, owners: Twin[], mostOwners: Twin[], links: string[]) {
  const suspended = owners.every(isSuspended);
  const turns = possibleTurns(reading);
  const activities = turns.map(activityOf);
  const trusted = reading.kind === "record" && !reading.unclear;
  if (!trusted || suspended) activities.push("unclear");
  const questions = turns.flatMap(({ question }) => (question === null ? [] : [question]));
  return { state: "running" as const, owners, mostOwners, links, activities, questions, suspended, wrongGuess: false };
}

function deadAnswers(reading: RecordReading): Answer[] {
  const unknown: Answer = { state: "unknown" };
  if (reading.kind === "absent") return [];
  if (reading.kind === "unreadable" || reading.kind === "garbage") return [unknown];
  const outcomes = possibleTurns(reading).map(outcomeOf);
  if (reading.kind === "record" && !reading.unclear) return [{ state: "stopped", outcomes }];
  return [{ state: "stopped", outcomes: [null, ...outcomes] }, unknown];
}

/** What the lines may be taken to say; nothing, where they say nothing certain. */
function possibleTurns(reading: RecordReading): Turn[] {
  if (reading.kind === "headless") return [reading.says];
  if (reading.kind !== "record") return [];
  if (!reading.unclear) return [reading.says];
  return reading.ifLastLineCounts === null ? [] : [reading.ifLastLineCounts];
}

function activityOf(says: Turn): string {
  if (says.turn === "open") return says.question === null ? "working" : "waiting";
  // Before the first prompt no end of a turn was recorded either.
  return says.turn === "closed" ? "idle" : "unclear";
}

function outcomeOf(says: Turn): string | null {
  if (says.turn === "open") return "cut-off";
  return says.turn === "closed" ? says.outcome : null;
}

function expectComplete(sight: Sight): boolean | null {
  if (sight.world.sessionsBroken || sight.world.liveBroken) return false;
  const whole = [...sight.readings.values()].every((reading) =>
    reading.kind === "record" ? !reading.damaged : reading.kind === "absent",
  );
  return whole && !sight.someClaimUnread ? true : null;
}

function readingOf(sight: Sight, session: Session): RecordReading {
  return sight.readings.get(session) ?? { kind: "absent" };
}

function isFromElsewhere(claim: Parameters<typeof isFromHere>[0]): boolean {
  return !isFromHere(claim) && isFromHere({ ...claim, namespace: pidNamespace });
}
