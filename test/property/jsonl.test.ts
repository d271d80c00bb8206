// Lines of a file, forward and backward, against splitting the whole file at once.
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { linesBackward, linesForward } from "../../src/lib/jsonl.ts";

const chunkBytes = 64 * 1024;
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
const forward = (content: Buffer) => withBytes(content, (fd) => texts(linesForward(fd, content.length)));
const backward = (content: Buffer, most = everything) =>
  withBytes(content, (fd) => texts(linesBackward(fd, content.length, most)));

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

describe("random content", () => {
  test("forward is the split", () => {
    fc.assert(
      fc.property(aContent, (content) => {
        expect(forward(content)).toEqual(split(content));
      }),
    );
  });

  test("backward is the split reversed", () => {
    fc.assert(
      fc.property(aContent, (content) => {
        expect(filled(backward(content))).toEqual(filled(split(content).reverse()));
      }),
    );
  });

  test("backward up to a limit gives the last lines, each of them whole", () => {
    fc.assert(
      fc.property(aContent, fc.nat(3 * chunkBytes), (content, most) => {
        const some = filled(backward(content, most));
        expect(some).toEqual(filled(split(content).reverse()).slice(0, some.length));
      }),
    );
  });

  test("a file that is shorter than it was said to be ends early and does not hang", () => {
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

describe("a line that is too long is null, and its neighbours are read", () => {
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

  test("at the start, at the end, and torn", () => {
    const long = "x".repeat(longestLine + 1);
    expect(backward(Buffer.from(`${long}\nafter\n`))).toEqual(["after", null]);
    expect(backward(Buffer.from(`before\n${long}\n`))).toEqual([null, "before"]);
    expect(backward(Buffer.from(`before\n${long}`))).toEqual(["before"]);
    expect(forward(Buffer.from(`before\n${long}`))).toEqual(["before"]);
  });
});
