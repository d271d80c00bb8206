// The arguments that agents are started with, word by word.
import { expect, test } from "bun:test";
import type { Order } from "../../src/adapters/invocation.ts";
import { adapterNamed } from "../../src/adapters/registry.ts";

const id = "01a1e1c1-092a-7951-96f0-07f6e0ecb1f5";
const old = "01a1e1c0-f45e-70a2-86a3-796f6feecdeb";
const place = { home: "/home/me/data", own: "/home/me/.agentctl/support", cwd: "/home/me/project", at: 0 };
const facts = { model: "m", permission: "edit", prompt: "x", extra: ["--own"] } as const;
const orders: Record<string, Order> = {
  new: { ...facts, kind: "new", session: id },
  continue: { ...facts, kind: "continue", session: id },
  fork: { ...facts, kind: "fork", session: id, from: old },
};

const edits = "--permission-mode acceptEdits";
const writes = "--sandbox workspace-write";

test.each([
  ["claude-code", "new", `-p --session-id ${id} --model m ${edits} --own`],
  ["claude-code", "continue", `-p --resume ${id} --model m ${edits} --own`],
  ["claude-code", "fork", `-p --resume ${old} --fork-session --session-id ${id} --model m ${edits} --own`],
  ["codex", "new", `exec --json --model m ${writes} --own -`],
  ["codex", "continue", `exec --json --model m ${writes} --own resume ${id} -`],
  ["codex", "fork", `exec --json --model m ${writes} --own fork ${old} -`],
])("%s, %s, headless", (agent, kind, words) => {
  expect<unknown>(adapterNamed(agent)?.invocation.headless(orders[kind] as Order, place)).toEqual(words.split(" "));
});

test.each([
  ["claude-code", "continue", `--resume ${id} --model m ${edits} --own`],
  ["codex", "continue", `resume --model m ${writes} --own ${id}`],
  ["codex", "fork", `fork --model m ${writes} --own ${old}`],
])("%s, %s, in its interface", (agent, kind, words) => {
  expect<unknown>(adapterNamed(agent)?.invocation.interface(orders[kind] as Order, place)).toEqual(words.split(" "));
});

test.each([
  ["no config", null, "read-only sandbox"],
  ["the directory named", '[projects."/p"]\ntrust_level = "trusted"', "it edits below its directory"],
  ["named in other quotes", "[projects.'/p'] # mine", "it edits below its directory"],
  ["only in a comment", '# [projects."/p"]', "read-only sandbox"],
  ["another one", '[projects."/p/q"]', "read-only sandbox"],
  ["a mode of its own", 'sandbox_mode = "danger-full-access"', "no sandbox"],
  ["a mode of another table", '[profiles.x]\nsandbox_mode = "danger-full-access"', "read-only sandbox"],
])("codex without a permission: %s", (_name, config, words) => {
  const judged = adapterNamed("codex")?.invocation.ownSetting.judge([config], ["/p"]);
  expect(judged?.meaning).toContain(words);
  expect(judged?.isBypass).toBe(words === "no sandbox");
});
