// Steps that write records as an agent does, and steps that damage them.
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { isSuspended } from "./fake-agent.ts";
import { noteRun } from "./gateway.ts";
import type { Dice } from "./random.ts";
import { outcomes } from "./read-record.ts";
import type { Action } from "./schedule.ts";
import type { Session, SimulatedHost } from "./simulated-host.ts";

export const recordSteps: Record<string, Action> = {
  prompt: writing(
    6,
    () => true,
    "prompt",
    (dice) => ({ text: words(dice), mode: dice.pick(["default", "default", "bypass", "plan"]) }),
  ),
  reply: writing(3, open, "reply", (dice) => ({ text: words(dice), tokens: tokens(dice) })),
  // Longer than any window at the end of a file that a reader may take.
  "long-reply": writing(1, open, "reply", (dice) => ({
    text: words(dice).padEnd(50_000 + dice.below(400_000), "long "),
    tokens: tokens(dice),
  })),
  tool: writing(
    4,
    (session) => open(session) && !session.toolRunning,
    "tool",
    () => ({ name: "shell", input: "ls" }),
  ),
  "tool-result": writing(
    2,
    (session) => session.toolRunning,
    "tool-result",
    (dice) => ({
      name: "shell",
      text: words(dice),
      denied: dice.chance(0.2),
    }),
  ),
  question: writing(
    5,
    (session) => session.turnOpen,
    "question",
    (dice) => ({
      kind: dice.pick(["permission", "question", "plan", "other"]),
      text: `may I ${words(dice)}`,
      tool: "shell",
      options: ["yes", "no"],
    }),
  ),
  answer: writing(
    4,
    (session) => session.asking,
    "answer",
    () => ({ text: "yes" }),
  ),
  end: writing(
    6,
    (session) => session.turnOpen,
    "end",
    (dice) => ({ outcome: dice.pick(outcomes), text: words(dice) }),
  ),
  background: writing(
    1,
    () => true,
    "background",
    (dice) => ({ shells: dice.below(3), subagents: dice.below(2) }),
  ),
  title: writing(
    1,
    () => true,
    "title",
    (dice) => ({ text: words(dice) }),
  ),

  // The agent goes on, but its lines come later: while it lives, or after its end.
  "hold-back": {
    weight: 2,
    targets: (host) => numbersOf(host, (session) => mayHoldBack(host, session)),
    async run(host, target) {
      host.session(target).heldBack = [];
    },
  },
  flush: {
    weight: 5,
    targets: (host) => numbersOf(host, ({ heldBack }) => heldBack !== null),
    async run(host, target, dice) {
      const session = host.session(target);
      // Claude Code 2.1.197 now and then writes an answer in front of what it answers.
      const [first, second, ...rest] = session.heldBack ?? [];
      if (session.format.manyWriters && second !== undefined && first !== undefined && dice.chance(0.4))
        session.heldBack = [second, first, ...rest];
      writeHeldBack(host, session);
      session.heldBack = null;
    },
  },

  tear: damage(2, (path, bytes) => {
    const lines = bytes.toString().trimEnd().split("\n");
    const last = lines.at(-1) ?? "";
    appendFileSync(path, last.slice(0, Math.max(1, last.length / 2)));
  }),
  truncate: damage(1, (path, bytes, dice) => truncateSync(path, dice.below(bytes.length))),
  "break-line": damage(2, (path, bytes, dice) => {
    const lines = bytes.toString("latin1").split("\n");
    if (lines.length < 3) return;
    const broken = dice.pick([
      '{"type":"prompt","at":',
      "\u0000\u0000\u0000\u0000",
      "not json",
      "null",
      "[1,2]",
      '"end"',
    ]);
    lines[1 + dice.below(lines.length - 2)] = broken;
    writeFileSync(path, lines.join("\n"), "latin1");
  }),
  // If the id is only there, the record has no known session any more.
  "break-head": damage(1.5, (path, bytes, dice) => {
    const [, ...rest] = bytes.toString("latin1").split("\n");
    writeFileSync(path, [dice.pick(["not json", "null", "{}", '{"type":']), ...rest].join("\n"), "latin1");
  }),
  garbage: damage(1, (path, _bytes, dice) => writeFileSync(path, dice.bytes(20 + dice.below(400)))),
  empty: damage(1, (path) => truncateSync(path, 0)),
  // Put back from a copy: another file, and an earlier end.
  replace: damageOfLines(1, (path, bytes, dice) => {
    const lines = bytes.toString("latin1").split("\n").slice(0, -1);
    writeFileSync(
      `${path}.tmp`,
      lines
        .slice(0, 1 + dice.below(lines.length || 1))
        .map((line) => `${line}\n`)
        .join(""),
      "latin1",
    );
    renameSync(`${path}.tmp`, path);
  }),
  remove: damage(1, (path) => rmSync(path)),
  // Root may read every file: what cannot be read must not be a file.
  block: {
    weight: 2,
    targets: (host) => numbersOfFiles(host),
    async run(host, target, dice) {
      const session = host.session(target);
      const path = host.recordPath(session);
      host.blocked.set(target, { bytes: readFileSync(path), writtenMs: statSync(path).mtimeMs });
      const manner = dice.pick(["folder", "fifo", "loop"]);
      if (manner === "fifo") return await host.makeFifo(path);
      rmSync(path);
      if (manner === "folder") mkdirSync(path);
      else symlinkSync(path, path);
    },
  },
  unblock: {
    weight: 4,
    targets: (host) => [...host.blocked.keys()].filter((number) => !host.storeOf(host.session(number)).recordsBroken),
    async run(host, target) {
      const path = host.recordPath(host.session(target));
      rmSync(path, { recursive: true });
      const { bytes, writtenMs } = host.blocked.get(target) ?? { bytes: "", writtenMs: Date.now() };
      writeFileSync(path, bytes);
      utimesSync(path, writtenMs / 1000, writtenMs / 1000);
      host.blocked.delete(target);
    },
  },
};

