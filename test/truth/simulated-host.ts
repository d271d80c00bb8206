// The simulated host of one schedule: temporary homes, all sessions that were made in them, and all started processes.
import { appendFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Subprocess } from "bun";
import { type Announcement, readAnnouncement, writeAnnouncement } from "./announcement.ts";
import { Databases } from "./database-records.ts";
import {
  applyDisguises,
  type DisguisedPrograms,
  type DisguiseOrder,
  makeDisguisedPrograms,
  spawnDisguised,
} from "./disguise.ts";
import { isNamedBy, readDocuments, replaceDocuments } from "./document-records.ts";
import {
  type Birth,
  type FakeAgent,
  holdsLock,
  identify,
  isAlive,
  isSuspended,
  killIfSame,
  makeFakeProgram,
  type Started,
  serves,
  spawnCareless,
  spawnNested,
  spawnQuiet,
  takesOrders,
  tryLock,
} from "./fake-agent.ts";
import type { AnnouncementFormat, Format, Word } from "./format.ts";
import { demoFormat } from "./format-demo.ts";
import { formats } from "./formats.ts";
import { birthOf, runOf, spawnGateway, untilReady } from "./gateway.ts";
import { bootId, pidNamespace, readProcChildren, until } from "./proc.ts";
import { type RecordReading, readRecord } from "./read-record.ts";

export interface Session {
  number: number;
  id: string;
  cwd: string;
  format: Format;
  home: string;
  bornMs: number;
  /** What the fake agent believes, to choose sensible lines; the oracle reads the file instead. */
  turnOpen: boolean;
  asking: boolean;
  toolRunning: boolean;
  /** Lines that were said but not written yet; null while they are written at once. */
  heldBack: string[] | null;
  /** Of its format: ids of calls and turns, counters. */
  scratch: Record<string, unknown>;
}

/** One agent's home. */
export interface Store {
  format: Format;
  home: string;
  recordsFolder: string;
  /** null: it announces otherwise than in files. */
  announcementsFolder: string | null;
  /** True while the folder is replaced by a file. */
  recordsBroken: boolean;
  announcementsBroken: boolean;
  program: string;
  /** null: its fake agents need no more than a name. */
  programs: DisguisedPrograms | null;
  environment: Record<string, string>;
}

/** How a fake agent is started, where it matters. */
export interface Start {
  raised: "here" | "careless";
  /** Below the process that starts this agent and stays, if it has one. */
  wrapped?: boolean;
  /** "true": as agentctl starts it; else variables that it merely inherited. */
  tag?: "true" | Record<string, string>;
}

export class SimulatedHost {
  /** Everything that asking must not change. */
  readonly agentHome: string;
  readonly userHome: string;
  readonly agentctlHome: string;
  readonly cache: string;
  readonly places: string[];
  /** Of the agents that were met so far. */
  readonly stores: Store[] = [];
  readonly databases: Databases;
  /** The agents that may be started by hand. */
  cast: readonly Format[] = formats;
  readonly sessions = new Map<number, Session>();
  readonly fakes: FakeAgent[] = [];
  /** The bytes of records that something unreadable stands in for, by session number. */
  readonly blocked = new Map<number, { bytes: Uint8Array; writtenMs: number }>();
  pidReuses = 0;
  pidReusesSkipped = 0;
  readonly #fifo: string;
  readonly #others: Started[] = [];
  readonly #children: Subprocess[] = [];

  constructor(readonly root: string) {
    this.agentHome = join(root, "homes");
    this.userHome = join(this.agentHome, "user");
    this.agentctlHome = join(root, "agentctl-home");
    this.cache = join(root, "cache");
    this.places = ["work/one", "work/one/inner", "work/two"].map((place) => join(root, place));
    this.#fifo = join(root, "fifo");
    for (const folder of [this.userHome, this.cache, join(root, "bin"), ...this.places])
      mkdirSync(folder, { recursive: true });
    this.databases = new Databases(`${root}-copies`);
    this.storeOf({ format: demoFormat });
  }

