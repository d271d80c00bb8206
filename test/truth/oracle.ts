// The oracle: the allowed answers about each session, derived from the harness's own actions and the files.
// It knows every process; it shares no code with the product, only the written format and the contract.
import { type Announcement, isFromHere, readAnnouncements } from "./announcement.ts";
import { type FakeAgent, isAlive, isSuspended, serves } from "./fake-agent.ts";
import { isAskedInVain } from "./gateway.ts";
import { aroundStartMs, directoryLinks, type Links } from "./oracle-directory.ts";
import { type Doing, gatewayWord, suspicionOf } from "./oracle-servers.ts";
import { pidNamespace } from "./proc.ts";
import type { RecordReading, Turn } from "./read-record.ts";
import type { Session, SimulatedHost, Store } from "./simulated-host.ts";

export type Answer =
  | {
      state: "running";
      /** At least these processes, at most those. */
      owners: FakeAgent[];
      mostOwners: FakeAgent[];
      links: string[];
      activities: string[];
      questions: string[];
      suspended: boolean;
      /** Allowed by the rule for weak links, but not true. */
      wrongGuess: boolean;
    }
  /** `unseen`: a process that announces nothing has it open and has written nothing there. */
  | { state: "stopped"; outcomes: (string | null)[]; unseen?: boolean }
  | { state: "unknown" };

export interface Expectation {
  session: Session;
  row: "required" | "optional" | "forbidden";
  answers: Answer[];
}

export interface Expected {
  sessions: Expectation[];
  /** Live fake agents that name no session: each must be listed once. */
  nameless: FakeAgent[];
  /** Live fake agents with an unreadable announcement: they may be linked by their arguments, or be listed without a session. */
  muted: FakeAgent[];
  complete: boolean | null;
}

/** Of one agent; other agents have no influence. */
interface Sight {
  host: SimulatedHost;
  store: Store;
  live: FakeAgent[];
  announced: Set<FakeAgent>;
  nameless: FakeAgent[];
  muted: FakeAgent[];
  /** Of those, interfaces that may have left the session they were started with. */
  movers: FakeAgent[];
  readings: Map<Session, RecordReading>;
  /** Session ids announced from another pid namespace: their process may live where we cannot see. */
  announcedElsewhere: Set<string>;
  announcedSessions: Set<string>;
  /** The reports of live processes with a true announcement. */
  words: Map<FakeAgent, Announcement>;
  someAnnouncementUnread: boolean;
  /** The records do not show which sessions exist. */
  unlisted: boolean;
  /** The first characters of the ids of nameless records, from their file names. */
  lost: ReadonlySet<string>;
  links: Links;
}

export function expect(host: SimulatedHost): Expected {
  const sights = host.stores.map((store) => look(host, store));
  const completes = sights.map(expectComplete);
  return {
    sessions: sights.flatMap((sight) => [...sight.readings.keys()].map((session) => expectSession(sight, session))),
    nameless: sights.flatMap(({ nameless }) => nameless),
    muted: sights.flatMap(({ muted }) => muted),
    complete: completes.includes(false) ? false : completes.includes(null) ? null : true,
  };
}

function look(host: SimulatedHost, store: Store): Sight {
  const { format, announcementsFolder, announcementsBroken } = store;
  const live = host.fakes.filter((fake) => fake.format === format && isAlive(fake));
  const announced = new Set(live.filter((fake) => fake.served !== null || host.isAnnounced(fake)));
  const announcements =
    announcementsBroken || announcementsFolder === null || format.announcements === null
      ? []
      : readAnnouncements(announcementsFolder, format.announcements);
  const understood = announcements.flatMap(({ announcement }) => (announcement === null ? [] : [announcement]));
  const unreadPids = new Set(announcements.flatMap(({ pid, announcement }) => (announcement === null ? [pid] : [])));
  const own = [...host.sessions.values()].filter((session) => session.format === format);
  const words = [...announced].flatMap((fake): [FakeAgent, Announcement][] => {
    const announcement = understood.find(({ pid }) => pid === fake.pid);
    return announcement === undefined || announcement.status === null ? [] : [[fake, announcement]];
  });
  const readings = new Map(own.map((each) => [each, ofSomebody(host.read(each), each)]));
  const nameless = live.filter((fake) => !announced.has(fake) && fake.argvSession === null);
  const unlisted = host.isBroken(store);
  const lost = format.idInside ? [...readings].filter(([, reading]) => isOfUnknown(reading)) : [];
  const someAnnouncementUnread = announcementsBroken || announcements.some(({ announcement }) => announcement === null);
  const movers = live.filter((fake) => !announced.has(fake) && mayHaveMoved(fake, readings));
  const isNamed = (session: Session) => live.some((fake) => has(host, fake, session) && !nameless.includes(fake));
  return {
    host,
    store,
    live,
    announced,
    nameless,
    muted: [
      ...live.filter((fake) => !announced.has(fake) && fake.argvSession !== null && unreadPids.has(fake.pid)),
      ...movers,
    ],
    movers,
    readings,
    announcedElsewhere: new Set(understood.filter(isFromElsewhere).map(({ session }) => session)),
    announcedSessions: new Set(understood.map(({ session }) => session)),
    words: new Map(words),
    someAnnouncementUnread,
    unlisted,
    lost: new Set(lost.map(([{ id }]) => begin(id))),
    links: directoryLinks({ nameless, readings, isNamed, isVague: unlisted || someAnnouncementUnread }),
  };
}

