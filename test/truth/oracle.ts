// The oracle: what may be said about each session, from what the harness did and what stands in the files.
// It knows every process; it shares no code with the product, only the written format and the contract.
import { type Claim, isFromHere, readClaims } from "./announcement.ts";
import { aroundStartMs, directoryLinks, type Links } from "./directory.ts";
import { isAskedInVain } from "./gateway.ts";
import { type Doing, gatewayWord, suspicionOf } from "./oracle-hosts.ts";
import { pidNamespace } from "./proc.ts";
import type { RecordReading, Turn } from "./record.ts";
import { isAlive, isSuspended, serves, type Twin } from "./twin.ts";
import type { Session, Store, World } from "./world.ts";

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
  /** `unseen`: one that never speaks has it open, and has written nothing there. */
  | { state: "stopped"; outcomes: (string | null)[]; unseen?: boolean }
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

/** Of one agent: nothing of another one takes part. */
interface Sight {
  world: World;
  store: Store;
  live: Twin[];
  announced: Set<Twin>;
  nameless: Twin[];
  muted: Twin[];
  /** Of those, interfaces that may have left the session they were started with. */
  movers: Twin[];
  readings: Map<Session, RecordReading>;
  /** Session ids claimed from another pid namespace: their process may live where we cannot see. */
  claimedElsewhere: Set<string>;
  claimed: Set<string>;
  /** What live processes say of themselves, where their announcement is true. */
  words: Map<Twin, Claim>;
  someClaimUnread: boolean;
  /** The records do not tell which sessions there are. */
  unlisted: boolean;
  /** How the ids begin whose records do not tell whose they are: by the names of those. */
  lost: ReadonlySet<string>;
  links: Links;
}

export function expect(world: World): Expected {
  const sights = world.stores.map((store) => look(world, store));
  const completes = sights.map(expectComplete);
  return {
    sessions: sights.flatMap((sight) => [...sight.readings.keys()].map((session) => expectSession(sight, session))),
    nameless: sights.flatMap(({ nameless }) => nameless),
    muted: sights.flatMap(({ muted }) => muted),
    complete: completes.includes(false) ? false : completes.includes(null) ? null : true,
  };
}

function look(world: World, store: Store): Sight {
  const { format, claimsFolder, claimsBroken } = store;
  const live = world.twins.filter((twin) => twin.format === format && isAlive(twin));
  const announced = new Set(live.filter((twin) => twin.hosted !== null || world.isAnnounced(twin)));
  const claims =
    claimsBroken || claimsFolder === null || format.claims === null ? [] : readClaims(claimsFolder, format.claims);
  const understood = claims.flatMap(({ claim }) => (claim === null ? [] : [claim]));
  const unreadPids = new Set(claims.flatMap(({ pid, claim }) => (claim === null ? [pid] : [])));
  const own = [...world.sessions.values()].filter((session) => session.format === format);
  const words = [...announced].flatMap((twin): [Twin, Claim][] => {
    const claim = understood.find(({ pid }) => pid === twin.pid);
    return claim === undefined || claim.status === null ? [] : [[twin, claim]];
  });
  const readings = new Map(own.map((each) => [each, ofSomebody(world.read(each), each)]));
  const nameless = live.filter((twin) => !announced.has(twin) && twin.argvSession === null);
  const unlisted = world.isBroken(store);
  const lost = format.idInside ? [...readings].filter(([, reading]) => isOfUnknown(reading)) : [];
  const someClaimUnread = claimsBroken || claims.some(({ claim }) => claim === null);
  const movers = live.filter((twin) => !announced.has(twin) && mayHaveMoved(twin, readings));
  const isNamed = (session: Session) => live.some((twin) => has(world, twin, session) && !nameless.includes(twin));
  return {
    world,
    store,
    live,
    announced,
    nameless,
    muted: [
      ...live.filter((twin) => !announced.has(twin) && twin.argvSession !== null && unreadPids.has(twin.pid)),
      ...movers,
    ],
    movers,
    readings,
    claimedElsewhere: new Set(understood.filter(isFromElsewhere).map(({ session }) => session)),
    claimed: new Set(understood.map(({ session }) => session)),
    words: new Map(words),
    someClaimUnread,
    unlisted,
    lost: new Set(lost.map(([{ id }]) => begin(id))),
    links: directoryLinks({ nameless, readings, isNamed, isVague: unlisted || someClaimUnread }),
  };
}

/** A person may have gone on in it to another session of its directory that was written since. */
function mayHaveMoved(twin: Twin, readings: ReadonlyMap<Session, RecordReading>): boolean {
  if (twin.argvSession === null || !twin.format.mayMoveOn(twin.argv)) return false;
  return [...readings].some(
    ([session, reading]) =>
      session.id !== twin.argvSession &&
      reading.kind !== "absent" &&
      (reading.kind !== "record" ||
        reading.damaged ||
        (reading.lastAtMs > twin.startMs - aroundStartMs && (reading.cwd === null || reading.cwd === twin.cwd))),
  );
}