  /** What a person's shell would have: the homes that are not where they are by default. */
  get environment(): Record<string, string> {
    const homes = formats.map((format) => format.environment(join(this.agentHome, format.home)));
    return Object.assign({ HOME: this.userHome, PATH: "/usr/bin:/bin" }, ...homes);
  }

  get fakeEnvironment(): Record<string, string> {
    return this.environment;
  }

  get sessionsFolder(): string {
    return this.storeOf({ format: demoFormat }).recordsFolder;
  }

  get liveFolder(): string {
    return this.storeOf({ format: demoFormat }).announcementsFolder ?? "";
  }

  get sessionsBroken(): boolean {
    return this.stores.some((store) => this.isBroken(store));
  }

  get liveBroken(): boolean {
    return this.stores.some(({ announcementsBroken }) => announcementsBroken);
  }

  storeOf({ format }: { format: Format }): Store {
    const store = this.stores.find((each) => each.format === format) ?? this.#makeStore(format);
    if (!this.stores.includes(store)) this.stores.push(store);
    return store;
  }

  isBroken({ format, recordsBroken, recordsFolder }: Store): boolean {
    return recordsBroken || (format.database !== null && this.databases.isUnreadable(recordsFolder, format.database));
  }

  addSession(number: number, id: string, cwd: string, format = demoFormat): Session {
    if (this.sessions.has(number)) throw new Error(`harness: there is a session ${number} already`);
    const { home } = this.storeOf({ format });
    const beliefs = { turnOpen: false, asking: false, toolRunning: false };
    const session = { number, id, cwd, format, home, bornMs: Date.now(), ...beliefs, heldBack: null, scratch: {} };
    this.sessions.set(number, session);
    return session;
  }

  session(number: number): Session {
    const session = this.sessions.get(number);
    if (session === undefined) throw new Error(`harness: no session ${number}`);
    return session;
  }

  recordPath(session: Session): string {
    return session.format.recordPath(session);
  }

  /** Does nothing where the path is blocked: an agent would fail, too. */
  append(session: Session, text: string): void {
    if (text === "" || this.isBroken(this.storeOf(session)) || this.blocked.has(session.number)) return;
    const path = this.recordPath(session);
    const { database, documents } = session.format;
    if (database !== null) this.databases.append(path, database, text);
    else if (documents !== undefined) replaceDocuments(session, documents, text);
    else {
      mkdirSync(dirname(path), { recursive: true });
      appendFileSync(path, text);
      this.#writeBeside(session, dirname(path));
    }
  }