/** A person may have gone on in it to another session of its directory that was written since. */
function mayHaveMoved(fake: FakeAgent, readings: ReadonlyMap<Session, RecordReading>): boolean {
  if (fake.argvSession === null || !fake.format.mayMoveOn(fake.argv)) return false;
  return [...readings].some(
    ([session, reading]) =>
      session.id !== fake.argvSession &&
      reading.kind !== "absent" &&
      (reading.kind !== "record" ||
        reading.damaged ||
        (reading.lastAtMs > fake.startMs - aroundStartMs && (reading.cwd === null || reading.cwd === fake.cwd))),
  );
}

/** In formats whose first line has the id, a record without that line has no session. */
function ofSomebody(reading: RecordReading, { format }: Session): RecordReading {
  const isNobodys = reading.kind === "empty" || reading.kind === "torn-header";
  return format.idInside && isNobodys ? { kind: "absent" } : reading;
}

const begin = (id: string): string => id.slice(0, 8);

const isOfUnknown = ({ kind }: RecordReading): boolean => ["unreadable", "garbage", "headless"].includes(kind);

/** A server does not name the sessions that it reopened. */
function has(host: SimulatedHost, fake: FakeAgent, { id }: Session): boolean {
  return serves(fake, id) && (fake.served === null || host.isAnnounced(fake, id));
}

function expectSession(sight: Sight, session: Session): Expectation {
  const owners = sight.live.filter((fake) => has(sight.host, fake, session) && mayOwn(fake, sight));
  const named = owners.filter((fake) => !sight.nameless.includes(fake) && !sight.muted.includes(fake));
  const muted = owners.filter((fake) => sight.muted.includes(fake));
  const reading = told(sight, session);
  // The session in its arguments may be stale (`/clear`), and its announcement cannot be read, so unknown is allowed, too.
  if (named.length === 0 && muted.length > 0) {
    const guesses = muted.map((fake) => running(sight, reading, [fake], owners, ["argv"]));
    return { session, row: "required", answers: [...guesses, { state: "unknown" }] };
  }
  if (named.length > 0) {
    // A session's own process counts before a hub that has it, too.
    const first = named.some(({ served }) => served === null) ? named.filter(({ served }) => served === null) : named;
    const links = [...new Set(first.map((fake) => (sight.announced.has(fake) ? "announced" : "argv")))];
    // The stronger link speaks for the session; a second writer may be linked less well.
    const answer = running(sight, reading, named, owners, links.includes("announced") ? ["announced"] : links);
    Object.assign(answer, gatewayWord(named, session));
    answer.suspended &&= muted.every(isSuspended);
    return { session, row: "required", answers: [answer] };
  }
  if (owners.length > 0) return expectNameless(sight, session, owners);
  return expectDead(sight, session);
}

/** An agent that announces by a lock has no session before it holds it; only the argument of `exec resume` proves as much. */
function mayOwn(fake: FakeAgent, { announced }: Sight): boolean {
  return fake.format.lock?.isExclusive !== true || announced.has(fake) || fake.argvSession !== null;
}

/** Its process lives but does not name its session: every answer except "stopped" is allowed. */
function expectNameless(sight: Sight, session: Session, owners: FakeAgent[]): Expectation {
  const row = rowOf(sight, session, sight.announcedSessions.has(session.id));
  const { must, guesses } = byDirectory(sight, session, owners);
  if (must.length > 0) return { session, row, answers: must };
  const answers: Answer[] = [{ state: "unknown" }, ...guesses];
  if (suspicionOf(sight.live, session, readingOf(sight, session)) === "sure") return { session, row, answers };
  if (owners.every((fake) => sight.links.isUnseen(fake, session)) && !sight.links.isDoubted(session))
    answers.push(...deadAnswers(told(sight, session)).map((answer) => ({ ...answer, unseen: true })));
  return { session, row, answers };
}