export function beginRecord(host: SimulatedHost, session: Session): void {
  if (session.format.can(session, "begin", host.actor(session)))
    put(host, session, session.format.begin(session, host.actor(session)));
}

/** Appends lines like an agent, without reading the existing ones. */
export function appendLine(host: SimulatedHost, session: Session, type: string, fields: Record<string, unknown>): void {
  const { format } = session;
  const actor = host.actor(session);
  const isBlocked = host.isBroken(host.storeOf(session)) || host.blocked.has(session.number);
  if (isBlocked || !format.can(session, type, actor)) return;
  const begins = (session.heldBack ?? []).length === 0 && host.recordKind(session) === "absent";
  put(host, session, (begins ? format.begin(session, actor) : "") + format.lines(session, type, fields, actor));
  if (actor?.memory != null) noteRun(actor, session.id, type, fields);
  const word = actor === null ? null : format.wordAfter(session, type, fields, actor);
  if (type === "prompt" || type === "end") {
    Object.assign(session, { turnOpen: type === "prompt", asking: false, toolRunning: false });
  }
  if (type === "question" || type === "answer") session.asking = type === "question";
  if (type === "tool" || type === "tool-result") session.toolRunning = type === "tool";
  if (actor !== null && word !== null) host.tell(actor, word);
}

function put(host: SimulatedHost, session: Session, text: string): void {
  if (session.heldBack === null) host.append(session, text);
  else session.heldBack.push(text);
}

export function writeHeldBack(host: SimulatedHost, session: Session): void {
  host.append(session, (session.heldBack ?? []).join(""));
}

function mayHoldBack(host: SimulatedHost, session: Session): boolean {
  return session.format.writesLate && session.heldBack === null && isWritable(host, session);
}

function writing(
  weight: number,
  fits: (session: Session) => boolean,
  type: string,
  fields: (dice: Dice) => Record<string, unknown>,
): Action {
  return {
    weight,
    targets: (host) =>
      numbersOf(host, (session) => isWritable(host, session) && fits(session) && can(host, session, type)),
    run: async (host, target, dice) => appendLine(host, host.session(target), type, fields(dice)),
  };
}

type Spoil = (path: string, bytes: Buffer, dice: Dice) => void;

/** A document that names its process must not be written by another one. */
function damageOfLines(weight: number, spoil: Spoil): Action {
  return damage(weight, spoil, ({ format }) => format.documents === undefined);
}

function damage(weight: number, spoil: Spoil, fits = (_session: Session) => true): Action {
  return {
    weight,
    targets: (host) => numbersOf(host, (session) => host.hasFile(session) && fits(session)),
    async run(host, target, dice) {
      const session = host.session(target);
      const others = session.format.documents?.others(session).filter((each) => existsSync(each)) ?? [];
      const path = others.length === 0 ? host.recordPath(session) : dice.pick([host.recordPath(session), ...others]);
      spoil(path, readFileSync(path), dice);
    },
  };
}

function isWritable(host: SimulatedHost, session: Session): boolean {
  if (host.isBroken(host.storeOf(session)) || host.blocked.has(session.number)) return false;
  return host.liveWriters(session).some((fake) => !isSuspended(fake) && host.mayWrite(fake));
}

function can(host: SimulatedHost, session: Session, type: string): boolean {
  const able = host.liveWriters(session).filter((fake) => !isSuspended(fake) && host.mayWrite(fake));
  return able.every((fake) => session.format.can(session, type, fake));
}

function numbersOf(host: SimulatedHost, fits: (session: Session) => boolean): number[] {
  return [...host.sessions.values()].filter(fits).map((session) => session.number);
}

function numbersOfFiles(host: SimulatedHost): number[] {
  return numbersOf(host, (session) => host.hasFile(session));
}

function open(session: Session): boolean {
  return session.turnOpen && !session.asking;
}

function tokens(dice: Dice): Record<string, number> {
  return { input: dice.below(900), output: dice.below(900), cacheRead: dice.below(900), cacheWrite: 0 };
}

// Decoys: text that looks like a mark to a reader that does not parse, and letters of several bytes.
function words(dice: Dice): string {
  return dice.pick([
    "go",
    'write {"type":"end","outcome":"failed"}',
    'say "type":"prompt"',
    "größer 漢字 🙂",
    "a\nb\tc",
  ]);
}
