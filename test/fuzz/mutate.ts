// Random damage to bytes, to lines and to JSON values, out of dice and a corpus of real files. Knows no agent's format.
import type { Dice } from "../truth/random.ts";

export interface Corpus {
  lines: readonly string[];
  /** Keys and short values of real files: what parsers compare with. */
  keys: readonly string[];
  words: readonly string[];
  /** What patterns look for: tags and the like. */
  tokens: readonly string[];
}

const newline = 10;

/** One to four kinds of damage, one after the other. */
export function mutate(bytes: Buffer, dice: Dice, corpus: Corpus): Buffer {
  let damaged = bytes;
  for (let times = 1 + dice.below(4); times > 0; times -= 1) {
    const kind = dice.next();
    const damage = kind < 0.65 ? damageValue : kind < 0.8 ? damageLines : kind < 0.97 ? damageBytes : replaceAll;
    damaged = damage(damaged, dice, corpus);
  }
  return damaged;
}

function replaceAll(bytes: Buffer, dice: Dice, corpus: Corpus): Buffer {
  const whole = bytes.toString("utf8");
  return dice.pick<() => Buffer>([
    () => Buffer.alloc(0),
    () => Buffer.from("\n".repeat(1 + dice.below(5000))),
    () => Buffer.alloc(dice.below(5000)),
    () => Buffer.from(dice.bytes(dice.below(3000))),
    () => Buffer.from(whole.replaceAll("\n", "\r\n")),
    () => Buffer.from(whole.replaceAll("\n", "\r")),
    () => Buffer.from(`\ufeff${whole}`),
    () => Buffer.from(whole, "utf16le"),
    () => Buffer.from(`${dice.pick(corpus.lines)}\n`),
    () => Buffer.from(`${dice.pick(["null", "42", '"x"', "[]", "{}", "[{}]", "-0", "1e400"])}\n`),
    () => Buffer.from(nested(dice)),
  ])();
}

function damageBytes(bytes: Buffer, dice: Dice): Buffer {
  const at = dice.below(bytes.length + 1);
  const [before, after] = [bytes.subarray(0, at), bytes.subarray(at)];
  return dice.pick<() => Buffer>([
    () => before,
    () => after,
    () => Buffer.concat([before, after.subarray(dice.below(40))]),
    () => Buffer.concat([before, Buffer.from(dice.bytes(1 + dice.below(20))), after]),
    () => Buffer.concat([before, dice.pick(brokenUtf8), after]),
    () => Buffer.concat([before, Buffer.alloc(1 + dice.below(600)), after]),
    () => Buffer.concat([before, Buffer.from([newline]), after]),
    () => Buffer.concat([before, before.subarray(Math.max(0, at - dice.below(400))), after]),
    () => flipped(bytes, dice),
  ])();
}

const brokenUtf8 = [
  [0xc3],
  [0xff, 0xfe],
  [0xed, 0xa0, 0x80],
  [0xf4, 0x90, 0x80, 0x80],
  [0xc0, 0x80],
  [0xef, 0xbb, 0xbf],
].map((bytes) => Buffer.from(bytes));

function flipped(bytes: Buffer, dice: Dice): Buffer {
  const copy = Buffer.from(bytes);
  for (let times = 1 + dice.below(8); times > 0 && copy.length > 0; times -= 1) {
    const at = dice.below(copy.length);
    copy[at] = (copy[at] ?? 0) ^ (1 << dice.below(8));
  }
  return copy;
}

function damageLines(bytes: Buffer, dice: Dice, corpus: Corpus): Buffer {
  const lines = bytes.toString("utf8").split("\n");
  const [from, to] = [dice.below(lines.length), dice.below(lines.length)];
  const [one = "", other = ""] = [lines[from], lines[to]];
  const made = dice.pick<() => string[]>([
    () => lines.toSpliced(from, 1),
    () => lines.toSpliced(from, 1 + dice.below(10)),
    () => lines.toSpliced(from, 0, one),
    () => lines.toSpliced(to, 0, ...lines.slice(from, from + 1 + dice.below(10))),
    () => lines.with(from, other).with(to, one),
    () => lines.toReversed(),
    () => lines.with(from, one.slice(0, dice.below(one.length + 1))),
    () => lines.with(from, one.slice(0, dice.below(one.length + 1)) + other.slice(dice.below(other.length + 1))),
    () => lines.with(from, ""),
    () => lines.with(from, `${one}\r`),
    () => lines.with(from, `${one}${other}`),
    () => lines.with(from, ` \t${one} `),
    () => lines.toSpliced(from, 0, dice.pick(corpus.lines)),
    () => lines.with(from, dice.pick(corpus.lines)),
    () => lines.toSpliced(from, 0, ...Array.from({ length: dice.below(300) }, () => one)),
    () => lines.toSpliced(from, 0, nested(dice)),
  ])();
  return Buffer.from(made.join("\n"));
}