function expectDead(sight: Sight, session: Session): Expectation {
  const elsewhere = sight.announcedElsewhere.has(session.id);
  const row = rowOf(sight, session, elsewhere);
  const suspicion = suspicionOf(sight.live, session, readingOf(sight, session));
  if (elsewhere || sight.unlisted || suspicion === "sure") return { session, row, answers: [{ state: "unknown" }] };
  const { must, guesses } = byDirectory(sight, session, []);
  if (sight.lost.has(begin(session.id))) return { session, row, answers: [{ state: "unknown" }, ...guesses] };
  if (must.length > 0) return { session, row, answers: must };
  // A live process may have it.
  if (sight.links.isDoubted(session)) return { session, row, answers: [{ state: "unknown" }, ...guesses] };
  const answers = deadAnswers(told(sight, session));
  // A live process without a known session, or an unreadable announcement, may belong to this session, so unknown is allowed.
  const isVague = sight.nameless.length > 0 || sight.movers.length > 0 || sight.someAnnouncementUnread;
  if (isVague || suspicion === "maybe") answers.push({ state: "unknown" });
  return { session, row, answers: [...answers, ...guesses] };
}

function rowOf(sight: Sight, session: Session, mayBeKnown: boolean): Expectation["row"] {
  const reading = readingOf(sight, session);
  if (sight.host.isBroken(sight.store) || (sight.store.format.idInside && isOfUnknown(reading))) return "optional";
  if (reading.kind !== "absent") return "required";
  return mayBeKnown ? "optional" : "forbidden";
}

// Linked by the written rule for processes without an announcement. A wrong link by this rule is allowed, and counted as a wrong guess.
function byDirectory(sight: Sight, session: Session, owners: FakeAgent[]): { must: Answer[]; guesses: Answer[] } {
  const reading = told(sight, session);
  const answersOf = (fakes: FakeAgent[]) =>
    fakes.map((fake): Answer => {
      const most = owners.includes(fake) ? owners : [...owners, fake];
      const answer = running(sight, reading, [fake], most, ["cwd"]);
      return { ...answer, wrongGuess: !serves(fake, session.id) };
    });
  const { must, may } = sight.links.of(session);
  return { must: answersOf(must), guesses: answersOf(may) };
}

function running(sight: Sight, reading: RecordReading, owners: FakeAgent[], mostOwners: FakeAgent[], links: string[]) {
  const suspended = owners.every(isSuspended);
  const turns = possibleTurns(reading);
  const words = owners.flatMap((fake) => sight.words.get(fake) ?? []);
  const trusted = reading.kind === "record" && !reading.unclear;
  const { activities, questions } =
    words.length > 0 ? byWord(words, turns, reading) : byRecord(turns, owners, mostOwners);
  if ((words.length === 0 && !trusted) || suspended) activities.push("unclear");
  return { state: "running" as const, owners, mostOwners, links, activities, questions, suspended, wrongGuess: false };
}

function byRecord(turns: Turn[], owners: FakeAgent[], mostOwners: FakeAgent[]): Doing {
  const questions = turns.flatMap(({ question, needs }) => question ?? needs ?? []);
  const activities = turns.flatMap((turn) => {
    const ages = [inheritance(turn, owners), inheritance(turn, mostOwners)];
    const age = ages[0] === ages[1] ? ages[0] : "maybe";
    return age === "no" ? [activityOf(turn)] : age === "yes" ? ["unclear"] : [activityOf(turn), "unclear"];
  });
  return { activities, questions };
}

/** A turn from before the start of all processes says nothing about them. Close to the start both answers are allowed. */
function inheritance({ turn, markedAtMs }: Turn, owners: FakeAgent[]): "yes" | "no" | "maybe" {
  // Fake agents have no terminals, so neither an old end nor an old start of a turn proves anything.
  if (turn === "none" || markedAtMs === null || owners.length === 0) return "no";
  const firstBorn = Math.min(...owners.map(({ startMs }) => startMs));
  if (firstBorn > markedAtMs + aroundStartMs) return "yes";
  return firstBorn + aroundStartMs > markedAtMs ? "maybe" : "no";
}

/** Of several processes the one that most needs a person decides; a session is not idle while one of them works. */
function byWord(words: Announcement[], turns: Turn[], reading: RecordReading): Doing {
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

/** The possible meanings of the lines; empty if nothing is certain. */
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
  if (sight.live.some((fake) => isAskedInVain(fake, sight.store.home))) return false;
  if (sight.unlisted || sight.lost.size > 0 || sight.store.announcementsBroken) return false;
  const whole = [...sight.readings.values()].every((reading) =>
    reading.kind === "record" ? !reading.damaged : reading.kind === "absent",
  );
  return whole && !sight.someAnnouncementUnread ? true : null;
}

function readingOf(sight: Sight, session: Session): RecordReading {
  return sight.readings.get(session) ?? { kind: "absent" };
}

/** Another record that cannot be read may be its own, so its known record may be outdated. */
function told(sight: Sight, session: Session): RecordReading {
  return sight.lost.has(begin(session.id)) ? { kind: "garbage" } : readingOf(sight, session);
}

function isFromElsewhere(announcement: Announcement): boolean {
  return !isFromHere(announcement) && isFromHere({ ...announcement, namespace: pidNamespace });
}
