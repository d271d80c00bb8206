// The world of one schedule: a throw-away home, the sessions that were ever made in it, and every process that was started.
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { type Claim, readClaim, writeClaim } from "./announcement.ts";
import { bootId, pidNamespace, readProcChildren, until } from "./proc.ts";
import { readRecord } from "./record.ts";
import {
  type Birth,
  identify,
  isAlive,
  killIfSame,
  type Started,
  spawnCareless,
  spawnNested,
  spawnQuiet,
  type Twin,
  writeTwinScript,
} from "./twin.ts";

export interface Session {
  /** Its name in a step list. */
  number: number;
  id: string;
  cwd: string;
  /** What the twin believes, to choose sensible lines; the oracle reads the file instead. */
  turnOpen: boolean;
  asking: boolean;
  toolRunning: boolean;
}

export class World {
  readonly agentHome: string;
  readonly sessionsFolder: string;
  readonly liveFolder: string;
  readonly userHome: string;
  readonly agentctlHome: string;
  readonly cache: string;
  readonly places: string[];
  readonly sessions = new Map<number, Session>();
  readonly twins: Twin[] = [];
  /** The bytes of records that something unreadable stands in for, by session number. */
  readonly blocked = new Map<number, Uint8Array>();
  /** True while the folder is replaced by a file. */
  sessionsBroken = false;
  liveBroken = false;
  pidReuses = 0;
  pidReusesSkipped = 0;
  readonly #script: string;
  readonly #fifo: string;
  readonly #others: Started[] = [];
  readonly #children: Subprocess[] = [];

