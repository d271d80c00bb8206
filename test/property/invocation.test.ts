// A value that comes from a person or from a record is never an option of the agent: with a dash in front it is refused, joined
// to an option, or stands behind `--`.
import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Order } from "../../src/adapters/invocation.ts";
import { adapters } from "../../src/adapters/registry.ts";
import { AgentctlError } from "../../src/core/problem.ts";

const place = { home: "/home/me/data", own: "/home/me/.agentctl/support", cwd: "/home/me/project", at: 0 };

/** Told apart from every word of ours by its number. */
const aValue = fc
  .tuple(fc.constantFrom("-", "--", "-v", "--allow=", "", "x", "--model", " --"), fc.integer({ min: 10_000 }))
  .map(([start, number]) => `${start}${number}`);

const anOrder: fc.Arbitrary<{ order: Order; values: string[] }> = fc
  .record({
    model: fc.option(aValue),
    permission: fc.constantFrom(null, "read", "edit", "bypass"),
    prompt: aValue,
    kind: fc.constantFrom("new", "continue", "fork"),
    session: aValue,
    from: aValue,
  })
  .map(({ kind, session, from, ...facts }) => {
    const order = { ...facts, extra: ["--own", "word"] };
    const values = [facts.prompt, session, from, ...(facts.model === null ? [] : [facts.model])];
    if (kind === "fork") return { order: { ...order, kind, from, session }, values };
    return { order: { ...order, kind, session }, values };
  });

/** What the agent would take for an option although somebody else has chosen it. */
function optionsAmong(words: readonly string[], values: readonly string[]): string[] {
  const end = words.indexOf("--");
  const before = end === -1 ? words : words.slice(0, end);
  return before.filter(
    (word) => word.startsWith("-") && values.some((value) => value !== "" && word.startsWith(value)),
  );
}

function builtOrRefused(build: () => readonly string[] | null): readonly string[] {
  try {
    return build() ?? [];
  } catch (error) {
    if (error instanceof AgentctlError && error.code === "usage") return [];
    throw error;
  }
}

test.each(adapters.map(({ agent, invocation }) => [agent, invocation] as const))("%s", (_agent, invocation) => {
  fc.assert(
    fc.property(anOrder, ({ order, values }) => {
      const session = order.session ?? "";
      const preparation = builtOrRefused(() => {
        const needed = invocation.prepare?.(session, order, place) ?? null;
        return needed?.kind === "command" ? [...needed.arguments("/file"), ...needed.undo] : [];
      });
      const all = [
        builtOrRefused(() => invocation.headless(order, place)),
        builtOrRefused(() => invocation.interface({ ...order, prompt: null }, place)),
        builtOrRefused(() => invocation.ownStop(session)),
        preparation,
      ];
      expect(all.flatMap((words) => optionsAmong(words, values))).toEqual([]);
    }),
    { numRuns: 300, seed: 7 },
  );
});

test("values without a dash reach every agent as they are", () => {
  const order: Order = { model: "m-1", permission: null, prompt: "do it", extra: [], kind: "new", session: "s-1" };
  for (const { agent, invocation } of adapters.filter(({ host }) => host?.create === undefined))
    expect([agent, invocation.headless(order, place).some((word) => word.endsWith("m-1"))]).toEqual([agent, true]);
});