  #writeBeside(session: Session, folder: string): void {
    for (const [name, text] of Object.entries(session.format.beside?.(session) ?? {}))
      if (!existsSync(join(folder, name))) writeFileSync(join(folder, name), text);
  }

  announcementPath(fake: FakeAgent): string {
    const { folder, format } = this.#announcementsOf(fake);
    return join(folder, format.fileOf(fake));
  }

  read(session: Session): RecordReading {
    const { database, documents, reader } = session.format;
    const path = this.recordPath(session);
    if (documents !== undefined) return readDocuments(session, documents);
    if (database !== null) return this.databases.read(path, database, session, reader);
    const reading = readRecord(path, reader);
    const isTold = reading.kind === "record" && session.format.cwdBeside === true;
    return isTold ? { ...reading, cwd: session.cwd } : reading;
  }

  recordKind(session: Session): string {
    return this.read(session).kind;
  }

  /** Its record is a separate file that is not empty. */
  hasFile(session: Session): boolean {
    if (session.format.database !== null || this.storeOf(session).recordsBroken) return false;
    return !["absent", "unreadable", "empty"].includes(this.recordKind(session));
  }

  /** Every fake agent of a session that ever was, the newest last. */
  writers(session: Session): FakeAgent[] {
    return this.fakes.filter((fake) => serves(fake, session.id));
  }

  liveWriters(session: Session): FakeAgent[] {
    return this.writers(session).filter(isAlive);
  }

  /** The process that writes next in a session; two writers take turns. */
  actor(session: Session): FakeAgent | null {
    const able = this.liveWriters(session).filter((fake) => !isSuspended(fake) && this.mayWrite(fake));
    const turn = Number(session.scratch["turns"] ?? 0);
    session.scratch["turns"] = turn + 1;
    return able[turn % Math.max(1, able.length)] ?? null;
  }

  /** One that announces by a lock writes nothing before it has it. */
  mayWrite(fake: FakeAgent): boolean {
    return fake.format.lock?.isExclusive !== true || this.isAnnounced(fake);
  }

  async startFake(session: Begun, argv: string[], start: Start): Promise<FakeAgent> {
    if (session.format.gateway !== undefined) return await this.#startGateway(session, argv, async (spawn) => spawn());
    const birth = this.#birth(session, argv);
    const bornMs = Date.now();
    const { raised, tag } = start;
    const own = { AGENTCTL_TAG: crypto.randomUUID(), AGENTCTL_TAG_SESSION: `${session.format.agent}:${session.id}` };
    Object.assign(birth.environment, tag === "true" ? own : tag);
    if (birth.disguised !== null) {
      const order = this.#order(birth.disguised, birth, start);
      if (order.orders !== null) await this.makeFifo(order.orders);
      const spawned = spawnDisguised(order);
      const { pid, wrapper } = await applyDisguises(order, spawned.pid);
      if (pid !== spawned.pid) this.#keep(spawned);
      const child = wrapper === null ? spawned : null;
      return this.#adopt({ session, argv, raised, child, bornMs, wrapper, orders: order.orders }, pid);
    }
    if (raised === "here") {
      const child = spawnQuiet([birth.program, ...argv], birth.cwd, birth.environment, tag !== undefined);
      return this.#adopt({ session, argv, raised, child, bornMs, wrapper: null }, child.pid);
    }
    const { pid, child } = await spawnCareless(birth);
    this.#keep(child);
    return this.#adopt({ session, argv, raised, child, bornMs, wrapper: null }, pid);
  }

  /** Of the same agent as its parent: the parent starts it by its own name. */
  async startNested(parent: FakeAgent, session: Session): Promise<FakeAgent> {
    const bornMs = Date.now();
    await this.makeFifo(this.#fifo);
    const argv = parent.format.nestedArgv(session.id);
    const pid = await spawnNested(parent, argv, this.#fifo);
    return this.#adopt({ session, argv, raised: "nested", child: null, bornMs, wrapper: null }, pid);
  }

  /** A fake agent at exactly this pid, or null if the kernel gave another one every time. */
  async startFakeAt(pid: number, session: Session, argv: string[], setNextPid: () => void): Promise<FakeAgent | null> {
    if (session.format.gateway !== undefined)
      return await this.#startGateway(session, argv, (spawn) => this.#spawnAt(pid, spawn, setNextPid));
    const birth = this.#birth(session, argv);
    const bornMs = Date.now();
    const { disguised } = birth;
    const order = disguised === null ? null : this.#order(disguised, birth, { raised: "here" });
    const spawn = () =>
      order === null ? spawnQuiet([birth.program, ...argv], birth.cwd, birth.environment) : spawnDisguised(order);
    const child = await this.#spawnAt(pid, spawn, setNextPid);
    if (child === null) return null;
    if (order !== null) await applyDisguises(order, pid);
    return this.#adopt({ session, argv, raised: "here", child, bornMs, wrapper: null }, pid);
  }

  /** It has sessions for others, from now on. */
  async startHub(format: Format, cwd: string): Promise<FakeAgent> {
    const { hub } = format;
    if (hub === undefined) throw new Error(`harness: ${format.agent} has no hub`);
    const nobody = { format, cwd, id: "none of its own", turnOpen: false, asking: false };
    const fake = await this.startFake(nobody, hub.argv(cwd), { raised: "here", tag: hub.environment });
    fake.served = new Set();
    return fake;
  }

  /** All sessions of its data folder live in it, also those that are older than it. */
  async #startGateway<T extends Child | null>(
    { format, cwd, turnOpen, asking }: Begun,
    argv: string[],
    start: (spawn: () => Child) => Promise<T>,
  ): Promise<FakeAgent | Extract<T, null>> {
    const { gateway } = format;
    if (gateway === undefined) throw new Error(`harness: ${format.agent} has no gateway`);
    const { home, recordsFolder } = this.storeOf({ format });
    const path = join(this.root, "bin", `gateway-${this.fakes.length}.json`);
    const birth = birthOf(gateway, argv, { home, cwd, path, environment: this.environment, database: recordsFolder });
    const bornMs = Date.now();
    const child = await start(() => spawnGateway(birth));
    if (child === null) return null as Extract<T, null>;
    await untilReady(child.pid, birth);
    this.#keep(child);
    const session = { format, cwd, turnOpen, asking, id: "none of its own" };
    const fake = this.#adopt({ session, argv, raised: "here", child: null, bornMs, wrapper: null }, child.pid);
    const own = [...this.sessions.values()].filter((each) => each.format === format);
    fake.served = new Set(own.map(({ id }) => id));
    fake.memory = { path, hasLock: birth.hasLock, tokenIn: birth.tokenIn };
    return fake;
  }

  async startStrangerAt(pid: number, command: string[], cwd: string, setNextPid: () => void): Promise<boolean> {
    const child = await this.#spawnAt(pid, () => spawnQuiet(command, cwd, this.environment), setNextPid);
    if (child !== null) this.#keep(child);
    return child !== null;
  }

  startStranger(command: string[], cwd: string): void {
    this.#keep(spawnQuiet(command, cwd, this.environment));
  }

  /** Children of fake agents are ours, too: they survive their parent. */
  noteChildren(fake: FakeAgent): void {
    for (const pid of readProcChildren(fake.pid)) this.#others.push(identify(pid));
  }

  announcementOf(fake: FakeAgent): Announcement {
    const { pid, start, session, word } = fake;
    const { announcements } = fake.format;
    const boot = announcements?.hasBoot === true ? bootId : null;
    return {
      pid,
      start,
      boot,
      namespace: announcements?.hasNamespace(fake) === true ? pidNamespace : null,
      session,
      ...word,
    };
  }

  /** A announcement is written before this returns; only a lock takes its time. */
  async announce(fake: FakeAgent, wrong: Partial<Announcement> = {}): Promise<void> {
    const { announcements, lock } = fake.format;
    if (announcements !== null && !this.storeOf(fake).announcementsBroken)
      writeAnnouncement(
        this.#announcementsOf(fake).folder,
        announcements,
        { ...this.announcementOf(fake), ...wrong },
        fake,
      );
    if (lock !== null) await this.#takeLock(fake, "lock");
  }

  /** Another process holds the lock: the attempt fails, and the file is open for a moment. */
  async announceInVain(fake: FakeAgent): Promise<void> {
    if (this.#hasPlaceForLock(fake) && takesOrders(fake)) await this.#tryLock(fake, "lock");
  }

  /** No other process may hold its lock, and it must take our orders. */
  canAnnounce(fake: FakeAgent): boolean {
    if (!isAlive(fake) || isSuspended(fake) || this.isAnnounced(fake)) return false;
    const { announcements, lock } = fake.format;
    if (lock === null)
      return announcements !== null && !this.storeOf(fake).announcementsBroken && fake.format.announces(fake.argv);
    if (!this.#hasPlaceForLock(fake)) return false;
    const path = this.#lockPath(fake, fake.session);
    return takesOrders(fake) && fake.also === null && !this.fakes.some((other) => holdsLock(other, path));
  }

  /** The same process goes on under another id. */
  async goOn(fake: FakeAgent, session: Session): Promise<void> {
    const before = fake.session;
    this.#part(fake, "completed");
    fake.session = session.id;
    if (fake.format.lock === null) return await this.announce(fake);
    fake.also = before;
    await this.#takeLock(fake, "lock-also");
  }

  /** Its true announcement stands, whether it lives or not. */
  isAnnounced(fake: FakeAgent, session = fake.session): boolean {
    const { announcements, lock, documents } = fake.format;
    const told = documents === undefined ? null : this.#sessionOf(fake, session);
    if (fake.memory !== null) return runOf(fake, this.storeOf(fake).home, session) !== null;
    if (documents !== undefined) return told !== null && isNamedBy(told, documents, fake);
    if (lock !== null) return isAlive(fake) && holdsLock(fake, this.#lockPath(fake, session));
    if (announcements === null || this.storeOf(fake).announcementsBroken) return false;
    const announcement = readAnnouncement(this.#announcementsOf(fake).folder, announcements, fake.pid, session);
    const { status: _status, waitingFor: _waitingFor, ...said } = announcement ?? this.announcementOf(fake);
    const { status: _own, waitingFor: _words, ...truth } = { ...this.announcementOf(fake), session };
    return announcement !== null && Bun.deepEquals(said, truth);
  }

  #sessionOf({ format }: FakeAgent, id: string): Session | null {
    return [...this.sessions.values()].find((session) => session.id === id && session.format === format) ?? null;
  }

  /** Its last word about a session that it leaves. */
  #part(fake: FakeAgent, outcome: "completed" | "interrupted"): void {
    const { documents } = fake.format;
    for (const id of [fake.session, ...(fake.served ?? [])]) {
      const session = this.#sessionOf(fake, id);
      if (session !== null && documents !== undefined && this.recordKind(session) === "record")
        this.append(session, documents.parting(session, outcome));
    }
  }

  /** What its announcement says now, if it is the true one. */
  tell(fake: FakeAgent, word: Word): void {
    fake.word = word;
    if (fake.format.announcements !== null && this.isAnnounced(fake)) void this.announce(fake);
  }

  /** Serves another session than its argv says: only its announcement tells. */
  isCleared(fake: FakeAgent): boolean {
    return isAlive(fake) && fake.argvSession !== null && fake.argvSession !== fake.session;
  }

  retract(fake: FakeAgent): void {
    this.#part(fake, "interrupted");
    if (fake.format.lock !== null) {
      for (const id of [fake.session, fake.also])
        if (id !== null && this.isAnnounced(fake, id)) rmSync(this.#lockPath(fake, id), { force: true });
      return;
    }
    if (fake.format.announcements !== null && !this.storeOf(fake).announcementsBroken)
      rmSync(this.announcementPath(fake), { force: true });
  }

  async makeFifo(path: string): Promise<void> {
    rmSync(path, { force: true, recursive: true });
    const made = await Bun.spawn(["mkfifo", path]).exited;
    if (made !== 0) throw new Error(`harness: mkfifo ${path} ended with ${made}`);
  }

  /** A wrapper ends with its agent, a moment later. */
  async rest(): Promise<void> {
    const left = () => this.fakes.filter((fake) => fake.wrapper !== null && isAlive(fake.wrapper) && !isAlive(fake));
    await until("the end of a wrapper", () => left().length === 0);
  }

  async end(): Promise<void> {
    for (const fake of this.fakes) killIfSame(fake);
    for (const other of this.#others) killIfSame(other);
    await Promise.all(this.#children.map((child) => child.exited));
    // Those that are not our children die a little later, and would be ghosts in the next host.
    await until("the end of a host", () => ![...this.fakes, ...this.#others].some(isAlive));
    this.databases.end();
    rmSync(this.root, { recursive: true, force: true });
  }

  #makeStore(format: Format): Store {
    const home = join(this.agentHome, format.home);
    const recordsFolder = join(home, format.records);
    const announcementsFolder = format.announcements === null ? null : join(home, format.announcements.folder);
    const locks = format.lock?.isExclusive === true ? dirname(join(home, format.lock.path("", 0))) : null;
    for (const folder of [
      format.database === null ? recordsFolder : dirname(recordsFolder),
      announcementsFolder,
      locks,
    ])
      if (folder !== null) mkdirSync(folder, { recursive: true });
    const folder = join(this.root, "bin");
    const programs =
      typeof format.program === "string"
        ? null
        : makeDisguisedPrograms(join(folder, format.agent), join(dirname(this.root), "shell"), format.program);
    const program = programs?.program ?? join(folder, format.command);
    const environment = programs?.environment ?? makeFakeProgram(program, format);
    return {
      format,
      home,
      recordsFolder,
      announcementsFolder,
      recordsBroken: false,
      announcementsBroken: false,
      program,
      programs,
      environment,
    };
  }

  #announcementsOf(fake: FakeAgent): { folder: string; format: AnnouncementFormat } {
    const { announcementsFolder, format } = this.storeOf(fake);
    if (announcementsFolder === null || format.announcements === null)
      throw new Error(`harness: ${fake.format.agent} announces without files`);
    return { folder: announcementsFolder, format: format.announcements };
  }

  /** Some have it among their records. */
  #hasPlaceForLock(fake: FakeAgent): boolean {
    const { lock } = fake.format;
    return lock !== null && (lock.isExclusive || !this.storeOf(fake).recordsBroken);
  }

  #lockPath(fake: FakeAgent, session: string): string {
    return join(this.storeOf(fake).home, fake.format.lock?.path(session, fake.pid) ?? "");
  }

  async #takeLock(fake: FakeAgent, which: "lock" | "lock-also"): Promise<void> {
    await this.#tryLock(fake, which);
    if (!this.isAnnounced(fake)) throw new Error(`harness: process ${fake.pid} did not get its lock`);
  }

  async #tryLock(fake: FakeAgent, which: "lock" | "lock-also"): Promise<void> {
    const path = this.#lockPath(fake, fake.session);
    mkdirSync(dirname(path), { recursive: true });
    await tryLock(fake, path, which, join(this.root, "bin", `tried-${fake.pid}`));
  }

  #birth({ cwd, format }: Begun, argv: string[]): Birth & { disguised: DisguisedPrograms | null } {
    const { program, environment, programs } = this.storeOf({ format });
    const all = { ...this.environment, ...environment };
    return { program, arguments: argv, cwd, environment: all, disguised: programs };
  }

  #order(programs: DisguisedPrograms, birth: Birth, { raised, wrapped, tag }: Start): DisguiseOrder {
    const tagged = tag === "true";
    const wraps = wrapped === true && programs.disguises.wrapper !== null;
    const under = raised === "careless" ? "careless" : wraps ? "wrapper" : "us";
    const orders = under === "wrapper" ? join(this.root, "bin", `orders-${this.fakes.length}`) : null;
    return { ...birth, programs, under, orders, tagged, ownKernelSession: tag !== undefined };
  }

  #adopt(born: Born, pid: number): FakeAgent {
    const { session, argv, raised, child, bornMs, wrapper, orders = null } = born;
    const { format, id, cwd } = session;
    const fake: FakeAgent = {
      ...identify(pid),
      ...{ format, argv, cwd, bornMs, raised, child, orders },
      argvSession: format.argvNames(argv, id) ? id : null,
      session: id,
      also: null,
      served: null,
      memory: null,
      word: format.firstWord(argv, session),
      wrapper: wrapper === null ? null : identify(wrapper),
    };
    this.fakes.push(fake);
    if (fake.wrapper !== null) this.#others.push(fake.wrapper);
    if (child !== null) this.#children.push(child);
    return fake;
  }

  #keep(child: Subprocess): void {
    this.#children.push(child);
    this.#others.push(identify(child.pid));
  }

  async #spawnAt(pid: number, spawn: () => ReturnType<typeof spawnQuiet>, setNextPid: () => void) {
    for (let attempt = 0; attempt < 5; attempt++) {
      setNextPid();
      const child = spawn();
      if (child.pid === pid) return child;
      child.kill("SIGKILL");
      await child.exited;
    }
    return null;
  }
}

type Child = ReturnType<typeof spawnQuiet>;

/** What a fake agent is started for. */
type Begun = Pick<Session, "format" | "cwd" | "id" | "turnOpen" | "asking">;

type Born = Pick<FakeAgent, "raised" | "child" | "bornMs" | "argv"> & {
  session: Begun;
  wrapper: number | null;
  orders?: string | null;
};
