// Lines of a file, forward and backward, against splitting the whole file at once.
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { eachLineWith, linesBackward, linesForward, needleOf, type Read } from "../../src/lib/jsonl.ts";

const chunkBytes = 16 * 1024;
const longestLine = 8 * 1024 * 1024;
// A busy machine is slow, not wrong.
setDefaultTimeout(60_000);

const everything = Number.MAX_SAFE_INTEGER;

const folder = mkdtempSync(join(tmpdir(), "agentctl-jsonl-"));
afterAll(() => rmSync(folder, { recursive: true }));

function withBytes<T>(content: Buffer, read: (fd: number) => T): T {
  const path = join(folder, "record.jsonl");
  writeFileSync(path, content);
  const fd = openSync(path, "r");
  try {
    return read(fd);
  } finally {
    closeSync(fd);
  }
}

const texts = (lines: Iterable<Buffer | null>): (string | null)[] =>
  [...lines].map((line) => line?.toString("latin1") ?? null);
/** Readers that process each line before the next one. */
const passing = (lines: Iterable<Buffer | null>): (string | null)[] =>
  Array.from(lines, (line) => line?.toString("latin1") ?? null);
const forward = (content: Buffer) =>
  withBytes(content, (fd) => {
    const kept = texts(linesForward(fd, content.length));
    expect(passing(linesForward(fd, content.length, 0, "passing"))).toEqual(kept);
    return kept;
  });
const backward = (content: Buffer, most = everything) =>
  withBytes(content, (fd) => {
    const kept = texts(linesBackward(fd, content.length, most));
    expect(passing(linesBackward(fd, content.length, most, "passing"))).toEqual(kept);
    return kept;
  });

const linesWith = (bytes: number | Buffer, size: number, sought: readonly string[], read?: Read): string[] => {
  const found: string[] = [];
  eachLineWith(
    sought.map(needleOf),
    [bytes, 0, size],
    (block, from, to) => found.push(block.toString("latin1", from, to)),
    read,
  );
  return found;
};

/** What stands behind the last newline is no line yet. */
const split = (content: Buffer): string[] => content.toString("latin1").split("\n").slice(0, -1);

/** An empty line carries nothing: whether it is passed on makes no difference to any reader. */
const filled = (lines: (string | null)[]): (string | null)[] => lines.filter((line) => line !== "");

const aLine = fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: "binary", maxLength: 12 }).map((text) => text.replaceAll("\n", "")) },
  { weight: 1, arbitrary: fc.constant("") },
  { weight: 1, arbitrary: fc.constant('{"a":1}\r') },
  {
    weight: 1,
    arbitrary: fc.integer({ min: chunkBytes - 3, max: chunkBytes + 3 }).map((length) => "x".repeat(length)),
  },
);
const aContent = fc
  .record({ lines: fc.array(aLine, { maxLength: 8 }), rest: fc.constantFrom("", "", "torn", "x".repeat(chunkBytes)) })
  .map(({ lines, rest }) => Buffer.from(lines.map((line) => `${line}\n`).join("") + rest));

describe("a file of random lines", () => {
  test("reading forward gives the lines in order", () => {
    fc.assert(
      fc.property(aContent, (content) => {
        expect(forward(content)).toEqual(split(content));
      }),
    );
  });

  test("reading backward gives the lines in reverse order", () => {
    fc.assert(
      fc.property(aContent, (content) => {
        expect(filled(backward(content))).toEqual(filled(split(content).reverse()));
      }),
    );
  });

  test("reading backward up to a limit gives the last whole lines", () => {
    fc.assert(
      fc.property(aContent, fc.nat(3 * chunkBytes), (content, most) => {
        const some = filled(backward(content, most));
        expect(some).toEqual(filled(split(content).reverse()).slice(0, some.length));
      }),
    );
  });

  test("reading a file that has become shorter ends early and does not hang", () => {
    fc.assert(
      fc.property(aContent, fc.integer({ min: 1, max: 2 * chunkBytes }), (content, more) => {
        const grown = withBytes(content, (fd) => texts(linesForward(fd, content.length + more)));
        expect(grown).toEqual(split(content));
        const back = withBytes(content, (fd) => texts(linesBackward(fd, content.length + more, everything)));
        expect(back.length).toBeLessThanOrEqual(split(content).length);
      }),
    );
  });
});

