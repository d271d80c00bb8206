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
import { noteRun } from "./gateway.ts";
import type { Dice } from "./random.ts";
import { outcomes } from "./record.ts";
import type { Action } from "./schedule.ts";
import { isSuspended } from "./twin.ts";
import type { Session, World } from "./world.ts";

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
    targets: (world) => numbersOf(world, (session) => mayHoldBack(world, session)),
    async run(world, target) {
      world.session(target).heldBack = [];
    },
  },
  flush: {
    weight: 5,
    targets: (world) => numbersOf(world, ({ heldBack }) => heldBack !== null),
    async run(world, target, dice) {
      const session = world.session(target);
      // Claude Code 2.1.197 now and then writes an answer in front of what it answers.
      const [first, second, ...rest] = session.heldBack ?? [];
      if (session.format.manyWriters && second !== undefined && first !== undefined && dice.chance(0.4))
        session.heldBack = [second, first, ...rest];
      writeHeldBack(world, session);
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
  // Where an id stands only there, nobody can tell any more whose record it is.
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
    targets: (world) => numbersOfFiles(world),
    async run(world, target, dice) {
      const session = world.session(target);
      const path = world.recordPath(session);
      world.blocked.set(target, { bytes: readFileSync(path), writtenMs: statSync(path).mtimeMs });
      const manner = dice.pick(["folder", "fifo", "loop"]);
      if (manner === "fifo") return await world.makeFifo(path);
      rmSync(path);
      if (manner === "folder") mkdirSync(path);
      else symlinkSync(path, path);
    },
  },
  unblock: {
    weight: 4,
    targets: (world) =>
      [...world.blocked.keys()].filter((number) => !world.storeOf(world.session(number)).recordsBroken),
    async run(world, target) {
      const path = world.recordPath(world.session(target));
      rmSync(path, { recursive: true });
      const { bytes, writtenMs } = world.blocked.get(target) ?? { bytes: "", writtenMs: Date.now() };
      writeFileSync(path, bytes);
      utimesSync(path, writtenMs / 1000, writtenMs / 1000);
      world.blocked.delete(target);
    },
  },
};

export function beginRecord(world: World, session: Session): void {
  if (session.format.can(session, "begin", world.actor(session)))
    put(world, session, session.format.begin(session, world.actor(session)));
}

/** What an agent would do: say it, and append its lines, without a look at what stands there. */
export function appendLine(world: World, session: Session, type: string, fields: Record<string, unknown>): void {
  const { format } = session;
  const actor = world.actor(session);
  const isBlocked = world.isBroken(world.storeOf(session)) || world.blocked.has(session.number);
  if (isBlocked || !format.can(session, type, actor)) return;
  const begins = (session.heldBack ?? []).length === 0 && world.recordKind(session) === "absent";
  put(world, session, (begins ? format.begin(session, actor) : "") + format.lines(session, type, fields, actor));
  if (actor?.memory != null) noteRun(actor, session.id, type, fields);
  const word = actor === null ? null : format.wordAfter(session, type, fields, actor);
  if (type === "prompt" || type === "end") {
    Object.assign(session, { turnOpen: type === "prompt", asking: false, toolRunning: false });
  }
  if (type === "question" || type === "answer") session.asking = type === "question";
  if (type === "tool" || type === "tool-result") session.toolRunning = type === "tool";
  if (actor !== null && word !== null) world.tell(actor, word);
}

function put(world: World, session: Session, text: string): void {
  if (session.heldBack === null) world.append(session, text);
  else session.heldBack.push(text);
}

export function writeHeldBack(world: World, session: Session): void {
  world.append(session, (session.heldBack ?? []).join(""));
}

function mayHoldBack(world: World, session: Session): boolean {
  return session.format.writesLate && session.heldBack === null && isWritable(world, session);
}

function writing(
  weight: number,
  fits: (session: Session) => boolean,
  type: string,
  fields: (dice: Dice) => Record<string, unknown>,
): Action {
  return {
    weight,
    targets: (world) =>
      numbersOf(world, (session) => isWritable(world, session) && fits(session) && can(world, session, type)),
    run: async (world, target, dice) => appendLine(world, world.session(target), type, fields(dice)),
  };
}

type Spoil = (path: string, bytes: Buffer, dice: Dice) => void;

/** A document that says who has it must not be written by another one. */
function damageOfLines(weight: number, spoil: Spoil): Action {
  return damage(weight, spoil, ({ format }) => format.documents === undefined);
}

function damage(weight: number, spoil: Spoil, fits = (_session: Session) => true): Action {
  return {
    weight,
    targets: (world) => numbersOf(world, (session) => world.hasFile(session) && fits(session)),
    async run(world, target, dice) {
      const session = world.session(target);
      const others = session.format.documents?.others(session).filter((each) => existsSync(each)) ?? [];
      const path = others.length === 0 ? world.recordPath(session) : dice.pick([world.recordPath(session), ...others]);
      spoil(path, readFileSync(path), dice);
    },
  };
}

function isWritable(world: World, session: Session): boolean {
  if (world.isBroken(world.storeOf(session)) || world.blocked.has(session.number)) return false;
  return world.liveWriters(session).some((twin) => !isSuspended(twin) && world.mayWrite(twin));
}

/** Whoever of its writers comes next. */
function can(world: World, session: Session, type: string): boolean {
  const able = world.liveWriters(session).filter((twin) => !isSuspended(twin) && world.mayWrite(twin));
  return able.every((twin) => session.format.can(session, type, twin));
}

function numbersOf(world: World, fits: (session: Session) => boolean): number[] {
  return [...world.sessions.values()].filter(fits).map((session) => session.number);
}

function numbersOfFiles(world: World): number[] {
  return numbersOf(world, (session) => world.hasFile(session));
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
