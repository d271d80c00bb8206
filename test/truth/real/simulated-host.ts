// The simulated host of one schedule: its real agents, what the schedule did to each, and the resulting truth.
import { readdirSync, readFileSync } from "node:fs";
import { type ClaudeVersion, createTestHome, type TestHome, type Tui } from "../../agents/test-home.ts";
import type { Dice } from "../random.ts";
import { emptyTally, type Lie, type Tally } from "../tally.ts";
import { checkScene } from "./check-answer.ts";

export interface Identity {
  pid: number;
  start: string;
}

export type AgentName = "claude" | "codex";

/** fresh: an interface before its first prompt. lingering: a headless one between its last answer and its exit. */
export type Phase = "fresh" | "idle" | "held" | "tool" | "asking" | "lingering";

/** The process that has a session now, and what it was told last. */
export interface Life {
  kind: "headless" | "interface";
  owner: Identity;
  /** The owner is Codex's daemon, which has other sessions, too. */
  served: boolean;
  /** The terminal that shows it; a served session may have none. */
  tui: Tui | null;
  /** "ask": its tools ask first. */
  permission: "ask" | "bypass" | "unsure";
  phase: Phase;
  suspended: boolean;
  /** What the model waits for before it goes on. */
  hold: string | null;
  /** The file that its tool follows, and by which the tool is found. */
  tool: string | null;
}

/** One thing that may be said of a session. At rest there is exactly one. */
export interface Truth {
  /** Running while it lives. "some": a process that is being started. */
  owner: Identity | "some" | null;
  activities: string[];
  /** What may be said once it is dead. */
  outcomes: (string | null)[];
  /** Without a record and without a process there is no session. */
  recorded: boolean;
  /** A part of what it waits for. */
  question: string | null;
  /** Only where its process no longer says that it has it: some give a session back before they end. */
  withdrawn: boolean;
  /** While one of these lives, unknown is honest. */
  doubt: Identity[];
}

export interface Session {
  number: number;
  id: string;
  agent: AgentName;
  life: Life | null;
  /** How its last closed turn ended. */
  outcomes: (string | null)[];
  recorded: boolean;
  /** Claude sends its next prompt in one message with the result of an interrupted call: the fake model would miss it. */
  mixed: boolean;
  was: Identity | null;
  doubt: Identity[];
  truths: Truth[];
}

export class Scene {
  readonly sessions = new Map<number, Session>();
  readonly tally: Tally = emptyTally();
  lies: Lie[] = [];
  /** What `agentctl why` said of the first lie. */
  evidence = "";
  /** Sessions that are being created, with unknown ids. */
  newcomers = 0;
  /** Processes that may be shown without a session: they are starting, or lost their server. */
  nameless: Identity[] = [];
  /** Something is under way: answers of two moments may differ. */
  moving = false;
  #marks = 0;
  readonly #settledLater = new Set<Session>();

  private constructor(
    readonly world: TestHome,
    readonly bin: string,
    readonly claude: ClaudeVersion,
    readonly daemon: boolean,
    readonly approval: "never" | "on-request",
  ) {}

  /** The kind of home comes from the dice, too. */
  static async open(bin: string, dice: Dice): Promise<Scene> {
    const claude = dice.pick(["2.1.197", "2.1.325"] as const);
    const codexDaemon = dice.pick(["off", "off", "shared"] as const);
    const codexApproval = dice.pick(["never", "on-request"] as const);
    const world = await createTestHome({ claude, codexDaemon, codexApproval });
    return new Scene(world, bin, claude, codexDaemon === "shared", codexApproval);
  }

  get(number: number): Session {
    const session = this.sessions.get(number);
    if (session === undefined) throw new Error(`no session ${number}`);
    return session;
  }

  add(number: number, agent: AgentName, id: string): Session {
    const session: Session = {
      ...{ number, agent, id, life: null, outcomes: [null], recorded: false, mixed: false, was: null, doubt: [] },
      truths: [],
    };
    this.sessions.set(number, session);
    return session;
  }

  nextNumber(): number {
    return Math.max(0, ...[...this.sessions.keys()].filter((number) => number < 100)) + 1;
  }

  /** What came out of session 3 is 301, 302, …: also where other steps were dropped. */
  childNumber(parent: number): number {
    const first = parent * 100 + 1;
    return Math.max(
      first,
      ...[...this.sessions.keys()].filter((number) => originOf(number) === parent).map((n) => n + 1),
    );
  }

  /** A word that no other prompt of this home has. */
  mark(letter: string): string {
    this.#marks += 1;
    return `${letter}${this.#marks}x`;
  }

  /** Sessions with a process, or all. */
  living(): (Session & { life: Life })[] {
    return [...this.sessions.values()].filter((each): each is Session & { life: Life } => each.life !== null);
  }

  /** Headless agents that ended by themselves since the last look. */
  refresh(): void {
    const live = liveProcesses();
    for (const session of this.living())
      if (session.life.phase === "lingering" && find(live, session.life.owner) === null)
        this.bury(session, session.outcomes);
  }

  bury(session: Session, outcomes: (string | null)[]): void {
    if (session.life !== null) this.mix(session, session.life, outcomes);
    session.was = session.life?.owner ?? null;
    session.life = null;
    session.outcomes = outcomes;
    this.settle(session);
  }

  mix(session: Session, { phase }: Life, outcomes: (string | null)[]): void {
    const inCall = phase === "tool" || phase === "asking";
    session.mixed ||= session.agent === "claude" && inCall && outcomes.includes("interrupted");
  }

