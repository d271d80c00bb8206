// Planted bugs are found by syntax: formatting, comments, names of variables and the file may change.
import { expect, test } from "bun:test";
import { findPlaces, parseCode, replaceIn } from "../mutants/pattern.ts";

const replaced = (text: string, pattern: string, replacement: string, inside: string | null = null): string[] =>
  findPlaces(parseCode([{ path: "a.ts", text }]), pattern, inside).map((place) => replaceIn(place, replacement));

test("an expression is found in another format, with comments and other variable names", () => {
  const pattern = "$row.start !== null && $row.start !== $table.start";
  const text = "if (\n  it.start !== null && // why\n  (it.start !== all.start)\n) stop();";
  expect(replaced(text, pattern, "$row.start === null")).toEqual(["if (\n  it.start === null\n) stop();"]);
});

test("a repeated placeholder matches only the same code", () => {
  expect(replaced("a.pid === b.pid && c.start === b.start;", "$a.pid === $b.pid && $a.start === $b.start", "")).toEqual(
    [],
  );
});

test("different code is not found", () => {
  expect(replaced('if (state === "open") go();', '$state === "closed"', "false")).toEqual([]);
});

test("a statement is found and removed", () => {
  const text = "for (const x of all) {\n  if (x.role === 'helper') continue;\n  use(x);\n}";
  expect(replaced(text, 'if ($x.role === "helper") continue;', "")).toEqual([
    "for (const x of all) {\n  \n  use(x);\n}",
  ]);
});

test("$$$ stands for any arguments and any statements", () => {
  expect(replaced("f(1, g(2));", "f($$$)", "h()")).toEqual(["h();"]);
  expect(replaced("for (const { key } of list) { a(); b(); }", "for (const $each of list) { $$$; }", "")).toEqual([""]);
});

test("a place can be limited to a function, a method or a constant that holds a function", () => {
  const text = "function a() { return x; }\nconst b = () => x;\nclass C { c() { return x; } }";
  expect(replaced(text, "x", "1", "a")).toEqual([text.replace("x", "1")]);
  expect(replaced(text, "x", "1", "b")).toEqual([text.replace("=> x", "=> 1")]);
  expect(replaced(text, "x", "1", "c")).toEqual([text.replace(/x(?!.*x)/s, "1")]);
  expect(replaced(text, "x", "1")).toHaveLength(3);
});
