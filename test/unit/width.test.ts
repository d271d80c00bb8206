// Text of strangers before it meets a terminal: nothing in it acts, and it keeps to its column.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { cut, jsonLine, oneLine, pad, plainText, someLines, someOf, width, wrap } from "../../src/lib/width.ts";

describe("plainText", () => {
  const cases: [name: string, text: string, plain: string][] = [
    ["plain", "Zwölf Boxkämpfer 🥊", "Zwölf Boxkämpfer 🥊"],
    ["line breaks and tabs stay", "a\n\tb", "a\n\tb"],
    ["carriage returns become line breaks", "a\r\nb\rc", "a\nb\nc"],
    ["colours", "\x1b[31mred\x1b[0m", "red"],
    ["colours with subparameters", "\x1b[38:2::1:2:3mred", "red"],
    ["private modes", "\x1b[?1049hscreen\x1b[?25l", "screen"],
    ["cursor and erase", "a\x1b[2J\x1b[1;1Hb", "ab"],
    ["an intermediate byte", "a\x1b[0 qb", "ab"],
    ["a title, ended by BEL", "\x1b]0;owned\x07x", "x"],
    ["a title, ended by ST", "\x1b]0;owned\x1b\\x", "x"],
    ["a link", "\x1b]8;;http://evil\x1b\\text\x1b]8;;\x1b\\", "text"],
    ["a clipboard write", "\x1b]52;c;cm0gLXJm\x07x", "x"],
    ["DCS", "\x1bPq#0;2;0;0;0\x1b\\x", "x"],
    ["APC, PM and SOS", "\x1b_a\x1b\\\x1b^b\x1b\\\x1bXc\x1b\\x", "x"],
    ["a reset", "\x1bcx", "x"],
    ["a character set", "\x1b(0x", "x"],
    ["CSI as one C1 character", "\x9b31mred", "red"],
    ["other C1 characters", "a\x84\x85\x8db", "ab"],
    ["C0 characters", "a\x00\x07\x08\x0b\x0c\x0e\x7fb", "ab"],
    ["a lone escape", "a\x1b", "a"],
    ["an escape that hides another", "\x1b\x1b[31mx", "x"],
    ["reading direction", "a\u202ecod.exe\u202c\u2066b\u2069\u200e\u200fc", "acod.exebc"],
    ["a byte order mark", "\ufeffa", "a"],
    ["a lone high surrogate", "a\ud800b", "a\ufffdb"],
    ["a lone low surrogate", "a\udc00", "a\ufffd"],
    ["swapped surrogates", "\udc00\ud800", "\ufffd\ufffd"],
    ["OSC as one C1 character takes its text along", "\x9d0;owned\x07x", "x"],
    ["DCS as one C1 character takes its text along", "\x90q\x9cx", "x"],
    ["the Arabic letter mark, a direction mark too", "a\u061cb", "ab"],
    ["the text left after removal is not a new sequence", "\x1b\x00[31mx", "[31mx"],
    ["a title without an end does not hide the following text", "\x1b]0;owned\nnext line", "0;owned\nnext line"],
    ["a title that ends on another line does not hide the following text", "\x9d0;a\nnext\x07 line", "0;a\nnext line"],
    ["zero-width and soft-hyphen characters", "pass\u200bw\u00ado\u2060rd\u180e", "password"],
    ["letters that only programs see (tags)", "ok\u{e0001}\u{e0068}\u{e0069}\u{e007f}", "ok"],
    ["variation selectors that carry bytes", "a\ufe00\u{e0100}\u{e01ef}b", "ab"],
    ["fillers and invisible operators", "a\u115f\u3164\uffa0\u2062\u034fb", "ab"],
    ["annotations", "a\ufff9b\ufffac\ufffb", "abc"],
    ["line separators are no line breaks", "a\u2028b\u2029c", "a b c"],
    [
      "emoji with joiners and selectors stay",
      "👩\u200d👩\u200d👧 ❤\ufe0f 1\ufe0f\u20e3 👩🏽\u200d🚀",
      "👩\u200d👩\u200d👧 ❤\ufe0f 1\ufe0f\u20e3 👩🏽\u200d🚀",
    ],
    [
      "joiners inside of words of scripts that need them stay",
      "می\u200cخواهم क\u094d\u200dष",
      "می\u200cخواهم क\u094d\u200dष",
    ],
    ["joiners elsewhere go", "a\u200db\u200c \u200dc\ufe0f", "ab c"],
  ];
  test.each(cases)("%s", (_name, text, plain) => expect(plainText(text)).toBe(plain));

  const nasty = fc.string({
    unit: fc.oneof(
      fc.constantFrom(
        "\x1b",
        "[",
        "]",
        "\x9b",
        "\x9d",
        "\x07",
        "\\",
        "m",
        "3",
        ";",
        "\r",
        "\n",
        "\t",
        "\x00",
        "\u202e",
        "\ud83e",
        "\udd4a",
        "\u200d",
        "\ufe0f",
        "\u061c",
        "\u0643",
        "1",
        "❤",
        "é",
      ),
      fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
    ),
    maxLength: 40,
  });

  test("leaves no control characters except line breaks and tabs, no direction marks and no lone surrogates", () => {
    fc.assert(
      fc.property(nasty, (text) => {
        const plain = plainText(text);
        expect(plain).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/);
        expect(plain).not.toMatch(/[\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f]/);
        expect(plain.isWellFormed()).toBe(true);
      }),
      { numRuns: 3000 },
    );
  });

  test("does not change its own output", () => {
    fc.assert(
      fc.property(nasty, (text) => {
        expect(plainText(plainText(text))).toBe(plainText(text));
      }),
      { numRuns: 1000 },
    );
  });

  test("oneLine has no line break, no tab and no space at its ends", () => {
    fc.assert(
      fc.property(nasty, (text) => {
        expect(oneLine(text)).not.toMatch(/[\n\t\u2028\u2029]|^\s|\s$|\s\s/);
      }),
      { numRuns: 1000 },
    );
  });

  test("treats a text of letters and blanks like every other text", () => {
    const letters = fc.string({ unit: fc.constantFrom("a", "~", " ", "é", "ˀ", "…") });
    fc.assert(
      fc.property(letters, fc.nat(20), (text, columns) => {
        expect(plainText(text)).toBe(plainText(`${text}\x00`));
        expect(oneLine(text)).toBe(oneLine(`${text}\x00`));
        expect(width(text)).toBe(width(`${text}\u200b`));
        expect(cut(text, columns)).toBe(cut(`\u200b${text}`, columns).replace("\u200b", ""));
      }),
      { numRuns: 1000 },
    );
  });

  test("gives valid JSON with the same fields and plain strings", () => {
    fc.assert(
      fc.property(fc.dictionary(nasty, fc.array(nasty, { maxLength: 3 })), (value) => {
        const line = jsonLine(value);
        expect(line.slice(0, -1)).not.toMatch(/[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f]/);
        expect(line).not.toMatch(/(?<!\\)(?:\\\\)*\\u(?:00[01]|d[89a-f])/);
        const plain = Object.entries(value).map(([key, texts]) => [plainText(key), texts.map(plainText)]);
        expect(JSON.parse(line)).toEqual(Object.fromEntries(plain));
      }),
      { numRuns: 1000 },
    );
  });

  test("is fast for a long unfinished sequence", () => {
    const begun = performance.now();
    plainText("\x9d".repeat(100_000));
    plainText("\x1b]".repeat(50_000) + "\x1b[".repeat(50_000) + "1;".repeat(100_000));
    expect(performance.now() - begun).toBeLessThan(3000);
  });
});

