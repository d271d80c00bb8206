// A sweep as a file: what all its sessions share, and a list whose array values multiply out. Every mistake is told with its line.
import { isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, type YAMLMap } from "yaml";
import { AgentctlError } from "../core/problem.ts";

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

export function parseMatrix(text: string, source: string): Matrix {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: true });
  const at = (node: unknown): number => lines.linePos((node as Node | null)?.range?.[0] ?? 0).line;
  const wrong = (node: unknown, message: string): AgentctlError =>
    new AgentctlError("usage", `${source}:${at(node)}: ${message}`);
  const [broken] = document.errors;
  if (broken !== undefined)
    throw new AgentctlError(
      "usage",
      `${source}:${lines.linePos(broken.pos[0]).line}: ${broken.message.split("\n")[0]}`,
    );
  const top = document.contents;
  if (!isMap(top)) throw wrong(top, "not a map with prompt and matrix");

  const word = (node: unknown, key: string): string => {
    const value = isScalar(node) ? node.value : undefined;
    if (typeof value === "string" || typeof value === "number") return String(value);
    throw wrong(node ?? top, `${key} must be a text`);
  };
  const words = (node: unknown, key: string): string[] =>
    isSeq(node) ? node.items.map((item) => word(item, key)) : [word(node, key)];
  const fields = (map: YAMLMap, known: readonly string[]): [key: string, value: unknown][] =>
    map.items.map(({ key, value }) => {
      const name = word(key, "a key");
      if (!known.includes(name)) throw wrong(key, `unknown key ${name} (known: ${known.join(", ")})`);
      return [name, value];
    });

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
      slots = value.items.flatMap((item) => {
        if (!isMap(item)) throw wrong(item, "each entry of matrix must be a map with agent");
        const entries = fields(item, Object.keys(slotFlags)).map(
          ([name, values]) => [slotFlags[name]?.flag ?? "", words(values, name)] as const,
        );
        if (!entries.some(([flag]) => flag === "--agent")) throw wrong(item, "an entry of matrix needs an agent");
        return combinations(entries);
      });
    }
  }
  if (slots === null) throw wrong(top, "there is no matrix");
  return { shared, slots };
}

/** Every value of the one with every value of the others. */
function combinations(entries: readonly (readonly [flag: string, values: readonly string[]])[]): SlotFlags[] {
  return entries.reduce<SlotFlags[]>(
    (all, [flag, values]) => all.flatMap((before) => values.map((value) => ({ ...before, [flag]: [value] }))),
    [{}],
  );
}
