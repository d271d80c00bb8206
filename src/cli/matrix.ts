// A sweep as a file: what all its sessions share, and a list whose array values multiply out. Every mistake is told with its line.
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
import { adapterNamed } from "../adapters/registry.ts";
import { AgentctlError } from "../core/problem.ts";
import { noAgentText } from "./launch-order.ts";

/** One session of the sweep, as the flags that it stands for. */
export type SlotFlags = Readonly<Record<string, readonly string[]>>;

export interface Matrix {
  shared: SlotFlags;
  slots: SlotFlags[];
}

const sharedFlags: Record<string, { flag: string; several?: true }> = {
  prompt: { flag: "--prompt" },
  cwd: { flag: "--cwd" },
  spec: { flag: "--spec" },
  context: { flag: "--context", several: true },
  setup: { flag: "--setup" },
  base: { flag: "--base" },
  group: { flag: "--group" },
  permission: { flag: "--permission" },
};

const hookFlags: Record<string, { flag: string }> = { start: { flag: "--on-start" }, exit: { flag: "--on-exit" } };

const slotFlags: Record<string, { flag: string }> = {
  agent: { flag: "--agent" },
  model: { flag: "--model" },
  permission: { flag: "--permission" },
  prompt: { flag: "--prompt" },
  base: { flag: "--base" },
};

/** More than anybody wants to begin; arrays multiply out faster than they look. */
const mostSlots = 1000;

export function parseMatrix(text: string, source: string): Matrix {
  const lines = new LineCounter();
  // Its own search for keys that stand twice compares each with each.
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: false });
  const wrongAt = (offset: number, message: string): AgentctlError =>
    new AgentctlError("usage", `${source}:${lines.linePos(offset).line}: ${message}`);
  const wrong = (node: unknown, message: string): AgentctlError =>
    wrongAt((node as Node | null)?.range?.[0] ?? 0, message);
  const [broken] = [...document.errors, ...document.warnings];
  if (broken !== undefined) throw wrongAt(broken.pos[0], mistakeText(broken));
  const top = document.contents;
  if (!isMap(top)) throw wrong(top, "not a map with prompt and matrix");

  const word = (node: unknown, key: string): string => {
    if (isAlias(node)) throw wrong(node, `${key} must be a text, not an alias`);
    const value = isScalar(node) ? node.value : undefined;
    // A number as it was written: 4.10 is another model than 4.1.
    const text = isScalar(node) && typeof value === "number" ? (node.source ?? String(value)) : value;
    if (typeof text !== "string") throw wrong(node ?? top, `${key} must be a text`);
    if (text.includes("\0")) throw wrong(node, `${key} holds a NUL character`);
    if (key === "agent" && adapterNamed(text) === null) throw wrong(node, noAgentText(text));
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
      if (seen.has(name)) throw wrong(key, `${name} stands here twice`);
      seen.add(name);
      return [name, value];
    });
  };

  const shared: Record<string, string[]> = {};
  let slots: SlotFlags[] | null = null;
  for (const [key, value] of fields(top, [...Object.keys(sharedFlags), "hooks", "matrix"])) {
    const plain = sharedFlags[key];
    if (plain !== undefined) shared[plain.flag] = plain.several === true ? words(value, key) : [word(value, key)];
    else if (key === "hooks") {
      if (!isMap(value)) throw wrong(value, "hooks must be a map with start and exit");
      for (const [name, command] of fields(value, Object.keys(hookFlags)))
        shared[hookFlags[name]?.flag ?? ""] = [word(command, `hooks.${name}`)];
    } else {
      if (!isSeq(value) || value.items.length === 0) throw wrong(value, "matrix must be a list of sessions");
      slots = [];
      for (const item of value.items) {
        if (!isMap(item)) throw wrong(item, "each entry of matrix must be a map with agent");
        const entries = fields(item, Object.keys(slotFlags)).map(
          ([name, values]) => [slotFlags[name]?.flag ?? "", words(values, name)] as const,
        );
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

/** Without the place, which is said already, and without advice for programmers. */
function mistakeText({ code, message }: YAMLError): string {
  if (code === "MULTIPLE_DOCS") return "one document, please";
  if (/call stack/.test(message)) return "nested too deeply";
  return (message.split("\n")[0] ?? "").replace(/ at line \d+, column \d+:?$/, "");
}

/** Every value of the one with every value of the others. */
function combinations(entries: readonly (readonly [flag: string, values: readonly string[]])[]): SlotFlags[] {
  return entries.reduce<SlotFlags[]>(
    (all, [flag, values]) => all.flatMap((before) => values.map((value) => ({ ...before, [flag]: [value] }))),
    [{}],
  );
}
