// Steps that write records as an agent does, and steps that damage them.
import { appendFileSync, mkdirSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import type { Dice } from "./random.ts";
import { outcomes, recordLine } from "./record.ts";
import type { Action } from "./schedule.ts";
import { isSuspended } from "./twin.ts";
import type { Session, World } from "./world.ts";

export const recordSteps: Record<string, Action> = {
  prompt: writing(
    6,
    () => true,
    "prompt",
    (dice) => ({ text: words(dice) }),
  ),
  reply: writing(3, open, "reply", (dice) => ({ text: words(dice), tokens: tokens(dice) })),
  // Longer than any window at the end of a file that a reader may take.
  "long-reply": writing(1, open, "reply", (dice) => ({
    text: words(dice).padEnd(50_000 + dice.below(400_000), "long "),
    tokens: tokens(dice),
  })),
  tool: writing(
    2,
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
  garbage: damage(1, (path, _bytes, dice) => writeFileSync(path, dice.bytes(20 + dice.below(400)))),
  empty: damage(1, (path) => truncateSync(path, 0)),
  remove: damage(1, (path) => rmSync(path)),
  // Root may read every file: what cannot be read must not be a file.
  block: {
    weight: 2,
    targets: (world) => numbersOfFiles(world),
    async run(world, target, dice) {
      const session = world.session(target);
      const path = world.recordPath(session);
      world.blocked.set(target, readFileSync(path));
      const manner = dice.pick(["folder", "fifo", "loop"]);
      if (manner === "fifo") return await world.makeFifo(path);
      rmSync(path);
      if (manner === "folder") mkdirSync(path);
      else symlinkSync(path, path);
    },
  },
  unblock: {
    weight: 4,
    targets: (world) => (world.sessionsBroken ? [] : [...world.blocked.keys()]),
    async run(world, target) {
      const path = world.recordPath(world.session(target));
      rmSync(path, { recursive: true });
      writeFileSync(path, world.blocked.get(target) ?? "");
      world.blocked.delete(target);
    },
  },
};

export function beginRecord(world: World, session: Session): void {
  const fields = { version: 1, id: session.id, cwd: session.cwd, model: "demo-1", parent: null };
  appendFileSync(world.recordPath(session), recordLine("session", fields));
}

/** What an agent would do: append, without a look at what stands there. Does nothing if the path is blocked. */
export function appendLine(world: World, session: Session, type: string, fields: Record<string, unknown>): void {
  if (world.sessionsBroken || world.blocked.has(session.number)) return;
  if (world.recordKind(session) === "absent") beginRecord(world, session);
  appendFileSync(world.recordPath(session), recordLine(type, fields));
  if (type === "prompt" || type === "end") {
    Object.assign(session, { turnOpen: type === "prompt", asking: false, toolRunning: false });
  }
  if (type === "question" || type === "answer") session.asking = type === "question";
  if (type === "tool" || type === "tool-result") session.toolRunning = type === "tool";
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
      [...world.sessions.values()]
        .filter((session) => isWritable(world, session) && fits(session))
        .map((session) => session.number),
    run: async (world, target, dice) => appendLine(world, world.session(target), type, fields(dice)),
  };
}

function damage(weight: number, spoil: (path: string, bytes: Buffer, dice: Dice) => void): Action {
  return {
    weight,
    targets: numbersOfFiles,
    async run(world, target, dice) {
      const path = world.recordPath(world.session(target));
      spoil(path, readFileSync(path), dice);
    },
  };
}

function isWritable(world: World, session: Session): boolean {
  if (world.sessionsBroken || world.blocked.has(session.number)) return false;
  return world.liveWriters(session).some((twin) => !isSuspended(twin));
}

function numbersOfFiles(world: World): number[] {
  const hasBytes = (session: Session) => !["absent", "unreadable", "empty"].includes(world.recordKind(session));
  return [...world.sessions.values()].filter(hasBytes).map((session) => session.number);
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