/** Where the first line says whose record it is, one without any is nobody's; unless nothing of it can become one. */
function ofSomebody(reading: RecordReading, { format }: Session): RecordReading {
  const isNobodys = reading.kind === "empty" || reading.kind === "torn-header";
  return format.idInside && isNobodys ? { kind: "absent" } : reading;
}

const begin = (id: string): string => id.slice(0, 8);

const isOfUnknown = ({ kind }: RecordReading): boolean => ["unreadable", "garbage", "headless"].includes(kind);

/** What a host opened again it does not say. */
function has(world: World, twin: Twin, { id }: Session): boolean {
  return serves(twin, id) && (twin.hosted === null || world.isAnnounced(twin, id));
}

function expectSession(sight: Sight, session: Session): Expectation {
  const owners = sight.live.filter((twin) => has(sight.world, twin, session) && mayOwn(twin, sight));
  const named = owners.filter((twin) => !sight.nameless.includes(twin) && !sight.muted.includes(twin));
  const muted = owners.filter((twin) => sight.muted.includes(twin));
  const reading = told(sight, session);
  // What it was started with may be stale (`/clear`), and what it says now cannot be read: unknown is honest, too.
  if (named.length === 0 && muted.length > 0) {
    const guesses = muted.map((twin) => running(sight, reading, [twin], owners, ["argv"]));
    return { session, row: "required", answers: [...guesses, { state: "unknown" }] };
  }
  if (named.length > 0) {
    // A process of its own goes before a hub that has it, too.
    const first = named.some(({ hosted }) => hosted === null) ? named.filter(({ hosted }) => hosted === null) : named;
    const links = [...new Set(first.map((twin) => (sight.announced.has(twin) ? "announced" : "argv")))];
    // The stronger link speaks for the session; a second writer may be linked less well.
    const answer = running(sight, reading, named, owners, links.includes("announced") ? ["announced"] : links);
    Object.assign(answer, gatewayWord(named, session));
    answer.suspended &&= muted.every(isSuspended);
    return { session, row: "required", answers: [answer] };
  }
  if (owners.length > 0) return expectNameless(sight, session, owners);
  return expectDead(sight, session);
}

/** Who announces by a lock has no session before it holds it; only what `exec resume` was started with is as good as that. */
function mayOwn(twin: Twin, { announced }: Sight): boolean {
  return twin.format.lock?.isExclusive !== true || announced.has(twin) || twin.argvSession !== null;
}

/** Its process lives but does not say which session it serves: anything but "stopped". */
function expectNameless(sight: Sight, session: Session, owners: Twin[]): Expectation {
  const row = rowOf(sight, session, sight.claimed.has(session.id));
  const { must, guesses } = byDirectory(sight, session, owners);
  if (must.length > 0) return { session, row, answers: must };
  const answers: Answer[] = [{ state: "unknown" }, ...guesses];
  if (suspicionOf(sight.live, session, readingOf(sight, session)) === "sure") return { session, row, answers };
  if (owners.every((twin) => sight.links.isUnseen(twin, session)) && !sight.links.isDoubted(session))
    answers.push(...deadAnswers(told(sight, session)).map((answer) => ({ ...answer, unseen: true })));
  return { session, row, answers };
}

function expectDead(sight: Sight, session: Session): Expectation {
  const elsewhere = sight.claimedElsewhere.has(session.id);
  const row = rowOf(sight, session, elsewhere);
  const suspicion = suspicionOf(sight.live, session, readingOf(sight, session));
  if (elsewhere || sight.unlisted || suspicion === "sure") return { session, row, answers: [{ state: "unknown" }] };
  const { must, guesses } = byDirectory(sight, session, []);
  if (sight.lost.has(begin(session.id))) return { session, row, answers: [{ state: "unknown" }, ...guesses] };
  if (must.length > 0) return { session, row, answers: must };
  // Somebody is there who may well have it.
  if (sight.links.isDoubted(session)) return { session, row, answers: [{ state: "unknown" }, ...guesses] };
  const answers = deadAnswers(told(sight, session));
  // A live process that cannot be placed, or a claim that cannot be read, may be this session's: unknown is honest.
  const isVague = sight.nameless.length > 0 || sight.movers.length > 0 || sight.someClaimUnread;
  if (isVague || suspicion === "maybe") answers.push({ state: "unknown" });
  return { session, row, answers: [...answers, ...guesses] };
}

function rowOf(sight: Sight, session: Session, mayBeKnown: boolean): Expectation["row"] {
  const reading = readingOf(sight, session);
  if (sight.world.isBroken(sight.store) || (sight.store.format.idInside && isOfUnknown(reading))) return "optional";
  if (reading.kind !== "absent") return "required";
  return mayBeKnown ? "optional" : "forbidden";
}