  settle(session: Session): void {
    const truth = truthOf(this, session);
    // Codex's exec releases its lock seconds before it exits: then no process has the session, and the process has none.
    const truths = session.life?.phase === "lingering" ? [truth, { ...truth, owner: null, withdrawn: true }] : [truth];
    // A command that is running now may have read the state before.
    session.truths = this.moving ? [...session.truths, ...truths] : truths;
    if (this.moving) this.#settledLater.add(session);
  }

  /**
   * Does something and waits for the agent's own sign that it is done; meanwhile asks a few times.
   * Until then the old truth holds, and so does each of `between`.
   */
  async during<T>(dice: Dice, change: Change, act: () => Promise<T>): Promise<T> {
    const { session = null, between = [], newcomers = 0 } = change;
    if (session !== null) session.truths = [truthOf(this, session), ...between];
    this.newcomers = newcomers;
    this.moving = true;
    if (change.unnamed !== undefined) this.nameless.push(change.unnamed);
    let over = false;
    const outcome = act().then(
      (value) => ({ ok: true as const, value }),
      (error: unknown) => ({ ok: false as const, error }),
    );
    void outcome.then(() => {
      over = true;
    });
    // Not a wait for something: the moment of asking is a choice like any other.
    const moments = Array.from({ length: dice.below(3) }, () => dice.below(700));
    for (const waitMs of moments) {
      await Promise.race([outcome, Bun.sleep(waitMs)]);
      if (over || this.lies.length > 0) break;
      await checkScene(this, dice);
    }
    const result = await outcome;
    this.newcomers = 0;
    this.moving = false;
    for (const each of this.#settledLater) this.settle(each);
    this.#settledLater.clear();
    this.nameless = this.nameless.filter((each) => each !== change.unnamed);
    if (!result.ok) throw new Error("the agent gave no sign", { cause: result.error });
    return result.value;
  }
}

export const originOf = (number: number): number => Math.floor(number / 100);

export interface Change {
  session?: Session;
  between?: Truth[];
  newcomers?: number;
  /** It may be shown without a session meanwhile. */
  unnamed?: Identity;
}

/** What the schedule knows, put into the words of the contract; what an agent's note calls unknowable may be unclear. */
export function truthOf(scene: Scene, session: Session): Truth {
  const { life, outcomes, recorded, doubt } = session;
  if (life === null)
    return { owner: null, activities: [], outcomes, recorded, question: null, withdrawn: false, doubt };
  return {
    owner: life.owner,
    activities: activitiesOf(scene, session, life),
    outcomes: isOpen(life) ? ["cut-off"] : outcomes,
    recorded,
    question: life.phase === "asking" ? life.tool : null,
    withdrawn: false,
    doubt,
  };
}

export const isOpen = ({ phase }: Life): boolean => phase === "held" || phase === "tool" || phase === "asking";

function activitiesOf(scene: Scene, { agent, outcomes }: Session, life: Life): string[] {
  const ownCodex = agent === "codex" && !life.served;
  const mute = agent === "claude" && life.kind === "headless" && scene.claude === "2.1.197";
  switch (life.phase) {
    case "fresh":
      return ownCodex ? ["idle", "unclear"] : ["idle"];
    case "idle":
      // Reopened after a turn that was cut off: its rollout ends inside of that turn.
      return ownCodex && outcomes.includes("cut-off") ? ["idle", "unclear"] : ["idle"];
    case "held":
      return ["working"];
    case "tool":
      return ownCodex || mute ? ["working", "unclear"] : ["working"];
    case "asking":
      return ownCodex ? ["waiting", "unclear"] : ["waiting"];
    case "lingering":
      return ["idle"];
  }
}

/** A process that is being started has it, or no process yet. */
export const starting = (outcomes: (string | null)[] = [null]): Truth => ({
  ...{ owner: "some", activities: ["working", "unclear", "idle"], outcomes, recorded: true, question: null },
  ...{ withdrawn: false, doubt: [] },
});

/** It has the session and is on its way to this. */
export const becoming = (scene: Scene, session: Session, ...activities: string[]): Truth => ({
  ...truthOf(scene, session),
  activities,
  recorded: true,
});

/** It ends, and this is how; before it is gone it may have closed its turn, and withdrawn what it announced. */
export function ending(scene: Scene, session: Session, outcomes: (string | null)[]): Truth[] {
  const truth = truthOf(scene, session);
  const leaving: Truth = { ...truth, activities: [...truth.activities, "idle", "unclear"], outcomes };
  const doubt = session.life === null ? [] : [session.life.owner];
  return [leaving, { ...leaving, owner: null, withdrawn: true, doubt }];
}

interface Stat {
  start: string;
  state: string;
  parent: number;
  name: string;
}

export type Live = Map<number, Stat>;

/**
 * Every process that is not dead, by its stat alone: of one that was killed the environment, by which the rig knows its
 * own, is gone while the kernel still takes it apart.
 */
export function liveProcesses(): Live {
  const live: Live = new Map();
  for (const name of readdirSync("/proc")) {
    const stat = /^\d+$/.test(name) ? readStat(name) : null;
    if (stat !== null && stat.state !== "Z" && stat.state !== "X") live.set(Number(name), stat);
  }
  return live;
}

function readStat(pid: string): Stat | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const name = text.slice(text.indexOf("(") + 1, text.lastIndexOf(")"));
    return { state: fields[0] ?? "", parent: Number(fields[1]), start: fields[19] ?? "", name };
  } catch (error) {
    if (error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ESRCH")) return null;
    throw error;
  }
}

export function find(live: Live, { pid, start }: Identity): Stat | null {
  const seen = live.get(pid);
  return seen?.start === start ? seen : null;
}

export const bootId = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
