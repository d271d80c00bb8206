// The world of one schedule: throw-away homes, the sessions that were ever made in them, and every process that was started.
import { appendFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Subprocess } from "bun";
import { type Claim, readClaim, writeAnnouncement } from "./announcement.ts";
import { Databases } from "./database.ts";
import { isNamedBy, readDocuments, replaceDocuments } from "./documents.ts";
import type { ClaimFormat, Format, Word } from "./format.ts";
import { demoFormat } from "./format-demo.ts";
import { formats } from "./formats.ts";
import { birthOf, runOf, spawnGateway, untilReady } from "./gateway.ts";
import { dressAll, type Masquerade, makeWardrobe, spawnMasked, type Wardrobe } from "./guise.ts";
import { bootId, pidNamespace, readProcChildren, until } from "./proc.ts";
import { type RecordReading, readRecord } from "./record.ts";
import {
  type Birth,
  holdsLock,
  identify,
  isAlive,
  isSuspended,
  killIfSame,
  makeTwinProgram,
  type Started,
  serves,
  spawnCareless,
  spawnNested,
  spawnQuiet,
  type Twin,
  takesOrders,
  tryLock,
} from "./twin.ts";

export interface Session {
  /** Its name in a step list. */
  number: number;
  id: string;
  cwd: string;
  format: Format;
  home: string;
  bornMs: number;
  /** What the twin believes, to choose sensible lines; the oracle reads the file instead. */
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
  claimsFolder: string | null;
  /** True while the folder is replaced by a file. */
  recordsBroken: boolean;
  claimsBroken: boolean;
  program: string;
  /** null: its twins need no more than a name. */
  wardrobe: Wardrobe | null;
  environment: Record<string, string>;
}

/** How a twin is started, where it matters. */
export interface Start {
  raised: "here" | "careless";
  /** Below the process that starts this agent and stays, if it has one. */
  wrapped?: boolean;
  /** "true": as agentctl starts it; else variables that it merely inherited. */
  tag?: "true" | Record<string, string>;
}

export class World {
  /** Everything that asking must not change. */
  readonly agentHome: string;
  readonly userHome: string;
  readonly agentctlHome: string;
  readonly cache: string;
  readonly places: string[];
  /** Of the agents that were met so far. */
  readonly stores: Store[] = [];
  readonly databases: Databases;
  /** Who may be started by hand. */
  cast: readonly Format[] = formats;
  readonly sessions = new Map<number, Session>();
  readonly twins: Twin[] = [];
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

  get twinEnvironment(): Record<string, string> {
    return this.environment;
  }

  /** Of the demo agent. */
  get sessionsFolder(): string {
    return this.storeOf({ format: demoFormat }).recordsFolder;
  }

  get liveFolder(): string {
    return this.storeOf({ format: demoFormat }).claimsFolder ?? "";
  }

  get sessionsBroken(): boolean {
    return this.stores.some((store) => this.isBroken(store));
  }

  get liveBroken(): boolean {
    return this.stores.some(({ claimsBroken }) => claimsBroken);
  }

  storeOf({ format }: { format: Format }): Store {
    const store = this.stores.find((each) => each.format === format) ?? this.#makeStore(format);
    if (!this.stores.includes(store)) this.stores.push(store);
    return store;
  }

  /** Nobody can tell which sessions it has. */
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