/** One value of one JSON line, at a random path, becomes something else. */
function damageValue(bytes: Buffer, dice: Dice, corpus: Corpus): Buffer {
  const lines = bytes.toString("utf8").split("\n");
  const from = dice.below(lines.length);
  // The newest lines decide most.
  const at = dice.chance(0.4) ? Math.max(0, lines.length - 2 - dice.below(6)) : from;
  const value = jsonOf(lines[at] ?? "");
  if (value === undefined) return bytes;
  return Buffer.from(lines.with(at, mutatedJson(value, dice, corpus)).join("\n"));
}

/** The text of a value in which one place was changed. */
export function mutatedJson(value: unknown, dice: Dice, corpus: Corpus): string {
  const raws: string[] = [];
  const text = JSON.stringify(changed(value, new Odd(dice, corpus, raws)));
  return (text ?? "null").replaceAll(/"@raw (\d+)@"/g, (_, index) => raws[Number(index)] ?? "null");
}

export function jsonOf(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return text.length > 200_000 || depthOf(value) > 200 ? undefined : value;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) return undefined;
    throw error;
  }
}

function depthOf(value: unknown): number {
  let level: unknown[] = [value];
  for (let depth = 0; ; depth += 1) {
    if (level.length === 0 || depth > 1_000) return depth;
    level = level.flatMap((each) => (typeof each === "object" && each !== null ? Object.values(each) : []));
  }
}