describe("width", () => {
  const cases: [text: string, columns: number][] = [
    ["", 0],
    ["abc", 3],
    ["é", 1],
    ["e\u0301", 1],
    ["漢字", 4],
    ["한", 2],
    ["ｆ", 2],
    ["🥊", 2],
    ["…", 1],
    ["a\u200bb", 2],
  ];
  test.each(cases)("%p is %p wide", (text, columns) => expect(width(text)).toBe(columns));
});

describe("cut and pad", () => {
  const cases: [text: string, columns: number, result: string][] = [
    ["abc", 3, "abc"],
    ["abcd", 3, "ab…"],
    ["abc", 1, "…"],
    ["abc", 0, ""],
    ["漢字", 4, "漢字"],
    ["漢字", 3, "漢…"],
    ["漢字", 2, "…"],
    ["漢字", 1, "…"],
    ["", 0, ""],
  ];
  test.each(cases)("%p in %p columns is %p", (text, columns, result) => expect(cut(text, columns)).toBe(result));

  const anyText = fc.string({
    unit: fc.oneof(fc.constantFrom("a", "漢", "🥊", "e\u0301", "\u200d"), fc.constant("é")),
  });

  test("cut never exceeds its columns, keeps the beginning and marks the cut", () => {
    fc.assert(
      fc.property(anyText, fc.nat(30), (text, columns) => {
        const shown = cut(text, columns);
        expect(width(shown)).toBeLessThanOrEqual(columns);
        if (shown !== text) expect(text.startsWith(shown.replace(/…$/, ""))).toBe(true);
        if (shown !== text && columns > 0) expect(shown.endsWith("…")).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });

  test("pad fills exactly and cuts nothing", () => {
    fc.assert(
      fc.property(anyText, fc.nat(30), (text, columns) => {
        expect(width(pad(text, columns))).toBe(Math.max(columns, width(text)));
        expect(pad(text, columns).startsWith(text)).toBe(true);
      }),
      { numRuns: 500 },
    );
  });
});

describe("wrap", () => {
  test.each([
    ["a text that fits stays unchanged", "  a  b\n\n c", 10, ["  a  b", "", " c"]],
    ["between words", "one two three", 7, ["one two", "three"]],
    ["exactly full", "one two", 7, ["one two"]],
    ["a word that is too long is broken", "abcdefgh ij", 3, ["abc", "def", "gh", "ij"]],
    ["wide characters count twice", "世界世界", 5, ["世界", "世界"]],
    ["tabs become spaces", "\ta", 10, ["    a"]],
  ])("%s", (_name, text, columns, lines) => expect(wrap(text, columns)).toEqual(lines));

  test("makes no line too wide and loses no word", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 2, max: 40 }), (text, columns) => {
        const plain = plainText(text);
        const lines = wrap(plain, columns);
        for (const line of lines) expect(width(line)).toBeLessThanOrEqual(columns);
        expect(lines.join("").replace(/\s/g, "")).toBe(plain.replace(/\s/g, ""));
      }),
    );
  });
});

test("a long list of names shows a few and counts the rest", () => {
  expect(someOf(["a", "b"], 2)).toBe("a, b");
  expect(someOf(["a", "b", "c"], 2)).toBe("a, b, and 1 more");
  expect(someLines(["a", "b"], 2)).toEqual(["a", "b"]);
  expect(someLines(["a", "b", "c", "d"], 2)).toEqual(["a", "b", "… and 2 more"]);
});
