// Forks without a copy of their history: told with their parents', each up to where its fork left it.
import { expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Adapter } from "../../src/agents/adapter.ts";
import { demo } from "../../src/agents/demo/index.ts";
import { fieldsOf, textIn } from "../../src/agents/fields.ts";
import { entriesBackward, entriesForward, type RecordPlace, readHistory } from "../../src/observe/conversation.ts";
import { recordAt } from "../../src/observe/records.ts";

/** The demo agent, if its forks did not copy. */
const forking: Adapter = {
  ...demo,
  historyOf(file) {
    for (const line of file.forward()) {
      const fields = line.ok ? fieldsOf(line.value) : null;
      return fields === null ? null : textIn(fields, "parent");
    }
    return null;
  },
};

const idOf = (digit: number): string => `${digit}0000000-0000-4000-8000-000000000000`;
const at = (second: number): string => new Date(Date.UTC(2026, 10, 16, 0, 0, second)).toISOString();

class Home implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), "history-"));

  write(digit: number, parent: number | null, start: number, replies: readonly number[]): RecordPlace {
    const path = join(this.path, "sessions", `${idOf(digit)}.jsonl`);
    mkdirSync(join(this.path, "sessions"), { recursive: true });
    const header = { type: "session", version: 1, at: at(start), parent: parent === null ? null : idOf(parent) };
    const lines = replies.map((second) => ({ type: "reply", at: at(second), text: `${digit}:${second}` }));
    writeFileSync(path, [header, ...lines].map((line) => `${JSON.stringify(line)}\n`).join(""));
    return { adapter: forking, home: this.path, file: recordAt(forking, path, idOf(digit)) };
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true });
  }
}

function told(place: RecordPlace): { forward: string[]; backward: string[]; missing: string | null } {
  const { own, earlier, missing } = readHistory(place);
  const texts = (entries: Iterable<Parameters<typeof textsOf>[0]>) => [...entries].flatMap(textsOf);
  const forward = texts(entriesForward(forking, [own, ...earlier]));
  return { forward, backward: texts(entriesBackward(forking, [own, ...earlier])), missing };
}

const textsOf = (entry: ReturnType<typeof entriesForward> extends Generator<infer E> ? E : never): string[] =>
  entry.kind === "known" ? entry.facts.messages.map(({ text }) => text) : [];

test("the conversation of a fork of a fork starts at the first record and omits later lines of its parents", () => {
  using home = new Home();
  home.write(1, null, 0, [1, 2, 3, 9, 50]);
  home.write(2, 1, 5, [6, 7, 20, 40]);
  const place = home.write(3, 2, 10, [11, 30]);
  const { forward, backward, missing } = told(place);
  expect(forward).toEqual(["1:1", "1:2", "1:3", "2:6", "2:7", "3:11", "3:30"]);
  expect(backward).toEqual(forward.toReversed());
  expect(missing).toBeNull();
});

test("a missing parent record is named and the rest is shown", () => {
  using home = new Home();
  home.write(2, 1, 5, [6]);
  expect(told(home.write(3, 2, 10, [11]))).toMatchObject({ forward: ["2:6", "3:11"], missing: idOf(1) });
});

test("records that continue each other in a circle end where the circle closes", () => {
  using home = new Home();
  home.write(1, 2, 1, [2]);
  const place = home.write(2, 1, 3, [4]);
  expect(told(place)).toMatchObject({ forward: ["1:2", "2:4"], missing: null });
  expect(told(home.write(4, 4, 0, [1]))).toMatchObject({ forward: ["4:1"], missing: null });
});

test("lines that are written after the reading, and incomplete lines, are not shown", () => {
  using home = new Home();
  const place = home.write(1, null, 0, [1]);
  const { own } = readHistory(place);
  home.write(1, null, 0, [1, 2]);
  expect([...entriesForward(forking, [own])].flatMap(textsOf)).toEqual(["1:1"]);
});
