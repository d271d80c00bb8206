// Reads a matrix file: values that all sessions share, and a list of sessions. A list as a value makes one session per item.
// Every error names its line.
import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type YAMLError,
  type YAMLMap,
} from "yaml";
import { UsageError } from "../core/failure.ts";
import { agentNamed, noAgentText } from "../service/agent-names.ts";

/** One session of the sweep, as flags of launch. */
export type SlotFlags = Readonly<Record<string, readonly string[]>>;

export interface Matrix {
  shared: SlotFlags;
  slots: SlotFlags[];
}

/** Each key is a flag of the same name; only `context` accepts a list. */
const sharedKeys = ["prompt", "cwd", "spec", "context", "setup", "base", "group", "permission"];
const slotKeys = ["agent", "model", "permission", "prompt", "base"];

/** A few lists multiply to a large number of sessions. */
const mostSlots = 1000;

export function parseMatrix(text: string, source: string): Matrix {
  const lines = new LineCounter();
  // The parser's own search for duplicate keys compares every key with every other.
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: false });
  const wrongAt = (offset: number, message: string): UsageError =>
    new UsageError(`${source}:${lines.linePos(offset).line}: ${message}`);
  const wrong = (node: unknown, message: string): UsageError =>
    wrongAt((node as Node | null)?.range?.[0] ?? 0, message);
  const [broken] = [...document.errors, ...document.warnings];
  if (broken !== undefined) throw wrongAt(broken.pos[0], mistakeText(broken));
  const top = document.contents;
  if (!isMap(top)) throw wrong(top, "not a map with prompt and matrix");

  const word = (node: unknown, key: string): string => {
    if (isAlias(node)) throw wrong(node, `${key} must be a text, not an alias`);
    const value = isScalar(node) ? node.value : undefined;
    // A number keeps its spelling: 4.10 and 4.1 are different models.
    const text = isScalar(node) && typeof value === "number" ? (node.source ?? String(value)) : value;
    if (typeof text !== "string") throw wrong(node ?? top, `${key} must be a text`);
    if (text.includes("\0")) throw wrong(node, `${key} contains a NUL character`);
    if (key === "agent" && agentNamed(text) === null) throw wrong(node, noAgentText(text));
    return text;
  };
  const words = (node: unknown, key: string): string[] => {
    if (!isSeq(node)) return [word(node, key)];
    if (node.items.length === 0) throw wrong(node, `${key} must not be empty`);
    return node.items.map((item) => word(item, key));
  };
  const fields = (map: YAMLMap, known: readonly string[]): [key: string, value: unknown][] => {
    const seen = new Set<string>();
    return map.items.map(({ key, value }) => {
      const name = word(key, "a key");
      if (!known.includes(name)) throw wrong(key, `unknown key ${name} (known: ${known.join(", ")})`);
      if (seen.has(name)) throw wrong(key, `${name} is given twice`);
      seen.add(name);
      return [name, value];
    });
  };

  const shared: Record<string, string[]> = {};
  let slots: SlotFlags[] | null = null;
  for (const [key, value] of fields(top, [...sharedKeys, "hooks", "matrix"])) {
    if (sharedKeys.includes(key)) shared[`--${key}`] = key === "context" ? words(value, key) : [word(value, key)];
    else if (key === "hooks") {
      if (!isMap(value)) throw wrong(value, "hooks must be a map with start and exit");
      for (const [name, command] of fields(value, ["start", "exit"]))
        shared[`--on-${name}`] = [word(command, `hooks.${name}`)];
    } else {
      if (!isSeq(value) || value.items.length === 0) throw wrong(value, "matrix must be a list of sessions");
      slots = [];
      for (const item of value.items) {
        if (!isMap(item)) throw wrong(item, "each entry of matrix must be a map with agent");
        const entries = fields(item, slotKeys).map(([name, values]) => [`--${name}`, words(values, name)] as const);
        if (!entries.some(([flag]) => flag === "--agent")) throw wrong(item, "an entry of matrix needs an agent");
        const count = entries.reduce((product, [, values]) => product * values.length, 1);
        if (slots.length + count > mostSlots) throw wrong(item, `more than ${mostSlots} sessions`);
        slots.push(...combinations(entries));
      }
    }
  }
  if (slots === null) throw wrong(top, "there is no matrix");
  return { shared, slots };
}

/** Without the position, which the message already has, and without advice for programmers. */
function mistakeText({ code, message }: YAMLError): string {
  if (code === "MULTIPLE_DOCS") return "only one YAML document is allowed";
  if (/call stack/.test(message)) return "nested too deeply";
  return (message.split("\n")[0] ?? "").replace(/ at line \d+, column \d+:?$/, "");
}

/** All combinations of the values, as the flags of one session each. */
function combinations(entries: readonly (readonly [flag: string, values: readonly string[]])[]): SlotFlags[] {
  return entries.reduce<SlotFlags[]>(
    (all, [flag, values]) => all.flatMap((before) => values.map((value) => ({ ...before, [flag]: [value] }))),
    [{}],
  );
}