describe("lines that contain one of several texts", () => {
  const someTexts = fc.array(fc.constantFrom("a", "{", "xx", "ax", "}\r", "x\u0001", "torn", '"a":'), {
    minLength: 1,
    maxLength: 4,
  });

  test("are found completely and in order", () => {
    fc.assert(
      fc.property(aContent, someTexts, (content, sought) => {
        const expected = split(content).filter((line) => sought.some((text) => line.includes(text)));
        expect(withBytes(content, (fd) => linesWith(fd, content.length, sought))).toEqual(expected);
        expect(linesWith(content, content.length, sought)).toEqual(expected);
      }),
    );
  });

  test("are the same for every size of the read buffer", () => {
    const few: Read = (fd, into, offset, length, position) => readSync(fd, into, offset, Math.min(length, 7), position);
    fc.assert(
      fc.property(fc.array(fc.constantFrom("a", "ab", "b".repeat(9), "", "{}\n{}"), { maxLength: 20 }), (lines) => {
        const content = Buffer.from(lines.map((line) => `${line}\n`).join(""));
        const expected = split(content).filter((line) => /[a{]/.test(line));
        expect(withBytes(content, (fd) => linesWith(fd, content.length, ["a", "{"], few))).toEqual(expected);
      }),
    );
  });

  test.each([
    ['{"b":1,"is_done":true}', true],
    ['{"is_done" : \t true }', true],
    ['{"is_done":false,"b":true}', false],
    ['{"is_done":"true"}', false],
    ['{"not_done":true}', false],
    ['{"text":"\\"is_done\\":true"}', false],
    ['{"is_done":', false],
    ['{"is_done"', false],
    ['_done":true', false],
    ['{"is_done":false,"in":{"is_done":true}}', true],
  ])("are found by a key with a value, in %s: %p", (line, isFound) => {
    const content = Buffer.from(`${line}\n{}\n${line}\n`);
    expect(linesWith(content, content.length, ['"is_done":true'])).toEqual(isFound ? [line, line] : []);
  });

  test("are skipped if they are too long, in the middle, at the end and in a row", () => {
    const long = (bytes: number) => `a${"x".repeat(bytes - 2)}a\n`;
    const content = Buffer.from(
      `a1\n${long(longestLine + 1)}${long(longestLine + 9_999_999)}a2\n${long(longestLine)}b\na3\n`,
    );
    const found = withBytes(content, (fd) => linesWith(fd, content.length, ["a"]));
    expect(found.map((line) => (line.length > 9 ? line.length : line))).toEqual(["a1", "a2", longestLine, "a3"]);
    const torn = Buffer.from(`a1\n${long(longestLine + 1).trimEnd()}`);
    expect(withBytes(torn, (fd) => linesWith(fd, torn.length, ["a"]))).toEqual(["a1"]);
  });

  test("are reported up to the end of a file that has become shorter", () => {
    const content = Buffer.from("a\na\n");
    const end = withBytes(content, (fd) => eachLineWith([needleOf("a")], [fd, 2, 100], () => {}));
    expect(end).toBe(content.length);
  });
});

describe("shapes", () => {
  const cases: [name: string, content: string, lines: string[]][] = [
    ["empty", "", []],
    ["one newline", "\n", [""]],
    ["no newline", "{}", []],
    ["one line", "{}\n", ["{}"]],
    ["torn", '{}\n{"a', ["{}"]],
    ["carriage returns stay", "a\r\nb\r\n", ["a\r", "b\r"]],
    ["empty lines in between", "a\n\n\nb\n", ["a", "", "", "b"]],
    ["bytes that are no text", "\xff\xfe\x00\n", ["\xff\xfe\x00"]],
    ["a newline ends the chunk", `${"x".repeat(chunkBytes - 1)}\nb\n`, ["x".repeat(chunkBytes - 1), "b"]],
    ["a newline begins the next chunk", `${"x".repeat(chunkBytes)}\nb\n`, ["x".repeat(chunkBytes), "b"]],
    ["a line over three chunks", `a\n${"x".repeat(3 * chunkBytes)}\nb\n`, ["a", "x".repeat(3 * chunkBytes), "b"]],
  ];
  test.each(cases)("%s", (_name, text, lines) => {
    const content = Buffer.from(text, "latin1");
    expect(forward(content)).toEqual(lines);
    expect(filled(backward(content))).toEqual(filled(lines.toReversed()));
  });
});

describe("a line that is too long is null, and the lines beside it are read", () => {
  const around = (bytes: number) => Buffer.from(`before\n${"x".repeat(bytes)}\nafter\n`);
  const summary = (lines: (string | null)[]) =>
    lines.map((line) => (line !== null && line.length > 9 ? line.length : line));
  const cases: [name: string, bytes: number, middle: number | null][] = [
    ["just short enough", longestLine, longestLine],
    ["one byte too long", longestLine + 1, null],
    ["far too long", longestLine + 3 * chunkBytes + 7, null],
  ];
  test.each(cases)("%s", (_name, bytes, middle) => {
    expect(summary(forward(around(bytes)))).toEqual(["before", middle, "after"]);
    expect(summary(backward(around(bytes)))).toEqual(["after", middle, "before"]);
  });

  test("at the start, at the end, and cut off", () => {
    const long = "x".repeat(longestLine + 1);
    expect(backward(Buffer.from(`${long}\nafter\n`))).toEqual(["after", null]);
    expect(backward(Buffer.from(`before\n${long}\n`))).toEqual([null, "before"]);
    expect(backward(Buffer.from(`before\n${long}`))).toEqual(["before"]);
    expect(forward(Buffer.from(`before\n${long}`))).toEqual(["before"]);
  });
});

test("two readers of one file do not disturb each other", () => {
  const content = Buffer.from(
    Array.from({ length: 3_000 }, (_, number) => `line ${number} ${"x".repeat(20)}\n`).join(""),
  );
  const lines = split(content);
  withBytes(content, (fd) => {
    const down = linesForward(fd, content.length, 0, "passing");
    const up = linesBackward(fd, content.length, everything, "passing");
    for (const [index, expected] of lines.entries()) {
      expect(down.next().value?.toString("latin1")).toBe(expected);
      expect(up.next().value?.toString("latin1")).toBe(lines[lines.length - 1 - index]);
    }
  });
});
