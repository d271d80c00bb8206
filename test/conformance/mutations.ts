// Ways to break a file, without a word about any agent's format. Each yields a label and the broken content.

export type Mutation = [label: string, content: string | Uint8Array];

const newline = 10;

export function* brokenBytes(bytes: Buffer): Generator<Mutation> {
  const random = Buffer.from(noise(4096));
  yield ["empty", ""];
  yield ["one newline", "\n"];
  yield ["blank lines", "\n\n \n\t\n"];
  yield ["random bytes", random];
  yield ["random bytes at the end", Buffer.concat([bytes, random])];
  yield ["random bytes before", Buffer.concat([random, bytes])];
  yield ["NULs", Buffer.alloc(4096)];
  yield ["NULs at the end", Buffer.concat([bytes, Buffer.alloc(512)])];
  yield ["a byte order mark", Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes])];
  yield ["UTF-16", Buffer.from(bytes.toString("utf8"), "utf16le")];
  yield ["broken UTF-8", Buffer.from(bytes.map((byte, index) => (index % 40 === 20 ? 0xc3 : byte)))];
  yield ["brackets, deep", "[".repeat(100_000) + "]".repeat(100_000)];
  yield ["brackets, deep and open", `${'{"a":'.repeat(100_000)}\n`];
  for (const text of ["null", "42", '"text"', "[]", "{}", "true", "[{}]", '{"__proto__":{"type":1}}'])
    yield [`only ${text}`, `${text}\n`];
}

/** Cut everywhere near a line's end, and at even distances between. */
export function cutOffsets(bytes: Buffer): number[] {
  const offsets = new Set<number>();
  for (let at = bytes.indexOf(newline); at !== -1; at = bytes.indexOf(newline, at + 1))
    for (const near of [at - 1, at, at + 1, at + 2]) offsets.add(near);
  for (let part = 0; part < 20; part += 1) offsets.add(Math.floor((bytes.length * part) / 20));
  return [...offsets].filter((offset) => offset >= 0 && offset < bytes.length).sort((a, b) => a - b);
}

export const linesOf = (bytes: Buffer): string[] => bytes.toString("utf8").replace(/\n$/, "").split("\n");

export const textOf = (lines: readonly string[]): string => `${lines.join("\n")}\n`;

/** Each value of each JSON line, however deep, replaced by each of what `by` offers for it. At most `most` of them, spread evenly. */
export function replacedValues(bytes: Buffer, most: number, by: (old: unknown) => readonly unknown[]): Mutation[] {
  const lines = linesOf(bytes);
  const all = lines.flatMap((line, index) => {
    const value = parsed(line);
    return value === undefined ? [] : [...replaced(value, by, `line ${index + 1}`)].map((made) => ({ index, ...made }));
  });
  const stride = Math.max(1, all.length / most);
  const picked = Array.from({ length: Math.min(all.length, most) }, (_, index) => all[Math.floor(index * stride)]);
  return picked.flatMap((made) => {
    if (made === undefined) return [];
    const text = JSON.stringify(made.value).replaceAll(/"@raw (.*?)@"/g, "$1");
    return [[made.label, textOf(lines.with(made.index, text))] satisfies Mutation];
  });
}

/** Stands for a token that JSON.stringify would not write. */
export const raw = (token: string): string => `@raw ${token}@`;

export function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function* replaced(
  value: unknown,
  by: (old: unknown) => readonly unknown[],
  path: string,
): Generator<{ label: string; value: unknown }> {
  for (const other of by(value)) yield { label: `${path} = ${JSON.stringify(other)?.slice(0, 40)}`, value: other };
  if (typeof value !== "object" || value === null) return;
  for (const [key, inner] of Object.entries(value))
    for (const made of replaced(inner, by, `${path}.${key}`)) {
      const whole: unknown = Array.isArray(value)
        ? value.with(Number(key), made.value)
        : { ...value, [key]: made.value };
      yield { label: made.label, value: whole };
    }
}

/** The same bytes every time. */
function noise(length: number): Uint8Array {
  let state = 0x2545f491;
  return Uint8Array.from({ length }, () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state & 0xff;
  });
}