  claimPath(twin: Twin): string {
    const { folder, format } = this.#claimsOf(twin);
    return join(folder, format.fileOf(twin));
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

  /** Its record is a file of its own, with bytes in it. */
  hasFile(session: Session): boolean {
    if (session.format.database !== null || this.storeOf(session).recordsBroken) return false;
    return !["absent", "unreadable", "empty"].includes(this.recordKind(session));
  }

  /** Every twin of a session that ever was, the newest last. */
  writers(session: Session): Twin[] {
    return this.twins.filter((twin) => serves(twin, session.id));
  }

  liveWriters(session: Session): Twin[] {
    return this.writers(session).filter(isAlive);
  }

  /** Who does what happens next in a session; two writers take turns. */
  actor(session: Session): Twin | null {
    const able = this.liveWriters(session).filter((twin) => !isSuspended(twin) && this.mayWrite(twin));
    const turn = Number(session.scratch["turns"] ?? 0);
    session.scratch["turns"] = turn + 1;
    return able[turn % Math.max(1, able.length)] ?? null;
  }

  /** One that announces by a lock writes nothing before it has it. */
  mayWrite(twin: Twin): boolean {
    return twin.format.lock?.isExclusive !== true || this.isAnnounced(twin);
  }

  async startTwin(session: Begun, argv: string[], start: Start): Promise<Twin> {
    if (session.format.gateway !== undefined) return await this.#startGateway(session, argv, async (spawn) => spawn());
    const birth = this.#birth(session, argv);
    const bornMs = Date.now();
    const { raised, tag } = start;
    const own = { AGENTCTL_TAG: crypto.randomUUID(), AGENTCTL_TAG_SESSION: `${session.format.agent}:${session.id}` };
    Object.assign(birth.environment, tag === "true" ? own : tag);
    if (birth.masked !== null) {
      const order = this.#masquerade(birth.masked, birth, start);
      if (order.orders !== null) await this.makeFifo(order.orders);
      const spawned = spawnMasked(order);
      const { pid, wrapper } = await dressAll(order, spawned.pid);
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
  async startNested(parent: Twin, session: Session): Promise<Twin> {
    const bornMs = Date.now();
    await this.makeFifo(this.#fifo);
    const argv = parent.format.nestedArgv(session.id);
    const pid = await spawnNested(parent, argv, this.#fifo);
    return this.#adopt({ session, argv, raised: "nested", child: null, bornMs, wrapper: null }, pid);
  }

  /** A twin at exactly this pid, or null if the kernel gave another one every time. */
  async startTwinAt(pid: number, session: Session, argv: string[], setNextPid: () => void): Promise<Twin | null> {
    if (session.format.gateway !== undefined)
      return await this.#startGateway(session, argv, (spawn) => this.#spawnAt(pid, spawn, setNextPid));
    const birth = this.#birth(session, argv);
    const bornMs = Date.now();
    const { masked } = birth;
    const order = masked === null ? null : this.#masquerade(masked, birth, { raised: "here" });
    const spawn = () =>
      order === null ? spawnQuiet([birth.program, ...argv], birth.cwd, birth.environment) : spawnMasked(order);
    const child = await this.#spawnAt(pid, spawn, setNextPid);
    if (child === null) return null;
    if (order !== null) await dressAll(order, pid);
    return this.#adopt({ session, argv, raised: "here", child, bornMs, wrapper: null }, pid);
  }

  /** It has sessions for others, from now on. */
  async startHub(format: Format, cwd: string): Promise<Twin> {
    const { hub } = format;
    if (hub === undefined) throw new Error(`harness: ${format.agent} has no hub`);
    const nobody = { format, cwd, id: "none of its own", turnOpen: false, asking: false };
    const twin = await this.startTwin(nobody, hub.argv(cwd), { raised: "here", tag: hub.environment });
    twin.hosted = new Set();
    return twin;
  }

  /** All sessions of its data folder live in it, also those that are older than it. */
  async #startGateway<T extends Child | null>(
    { format, cwd, turnOpen, asking }: Begun,
    argv: string[],
    start: (spawn: () => Child) => Promise<T>,
  ): Promise<Twin | Extract<T, null>> {
    const { gateway } = format;
    if (gateway === undefined) throw new Error(`harness: ${format.agent} has no gateway`);
    const { home, recordsFolder } = this.storeOf({ format });
    const path = join(this.root, "bin", `gateway-${this.twins.length}.json`);
    const birth = birthOf(gateway, argv, { home, cwd, path, environment: this.environment, database: recordsFolder });
    const bornMs = Date.now();
    const child = await start(() => spawnGateway(birth));
    if (child === null) return null as Extract<T, null>;
    await untilReady(child.pid, birth);
    this.#keep(child);
    const session = { format, cwd, turnOpen, asking, id: "none of its own" };
    const twin = this.#adopt({ session, argv, raised: "here", child: null, bornMs, wrapper: null }, child.pid);
    const own = [...this.sessions.values()].filter((each) => each.format === format);
    twin.hosted = new Set(own.map(({ id }) => id));
    twin.memory = { path, hasLock: birth.hasLock, tokenIn: birth.tokenIn };
    return twin;
  }

  async startStrangerAt(pid: number, command: string[], cwd: string, setNextPid: () => void): Promise<boolean> {
    const child = await this.#spawnAt(pid, () => spawnQuiet(command, cwd, this.environment), setNextPid);
    if (child !== null) this.#keep(child);
    return child !== null;
  }

  startStranger(command: string[], cwd: string): void {
    this.#keep(spawnQuiet(command, cwd, this.environment));
  }

  /** Children of twins are ours, too: they survive their parent. */
  noteChildren(twin: Twin): void {
    for (const pid of readProcChildren(twin.pid)) this.#others.push(identify(pid));
  }

  claimOf(twin: Twin): Claim {
    const { pid, start, session, word } = twin;
    const { claims } = twin.format;
    const boot = claims?.hasBoot === true ? bootId : null;
    return { pid, start, boot, namespace: claims?.hasNamespace(twin) === true ? pidNamespace : null, session, ...word };
  }

  /** A claim is written before this returns; only a lock takes its time. */
  async announce(twin: Twin, wrong: Partial<Claim> = {}): Promise<void> {
    const { claims, lock } = twin.format;
    if (claims !== null && !this.storeOf(twin).claimsBroken)
      writeAnnouncement(this.#claimsOf(twin).folder, claims, { ...this.claimOf(twin), ...wrong }, twin);
    if (lock !== null) await this.#takeLock(twin, "lock");
  }

  /** Another one holds the lock: it is told so, and for a moment it has the file open, too. */
  async announceInVain(twin: Twin): Promise<void> {
    if (this.#hasPlaceForLock(twin) && takesOrders(twin)) await this.#tryLock(twin, "lock");
  }

  /** Nobody else may hold its lock, and it must be able to hear us. */
  canAnnounce(twin: Twin): boolean {
    if (!isAlive(twin) || isSuspended(twin) || this.isAnnounced(twin)) return false;
    const { claims, lock } = twin.format;
    if (lock === null) return claims !== null && !this.storeOf(twin).claimsBroken && twin.format.announces(twin.argv);
    if (!this.#hasPlaceForLock(twin)) return false;
    const path = this.#lockPath(twin, twin.session);
    return takesOrders(twin) && twin.also === null && !this.twins.some((other) => holdsLock(other, path));
  }

  /** The same process goes on under another id. */
  async goOn(twin: Twin, session: Session): Promise<void> {
    const before = twin.session;
    this.#part(twin, "completed");
    twin.session = session.id;
    if (twin.format.lock === null) return await this.announce(twin);
    twin.also = before;
    await this.#takeLock(twin, "lock-also");
  }

  /** Its true announcement stands, whether it lives or not. */
  isAnnounced(twin: Twin, session = twin.session): boolean {
    const { claims, lock, documents } = twin.format;
    const told = documents === undefined ? null : this.#sessionOf(twin, session);
    if (twin.memory !== null) return runOf(twin, this.storeOf(twin).home, session) !== null;
    if (documents !== undefined) return told !== null && isNamedBy(told, documents, twin);
    if (lock !== null) return isAlive(twin) && holdsLock(twin, this.#lockPath(twin, session));
    if (claims === null || this.storeOf(twin).claimsBroken) return false;
    const claim = readClaim(this.#claimsOf(twin).folder, claims, twin.pid, session);
    const { status: _status, waitingFor: _waitingFor, ...said } = claim ?? this.claimOf(twin);
    const { status: _own, waitingFor: _words, ...truth } = { ...this.claimOf(twin), session };
    return claim !== null && Bun.deepEquals(said, truth);
  }

  #sessionOf({ format }: Twin, id: string): Session | null {
    return [...this.sessions.values()].find((session) => session.id === id && session.format === format) ?? null;
  }

  /** Its last word about a session that it leaves. */
  #part(twin: Twin, outcome: "completed" | "interrupted"): void {
    const { documents } = twin.format;
    for (const id of [twin.session, ...(twin.hosted ?? [])]) {
      const session = this.#sessionOf(twin, id);
      if (session !== null && documents !== undefined && this.recordKind(session) === "record")
        this.append(session, documents.parting(session, outcome));
    }
  }

  /** What its announcement says now, if it is the true one. */
  tell(twin: Twin, word: Word): void {
    twin.word = word;
    if (twin.format.claims !== null && this.isAnnounced(twin)) void this.announce(twin);
  }

  /** Serves another session than its argv says: only its announcement tells. */
  isCleared(twin: Twin): boolean {
    return isAlive(twin) && twin.argvSession !== null && twin.argvSession !== twin.session;
  }

  retract(twin: Twin): void {
    this.#part(twin, "interrupted");
    if (twin.format.lock !== null) {
      for (const id of [twin.session, twin.also])
        if (id !== null && this.isAnnounced(twin, id)) rmSync(this.#lockPath(twin, id), { force: true });
      return;
    }
    if (twin.format.claims !== null && !this.storeOf(twin).claimsBroken) rmSync(this.claimPath(twin), { force: true });
  }

  async makeFifo(path: string): Promise<void> {
    rmSync(path, { force: true, recursive: true });
    const made = await Bun.spawn(["mkfifo", path]).exited;
    if (made !== 0) throw new Error(`harness: mkfifo ${path} ended with ${made}`);
  }

  /** A wrapper ends with its agent, a moment later. */
  async rest(): Promise<void> {
    const left = () => this.twins.filter((twin) => twin.wrapper !== null && isAlive(twin.wrapper) && !isAlive(twin));
    await until("the end of a wrapper", () => left().length === 0);
  }

  async end(): Promise<void> {
    for (const twin of this.twins) killIfSame(twin);
    for (const other of this.#others) killIfSame(other);
    await Promise.all(this.#children.map((child) => child.exited));
    // Those that are not our children die a little later, and would be ghosts in the next world.
    await until("the end of a world", () => ![...this.twins, ...this.#others].some(isAlive));
    this.databases.end();
    rmSync(this.root, { recursive: true, force: true });
  }

  #makeStore(format: Format): Store {
    const home = join(this.agentHome, format.home);
    const recordsFolder = join(home, format.records);
    const claimsFolder = format.claims === null ? null : join(home, format.claims.folder);
    const locks = format.lock?.isExclusive === true ? dirname(join(home, format.lock.path("", 0))) : null;
    for (const folder of [format.database === null ? recordsFolder : dirname(recordsFolder), claimsFolder, locks])
      if (folder !== null) mkdirSync(folder, { recursive: true });
    const folder = join(this.root, "bin");
    const wardrobe =
      typeof format.program === "string"
        ? null
        : makeWardrobe(join(folder, format.agent), join(dirname(this.root), "shell"), format.program);
    const program = wardrobe?.program ?? join(folder, format.command);
    const environment = wardrobe?.environment ?? makeTwinProgram(program, format);
    return {
      format,
      home,
      recordsFolder,
      claimsFolder,
      recordsBroken: false,
      claimsBroken: false,
      program,
      wardrobe,
      environment,
    };
  }

  #claimsOf(twin: Twin): { folder: string; format: ClaimFormat } {
    const { claimsFolder, format } = this.storeOf(twin);
    if (claimsFolder === null || format.claims === null)
      throw new Error(`harness: ${twin.format.agent} announces without files`);
    return { folder: claimsFolder, format: format.claims };
  }

  /** Some have it among their records. */
  #hasPlaceForLock(twin: Twin): boolean {
    const { lock } = twin.format;
    return lock !== null && (lock.isExclusive || !this.storeOf(twin).recordsBroken);
  }

  #lockPath(twin: Twin, session: string): string {
    return join(this.storeOf(twin).home, twin.format.lock?.path(session, twin.pid) ?? "");
  }

  async #takeLock(twin: Twin, which: "lock" | "lock-also"): Promise<void> {
    await this.#tryLock(twin, which);
    if (!this.isAnnounced(twin)) throw new Error(`harness: process ${twin.pid} did not get its lock`);
  }

  async #tryLock(twin: Twin, which: "lock" | "lock-also"): Promise<void> {
    const path = this.#lockPath(twin, twin.session);
    mkdirSync(dirname(path), { recursive: true });
    await tryLock(twin, path, which, join(this.root, "bin", `tried-${twin.pid}`));
  }

  #birth({ cwd, format }: Begun, argv: string[]): Birth & { masked: Wardrobe | null } {
    const { program, environment, wardrobe } = this.storeOf({ format });
    const all = { ...this.environment, ...environment };
    return { program, arguments: argv, cwd, environment: all, masked: wardrobe };
  }

  #masquerade(wardrobe: Wardrobe, birth: Birth, { raised, wrapped, tag }: Start): Masquerade {
    const tagged = tag === "true";
    const wraps = wrapped === true && wardrobe.guises.wrapper !== null;
    const under = raised === "careless" ? "careless" : wraps ? "wrapper" : "us";
    const orders = under === "wrapper" ? join(this.root, "bin", `orders-${this.twins.length}`) : null;
    return { ...birth, wardrobe, under, orders, tagged, ownKernelSession: tag !== undefined };
  }

  #adopt(born: Born, pid: number): Twin {
    const { session, argv, raised, child, bornMs, wrapper, orders = null } = born;
    const { format, id, cwd } = session;
    const twin: Twin = {
      ...identify(pid),
      ...{ format, argv, cwd, bornMs, raised, child, orders },
      argvSession: format.argvNames(argv, id) ? id : null,
      session: id,
      also: null,
      hosted: null,
      memory: null,
      word: format.firstWord(argv, session),
      wrapper: wrapper === null ? null : identify(wrapper),
    };
    this.twins.push(twin);
    if (twin.wrapper !== null) this.#others.push(twin.wrapper);
    if (child !== null) this.#children.push(child);
    return twin;
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

/** What a twin is started for. */
type Begun = Pick<Session, "format" | "cwd" | "id" | "turnOpen" | "asking">;

type Born = Pick<Twin, "raised" | "child" | "bornMs" | "argv"> & {
  session: Begun;
  wrapper: number | null;
  orders?: string | null;
};
