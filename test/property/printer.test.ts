// The printer: whatever text comes, a terminal gets nothing to obey but our own colours and cursor movements.
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import fc from "fast-check";
import { type Control, printable, sealed } from "../../src/sys/stdout.ts";

const wanted = process.env["PROPERTY_SEED"] ?? "20261115";
fc.configureGlobal({ seed: wanted === "fresh" ? Date.now() : Number(wanted) });

const ours = /\x1b\[(?:3[12346]m|[012]m|H|J)/g;
const obeyed =
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e0fff}]/u;

const controls: readonly Control[] = [
  "red",
  "green",
  "yellow",
  "blue",
  "cyan",
  "dim",
  "bold",
  "plain",
  "home",
  "clear-below",
];

const pieces = [
  "\x1b",
  "\x1b[",
  "\x1b]52;c;",
  "\x1bP",
  "\x9b",
  "\x9d",
  "\x1f",
  "\x1fred\x1f",
  "\x07",
  "\x1b\\",
  "31m",
  "H",
  "\n",
  "\r",
  "\u202e",
  "\u{e0041}",
  "\ud83e",
  "\udd4a",
  "é",
  "a",
];

/** Text of strangers. They know how seals look, but not the one of this process. */
const nasty = fc.string({
  unit: fc.oneof(
    fc.constantFrom(...pieces),
    fc.uuid().map((guess) => `\x1f${guess}:red\x1f`),
    fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
  ),
  maxLength: 30,
});

describe("printable", () => {
  test("leaves no control sequence in a text", () => {
    fc.assert(
      fc.property(nasty, (text) => {
        expect(printable(text)).not.toMatch(obeyed);
        expect(printable(text).isWellFormed()).toBe(true);
      }),
      { numRuns: 3000 },
    );
  });

  test("leaves only our own color sequences in a colored text, in their order", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.constantFrom(...controls), nasty), { minLength: 1, maxLength: 8 }), (parts) => {
        const printed = printable(parts.map(([control, text]) => `${sealed(control)}${text}`).join(""));
        expect([...(printed.match(ours) ?? [])]).toEqual(parts.map(([control]) => printable(sealed(control))));
        expect(printed.replace(ours, "")).not.toMatch(obeyed);
      }),
      { numRuns: 1000 },
    );
  });

  test("does not change plain text, colored or not", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("a", " ", "\n", "\t", "é", "漢", "🥊", "…", "·") }), (text) => {
        expect(printable(text)).toBe(text);
        expect(printable(`${sealed("red")}${text}${sealed("plain")}`)).toBe(`\x1b[31m${text}\x1b[0m`);
      }),
    );
  });

  test("does not accept color marks of another process", async () => {
    const script =
      'const { sealed } = await import("./src/sys/stdout.ts"); await Bun.write(Bun.stdout, sealed("red"));';
    const child = Bun.spawn([process.execPath, "-e", script], { cwd: join(import.meta.dir, "../.."), stdout: "pipe" });
    const foreign = await child.stdout.text();
    expect(foreign).toContain("red");
    expect(printable(`${sealed("green")}${foreign}x`)).not.toContain("\x1b[31m");
  });
});

describe("an error that no caller awaits", () => {
  test.each([
    ["in a timer", "setTimeout(() => { throw new Error(evil); }, 1)"],
    ["in a promise", "void Promise.reject(new Error(evil))"],
  ])("%s is printed like every other error and fails the command", async (_where, act) => {
    const script = `
      const evil = "evil \\x1b]52;c;aGk=\\x07 \\u009b31m \\u202e end";
      const { perform } = await import("./src/cli/perform.ts");
      process.exit(await perform(async () => { ${act}; await new Promise(() => setInterval(() => {}, 1000)); return 0; }, []));`;
    const child = Bun.spawn([process.execPath, "-e", script], { cwd: join(import.meta.dir, "../.."), stderr: "pipe" });
    const [err, code] = [await child.stderr.text(), await child.exited];
    expect({ code, isOurs: err.startsWith("agentctl: this should not happen: Error: evil  ") }).toEqual({
      code: 1,
      isOurs: true,
    });
    expect(err).not.toMatch(obeyed);
  });
});
