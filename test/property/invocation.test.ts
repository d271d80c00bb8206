// A value that comes from a person or from a record is never an option of the agent: with a dash in front it is refused, joined
// to an option, or stands behind `--`.
import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Order } from "../../src/agents/invocation.ts";
import { adapters } from "../../src/agents/registry.ts";
import { Failure } from "../../src/core/failure.ts";

const where = { home: "/home/me/data", supportFolder: "/home/me/.agentctl/support", cwd: "/home/me/project", at: 0 };

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
    const order = { ...where, ...facts, extra: ["--own", "word"] };
    const values = [facts.prompt, session, from, ...(facts.model === null ? [] : [facts.model])];
    if (kind === "fork") return { order: { ...order, kind, from, session }, values };
    return { order: { ...order, kind, session }, values };
  });

/** A value from elsewhere that the agent would take for an option. */
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
    if (error instanceof Failure && error.code === "looks-like-option") return [];
    throw error;
  }
}

test.each(adapters.map(({ agent, invocation }) => [agent, invocation] as const))("%s", (_agent, invocation) => {
  fc.assert(
    fc.property(anOrder, ({ order, values }) => {
      const session = order.session ?? "";
      const preparation = builtOrRefused(() => {
        const needed = invocation.prepare?.(session, order) ?? null;
        return needed?.kind === "command" ? [...needed.arguments("/file"), ...needed.undo] : [];
      });
      const all = [
        builtOrRefused(() => invocation.headless(order)),
        builtOrRefused(() => invocation.interface({ ...order, prompt: null })),
        builtOrRefused(() => invocation.ownStop?.(session) ?? null),
        preparation,
      ];
      expect(all.flatMap((words) => optionsAmong(words, values))).toEqual([]);
    }),
    { numRuns: 300, seed: 7 },
  );
});

test("values without a leading dash reach every agent unchanged", () => {
  const order: Order = {
    ...where,
    model: "m-1",
    permission: null,
    prompt: "do it",
    extra: [],
    kind: "new",
    session: "s-1",
  };
  for (const { agent, invocation } of adapters.filter(({ server }) => server?.create === undefined))
    expect([agent, invocation.headless(order).some((word) => word.endsWith("m-1"))]).toEqual([agent, true]);
});
