// What was captured, as material to damage: files, lines, and the words that parsers look for.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Adapter } from "../../src/agents/adapter.ts";
import { findFiles } from "../../src/observe/files.ts";
import { findRecords } from "../../src/observe/record-names.ts";
import { readRecord } from "../../src/observe/records.ts";
import { type CapturedCase, casesOf } from "../conformance/cases.ts";
import { type Corpus, jsonOf } from "./mutate.ts";

export interface Material extends Corpus {
  adapter: Adapter;
  cases: CapturedCase[];
  records: { bytes: Buffer; id: string }[];
  announcements: { bytes: Buffer; pid: number }[];
  /** Command lines that were seen. */
  argvs: string[][];
}

export function materialOf(adapter: Adapter): Material {
  const cases = casesOf(adapter);
  const filesIn = (folder: string, sets: readonly (Adapter["announcements"] | Adapter["subagentRecords"])[]) =>
    sets.flatMap((set) => (set === undefined ? [] : findFiles(join(folder, "home"), set).files));
  const kept = adapter.records.filter(({ assembled }) => assembled === undefined);
  const records = cases.flatMap(({ folder }) => [
    ...filesIn(folder, kept).map(({ path, subject }) => ({ bytes: readFileSync(path), id: subject })),
    ...assembledIn(adapter, join(folder, "home")),
  ]);
  // Often enough to be damaged among so many captured ones.
  const uncaptured = (uncapturedLines[adapter.agent] ?? []).map((line) => Buffer.from(`${JSON.stringify(line)}\n`));
  for (const bytes of uncaptured)
    for (let times = 0; times < 8; times += 1) records.push({ bytes, id: records[0]?.id ?? "" });
  const announcements = cases.flatMap(({ folder }) =>
    filesIn(folder, [adapter.announcements]).map(({ path, subject }) => ({
      bytes: readFileSync(path),
      pid: Number(subject),
    })),
  );
  const lines = [...records, ...announcements].flatMap(({ bytes }) =>
    bytes.toString("utf8").split("\n").filter(Boolean),
  );
  const keys = new Set<string>();
  const words = new Set<string>();
  for (const line of lines) collect(jsonOf(line), keys, words);
  const sources = ownSources(adapter);
  const tokens = new Set([
    ...[...lines, sources].flatMap((text) => text.match(/<\/?[a-z][a-z-]+>/g) ?? []),
    ...["message", "name", "args"].flatMap((part) => [`<command-${part}>`, `</command-${part}>`]),
  ]);
  for (const [, literal = ""] of sources.matchAll(/"([^"\n]{2,40})"/g)) {
    words.add(literal);
    if (/^\w+$/.test(literal)) keys.add(literal);
  }
  const argvs = cases.flatMap(({ processes }) => (processes ?? []).map(({ argv }) => argv));
  return {
    adapter,
    cases,
    records,
    announcements,
    lines,
    keys: [...keys],
    words: [...words],
    tokens: [...tokens],
    argvs,
  };
}

/** What is no file of lines, as the lines that its parsers get: those for the state, then those of the conversation. */
const assembledIn = (adapter: Adapter, home: string): { bytes: Buffer; id: string }[] =>
  findRecords(adapter, home)
    .visited.filter(({ set }) => set.assembled !== undefined)
    .map((record) =>
      readRecord(record, (file) => {
        const lines = [...file.backward(), ...file.forward()].map((line) =>
          line.ok ? JSON.stringify(line.value) : "",
        );
        return { bytes: Buffer.from(`${lines.join("\n")}\n`), id: record.subject };
      }),
    );

/** Lines that the parsers know, by the agents' own programs, and that no capture holds. */
const uncapturedLines: Record<string, unknown[]> = {
  "claude-code": [
    {
      ...{ type: "user", uuid: "11111111-1111-4111-8111-111111111111", parentUuid: null },
      ...{ timestamp: "2026-11-16T00:00:00.000Z", cwd: "/home/user/project" },
      message: {
        role: "user",
        content: "<command-message>x</command-message><command-name>/x</command-name><command-args>y</command-args>",
      },
    },
    {
      ...{ type: "assistant", uuid: "22222222-2222-4222-8222-222222222222", parentUuid: null, error: "rate_limit" },
      ...{ timestamp: "2026-11-16T00:00:00.000Z", isApiErrorMessage: true },
      message: { role: "assistant", content: [{ type: "text", text: "no quota" }] },
    },
    {
      ...{ type: "assistant", uuid: "33333333-3333-4333-8333-333333333333", parentUuid: null },
      message: { role: "assistant", content: [{ type: "tool_use", id: "t", name: "Other", input: { a: [1] } }] },
    },
  ],
  codex: [
    {
      ...{ timestamp: "2026-11-16T00:00:00.000Z", type: "event_msg" },
      payload: { type: "task_complete", error: { message: "x", codex_error_info: "unauthorized" } },
    },
    {
      ...{ timestamp: "2026-11-16T00:00:00.000Z", type: "response_item" },
      payload: { type: "function_call", name: "shell", call_id: "c", arguments: '{"command":["ls",{"a":[1]}]}' },
    },
  ],
};

/** Files of the given names anywhere below the cases: settings, histories. */
export const filesNamed = ({ cases }: Material, name: RegExp): Buffer[] =>
  cases.flatMap(({ folder }) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((path) => name.test(path) && statSync(join(folder, path)).isFile())
      .map((path) => readFileSync(join(folder, path))),
  );

function collect(value: unknown, keys: Set<string>, words: Set<string>): void {
  if (typeof value === "string" && value.length > 0 && value.length < 40) words.add(value);
  if (typeof value !== "object" || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    if (!Array.isArray(value)) keys.add(key);
    collect(inner, keys, words);
  }
}

/** The words in a parser's own text are those that it compares with. */
function ownSources({ agent }: Adapter): string {
  const folder = join(import.meta.dir, "../../src/agents", agent);
  return readdirSync(folder)
    .filter((name) => name.endsWith(".ts"))
    .map((name) => readFileSync(join(folder, name), "utf8"))
    .join("\n");
}
