// An agent's home comes from a few variables; the adapter gets only those of the environment.
import { expect, test } from "bun:test";
import { adapters } from "../../src/agents/registry.ts";
import { homesOf } from "../../src/observe/homes.ts";

const settings = { homes: {}, insideAgents: "guarded", worktrees: null } as const;

test.each(adapters.map((adapter) => [adapter.agent, adapter] as const))(
  "%s asks for no other key",
  (_agent, adapter) => {
    const asked = new Set<string>();
    for (const given of [null, ...adapter.environment]) {
      const env = new Proxy<Record<string, string>>(
        {},
        {
          get(_target, key) {
            asked.add(String(key));
            return key === given || key === "HOME" ? "/somewhere" : undefined;
          },
        },
      );
      adapter.home(env);
    }
    expect([...asked.difference(new Set(adapter.environment))]).toEqual([]);
  },
);

test("a home is read at the path of its variable and at the default path", () => {
  const claude = adapters.find(({ agent }) => agent === "claude-code");
  const env = { HOME: "/home/u", CLAUDE_CONFIG_DIR: "/elsewhere", OTHER: undefined };
  expect(claude === undefined ? [] : homesOf(claude, env, settings)).toEqual(["/elsewhere", "/home/u/.claude"]);
});