function changed(value: unknown, odd: Odd): unknown {
  const { dice } = odd;
  if (dice.chance(0.004)) return odd.deep();
  if (typeof value === "string" && /^\s*[{[]/.test(value) && dice.chance(0.5)) {
    const inner = jsonOf(value);
    if (inner !== undefined) return mutatedJson(inner, dice, odd.corpus);
  }
  if (typeof value !== "object" || value === null || dice.chance(0.08)) return odd.instead(value);
  if (Array.isArray(value)) {
    if (value.length === 0 || dice.chance(0.15)) return odd.list(value);
    const at = dice.below(value.length);
    return value.with(at, changed(value[at], odd));
  }
  const entries = Object.entries(value);
  if (entries.length === 0 || dice.chance(0.2)) return odd.object(entries);
  const at = dice.below(entries.length);
  const [key, inner] = entries[at] ?? ["", null];
  return Object.fromEntries(entries.with(at, [key, changed(inner, odd)]));
}

const inheritedKeys = "__proto__ constructor toString valueOf toJSON hasOwnProperty length then".split(" ");

/** Unexpected values. Object.fromEntries makes even `__proto__` a key like any other. */
class Odd {
  constructor(
    readonly dice: Dice,
    readonly corpus: Corpus,
    private readonly raws: string[],
  ) {}

  instead(old: unknown): unknown {
    const { dice } = this;
    const like = dice.chance(0.5);
    if (like && typeof old === "number") return this.number();
    if (like && typeof old === "string") return this.text(old);
    return dice.pick<() => unknown>([
      () => null,
      () => dice.chance(0.5),
      () => this.number(),
      () => this.text(typeof old === "string" ? old : "x"),
      () => this.list([old]),
      () => this.object([["a", old]]),
      () => [],
      () => ({}),
      () => Object.fromEntries(inheritedKeys.map((key) => [key, 1])),
      () => [Object.fromEntries(inheritedKeys.map((key) => [key, "x"]))],
    ])();
  }

  deep(): unknown {
    return this.raw(nested(this.dice));
  }

  number(): unknown {
    const { dice } = this;
    return dice.pick<unknown>([
      ...[-1, 0, 0.5, 1e308, -1e308, 5e-324, 2 ** 53, 2 ** 53 + 2, 8.64e15 + 1, -8.64e15 - 1, 1e21, 1e15, 255, 65536],
      ...[this.raw("1e400"), this.raw("-1e400"), this.raw("-0"), this.raw("1E+0000001"), dice.below(2 ** 31)],
    ]);
  }

  text(old: string): unknown {
    const { dice, corpus } = this;
    return dice.pick<() => unknown>([
      () => "",
      () => dice.pick(corpus.words),
      () => dice.pick(corpus.words),
      () => dice.pick(inheritedKeys),
      () => dice.pick(inheritedKeys),
      () => dice.pick(times),
      () => dice.pick(oddTexts),
      () => `${old}${dice.pick(oddTexts)}`,
      () => `${dice.pick(oddTexts)}${old}`,
      () => `${dice.pick(corpus.tokens)}${old}${dice.pick(corpus.tokens)}`,
      () => old.slice(0, dice.below(old.length + 1)),
      () => old.toUpperCase(),
      () => dice.uuid(),
      () => this.raw(dice.pick(['"\\ud800"', '"\\udc00\\ud800"', '"a\\u0000b"', '"\\u001b[2J\\u009b1m"', '"\\u202e"'])),
      () => (dice.chance(0.1) ? dice.pick(corpus.tokens).repeat(2_000) : old.repeat(2).slice(0, 5_000)),
    ])();
  }

  list(old: readonly unknown[]): unknown {
    const { dice } = this;
    return dice.pick<() => unknown>([
      () => [...old, ...old],
      () => old.toReversed(),
      () => old.slice(1),
      () => [null, ...old, 1, "x", [], {}],
      () => (dice.chance(0.1) ? Array.from({ length: 2_000 }, () => old[0] ?? null) : old),
      () => Object.fromEntries(old.map((value, index) => [String(index), value])),
    ])();
  }

  object(entries: readonly (readonly [string, unknown])[]): unknown {
    const { dice, corpus } = this;
    const at = dice.below(Math.max(1, entries.length));
    const [key = "a", value = null] = entries[at] ?? [];
    const [, other = null] = entries[dice.below(Math.max(1, entries.length))] ?? [];
    const name = dice.chance(0.4) ? dice.pick(inheritedKeys) : dice.pick(corpus.keys);
    return Object.fromEntries(
      dice.pick<() => readonly (readonly [string, unknown])[]>([
        () => entries.toSpliced(at, 1),
        () => entries.toSpliced(at, 1, [name, value]),
        () => [...entries, [name, value]],
        () => [...entries, [name, this.instead(value)]],
        () => entries.toSpliced(at, 1, [key, other]),
        () => entries.toReversed(),
        () => [],
      ])(),
    );
  }

  /** A piece of text that JSON.stringify would not write. */
  private raw(text: string): string {
    this.raws.push(text);
    return `@raw ${this.raws.length - 1}@`;
  }
}

const times = [
  "+275760-09-13T00:00:00.000Z",
  "-271821-04-20T00:00:00.000Z",
  "+275760-09-13T00:00:00.001Z",
  "0000-00-00T00:00:00Z",
  "9999-12-31T23:59:59.999Z",
  "1970-01-01T00:00:00Z",
  "2026-11-16T25:61:61Z",
  "NaN",
  "Infinity",
  "1e400",
];

const oddTexts = [
  "\x1b[31m",
  "\x1b]0;title\x07",
  "\x9b1m\x08\x00",
  "\u202e\u2066",
  "\ud800",
  "\udc00",
  "\0",
  "\r\n",
  "\n".repeat(50),
  "\u2028\ufeff",
  "../../etc/passwd",
  "/",
  "~",
  "-",
  " ",
  "👩‍👩‍👧‍👦",
  "e\u0301".repeat(30),
  '"',
  "\\",
  "$&$1",
];

function nested(dice: Dice): string {
  const depth = dice.pick([100, 3_000, 10_000, 60_000]);
  return dice.pick([
    "[".repeat(depth) + "]".repeat(depth),
    `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`,
    "[".repeat(depth),
    `${'[{"type":'.repeat(depth)}1${"}]".repeat(depth)}`,
  ]);
}

/** A text that makes a careless pattern slow: a beginning, then the same again and again. `old`: what stood there. */
export function repetitive(dice: Dice, corpus: Corpus, length: number, old = ""): string {
  const known = dice.chance(0.7) ? (old.match(/<\/?[a-z-]+>/g) ?? []) : [];
  const pieces = ["\n", " ", "\t", "a", "<", "[", '"', "\\", "\x1b[", "\x9d", "0;"];
  const piece = (): string => dice.pick(known.length > 0 ? known : dice.chance(0.6) ? corpus.tokens : pieces);
  const beginning = /^"?(<[a-z-]+>)/.exec(old)?.[1] ?? old.slice(1, 1 + dice.below(40));
  const start = dice.chance(0.5) ? piece() : beginning;
  const again = piece() + (dice.chance(0.3) ? piece() : "");
  return start + again.repeat(Math.ceil(length / again.length)) + (dice.chance(0.5) ? piece() : "");
}