  constructor(readonly root: string) {
    this.agentHome = join(root, "demo-home");
    this.sessionsFolder = join(this.agentHome, "sessions");
    this.liveFolder = join(this.agentHome, "live");
    this.userHome = join(root, "home");
    this.agentctlHome = join(root, "agentctl-home");
    this.cache = join(root, "cache");
    this.places = ["work/one", "work/one/inner", "work/two"].map((place) => join(root, place));
    const folders = [
      this.sessionsFolder,
      this.liveFolder,
      this.userHome,
      this.cache,
      join(root, "bin"),
      ...this.places,
    ];
    for (const folder of folders) mkdirSync(folder, { recursive: true });
    this.#script = join(root, "bin", "demo-agent");
    this.#fifo = join(root, "fifo");
    writeTwinScript(this.#script);
  }

  get twinEnvironment(): Record<string, string> {
    return { DEMO_AGENT_HOME: this.agentHome, HOME: this.userHome, PATH: "/usr/bin:/bin" };
  }

  addSession(number: number, id: string, cwd: string): Session {
    if (this.sessions.has(number)) throw new Error(`harness: there is a session ${number} already`);
    const session = { number, id, cwd, turnOpen: false, asking: false, toolRunning: false };
    this.sessions.set(number, session);
    return session;
  }

  session(number: number): Session {
    const session = this.sessions.get(number);
    if (session === undefined) throw new Error(`harness: no session ${number}`);
    return session;
  }

  recordPath(session: Session): string {
    return join(this.sessionsFolder, `${session.id}.jsonl`);
  }

  claimPath(twin: Started): string {
    return join(this.liveFolder, `${twin.pid}.json`);
  }

  recordKind(session: Session): string {
    return readRecord(this.recordPath(session)).kind;
  }

  /** Every twin of a session that ever was, the newest last. */
  writers(session: Session): Twin[] {
    return this.twins.filter((twin) => twin.session === session.id);
  }

  liveWriters(session: Session): Twin[] {
    return this.writers(session).filter(isAlive);
  }

  async startTwin(session: Session, argv: string[], raised: "here" | "careless"): Promise<Twin> {
    const birth = this.#birth(session.cwd, argv);
    const bornMs = Date.now();
    if (raised === "here") {
      const child = spawnQuiet([birth.script, ...argv], birth.cwd, birth.environment);
      return this.#adopt({ session, argv, raised, child, bornMs }, child.pid);
    }
    const { pid, child } = await spawnCareless(birth);
    this.#keep(child);
    return this.#adopt({ session, argv, raised, child, bornMs }, pid);
  }

  async startNested(parent: Twin, session: Session): Promise<Twin> {
    const bornMs = Date.now();
    await this.makeFifo(this.#fifo);
    const pid = await spawnNested(parent, session.id, this.#fifo);
    const argv = ["--session-id", session.id];
    return this.#adopt({ session, argv, raised: "nested", child: null, bornMs }, pid);
  }

  /** A twin at exactly this pid, or null if the kernel gave another one every time. */
  async startTwinAt(pid: number, session: Session, argv: string[], setNextPid: () => void): Promise<Twin | null> {
    const birth = this.#birth(session.cwd, argv);
    const bornMs = Date.now();
    const child = await this.#spawnAt(pid, [birth.script, ...argv], session.cwd, setNextPid);
    return child === null ? null : this.#adopt({ session, argv, raised: "here", child, bornMs }, pid);
  }

  async startStrangerAt(pid: number, command: string[], cwd: string, setNextPid: () => void): Promise<boolean> {
    const child = await this.#spawnAt(pid, command, cwd, setNextPid);
    if (child !== null) this.#keep(child);
    return child !== null;
  }

  startStranger(command: string[], cwd: string): void {
    this.#keep(spawnQuiet(command, cwd, this.twinEnvironment));
  }

  /** Children of twins are ours, too: they survive their parent. */
  noteChildren(twin: Twin): void {
    for (const pid of readProcChildren(twin.pid)) this.#others.push(identify(pid));
  }

  claimOf(twin: Twin): Claim {
    return { pid: twin.pid, start: twin.start, boot: bootId, namespace: pidNamespace, session: twin.session };
  }

  announce(twin: Twin, wrong: Partial<Claim> = {}): void {
    writeClaim(this.liveFolder, { ...this.claimOf(twin), ...wrong }, twin.cwd);
  }

  /** Its true announcement stands, whether it lives or not. */
  isAnnounced(twin: Twin): boolean {
    if (this.liveBroken) return false;
    const claim = readClaim(this.liveFolder, twin.pid);
    return claim !== null && Bun.deepEquals(claim, this.claimOf(twin));
  }

  /** Serves another session than its argv says: only its announcement tells. */
  isCleared(twin: Twin): boolean {
    return isAlive(twin) && twin.argvSession !== null && twin.argvSession !== twin.session;
  }

  retract(twin: Twin): void {
    if (!this.liveBroken) rmSync(this.claimPath(twin), { force: true });
  }

  async makeFifo(path: string): Promise<void> {
    rmSync(path, { force: true, recursive: true });
    const made = await Bun.spawn(["mkfifo", path]).exited;
    if (made !== 0) throw new Error(`harness: mkfifo ${path} ended with ${made}`);
  }

  async end(): Promise<void> {
    for (const twin of this.twins) killIfSame(twin);
    for (const other of this.#others) killIfSame(other);
    await Promise.all(this.#children.map((child) => child.exited));
    // Those that are not our children die a little later, and would be ghosts in the next world.
    await until("the end of a world", () => ![...this.twins, ...this.#others].some(isAlive));
    rmSync(this.root, { recursive: true, force: true });
  }

  #birth(cwd: string, argv: string[]): Birth {
    return { script: this.#script, arguments: argv, cwd, environment: this.twinEnvironment };
  }

  #adopt(born: Pick<Twin, "raised" | "child" | "bornMs"> & { session: Session; argv: string[] }, pid: number): Twin {
    const twin: Twin = {
      ...identify(pid),
      cwd: born.session.cwd,
      bornMs: born.bornMs,
      argvSession: born.argv.includes(born.session.id) ? born.session.id : null,
      session: born.session.id,
      raised: born.raised,
      child: born.child,
    };
    this.twins.push(twin);
    if (born.child !== null) this.#children.push(born.child);
    return twin;
  }

  #keep(child: Subprocess): void {
    this.#children.push(child);
    this.#others.push(identify(child.pid));
  }

  async #spawnAt(pid: number, command: string[], cwd: string, setNextPid: () => void) {
    for (let attempt = 0; attempt < 5; attempt++) {
      setNextPid();
      const child = spawnQuiet(command, cwd, this.twinEnvironment);
      if (child.pid === pid) return child;
      child.kill("SIGKILL");
      await child.exited;
    }
    return null;
  }
}