// Linked by the written rule for those who never speak. Where the oracle knows better it is allowed, and counted as a wrong guess.
function byDirectory(sight: Sight, session: Session, owners: Twin[]): { must: Answer[]; guesses: Answer[] } {
  const reading = told(sight, session);
  const answersOf = (twins: Twin[]) =>
    twins.map((twin): Answer => {
      const most = owners.includes(twin) ? owners : [...owners, twin];
      const answer = running(sight, reading, [twin], most, ["cwd"]);
      return { ...answer, wrongGuess: !serves(twin, session.id) };
    });
  const { must, may } = sight.links.of(session);
  return { must: answersOf(must), guesses: answersOf(may) };
}

function running(sight: Sight, reading: RecordReading, owners: Twin[], mostOwners: Twin[], links: string[]) {
  const suspended = owners.every(isSuspended);
  const turns = possibleTurns(reading);
  const words = owners.flatMap((twin) => sight.words.get(twin) ?? []);
  const trusted = reading.kind === "record" && !reading.unclear;
  const { activities, questions } =
    words.length > 0 ? byWord(words, turns, reading) : byRecord(turns, owners, mostOwners);
  if ((words.length === 0 && !trusted) || suspended) activities.push("unclear");
  return { state: "running" as const, owners, mostOwners, links, activities, questions, suspended, wrongGuess: false };
}

function byRecord(turns: Turn[], owners: Twin[], mostOwners: Twin[]): Doing {
  const questions = turns.flatMap(({ question, needs }) => question ?? needs ?? []);
  const activities = turns.flatMap((turn) => {
    const ages = [inheritance(turn, owners), inheritance(turn, mostOwners)];
    const age = ages[0] === ages[1] ? ages[0] : "maybe";
    return age === "no" ? [activityOf(turn)] : age === "yes" ? ["unclear"] : [activityOf(turn), "unclear"];
  });
  return { activities, questions };
}

/** Opened or closed before any of its processes began: what those do nobody can tell from it. Around the start both are right. */
function inheritance({ turn, markedAtMs }: Turn, owners: Twin[]): "yes" | "no" | "maybe" {
  // Twins have no terminals: an old end of turn says as little of what they do as an old beginning.
  if (turn === "none" || markedAtMs === null || owners.length === 0) return "no";
  const firstBorn = Math.min(...owners.map(({ startMs }) => startMs));
  if (firstBorn > markedAtMs + aroundStartMs) return "yes";
  return firstBorn + aroundStartMs > markedAtMs ? "maybe" : "no";
}

/** Of several processes the one that needs a person most is heard: nobody is idle while another one works. */
function byWord(words: Claim[], turns: Turn[], reading: RecordReading): Doing {
  const loudest = ["waiting", "busy", "shell", "idle"].find((status) => words.some((word) => word.status === status));
  if (loudest === "busy") return { activities: ["working"], questions: [] };
  if (loudest === "waiting") {
    const plain = ["permission prompt", "input needed"];
    const waiting = words.filter(({ status }) => status === "waiting").map(({ waitingFor }) => waitingFor ?? "");
    const own = waiting.filter((text) => !plain.includes(text));
    const pending = turns.map((turn) => turn.pending ?? "");
    // The call that is asked about may not be written yet; behind a damage, what is left of it may be told, or not.
    if (reading.kind === "record" && reading.unclear) pending.push(reading.says.pending ?? "", "");
    return { activities: ["waiting"], questions: [...own, ...(pending.length > 0 ? pending : [""])] };
  }
  const needs = turns.flatMap((turn) => turn.needs ?? []);
  const mayLack = turns.length === 0 || turns.some((turn) => turn.needs === null);
  return { activities: [...(needs.length > 0 ? ["waiting"] : []), ...(mayLack ? ["idle"] : [])], questions: needs };
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
  if (says.turn === "open") {
    if (says.question !== null) return "waiting";
    return says.doubt ? "unclear" : "working";
  }
  if (says.needs !== null) return "waiting";
  if (says.doubt) return "unclear";
  // Before the first prompt no end of a turn was recorded either.
  return says.turn === "closed" ? "idle" : "unclear";
}

function outcomeOf(says: Turn): string | null {
  if (says.turn === "open") return "cut-off";
  return says.turn === "closed" ? says.outcome : null;
}

function expectComplete(sight: Sight): boolean | null {
  if (sight.live.some((twin) => isAskedInVain(twin, sight.store.home))) return false;
  if (sight.unlisted || sight.lost.size > 0 || sight.store.claimsBroken) return false;
  const whole = [...sight.readings.values()].every((reading) =>
    reading.kind === "record" ? !reading.damaged : reading.kind === "absent",
  );
  return whole && !sight.someClaimUnread ? true : null;
}

function readingOf(sight: Sight, session: Session): RecordReading {
  return sight.readings.get(session) ?? { kind: "absent" };
}

/** Where another record may be its own and cannot be read, what its own one says may be over. */
function told(sight: Sight, session: Session): RecordReading {
  return sight.lost.has(begin(session.id)) ? { kind: "garbage" } : readingOf(sight, session);
}

function isFromElsewhere(claim: Claim): boolean {
  return !isFromHere(claim) && isFromHere({ ...claim, namespace: pidNamespace });
}
