// The arguments that agents are started with, word by word.

import { expect, test } from "bun:test";
import type { Order } from "../../src/agents/invocation.ts";
import { adapterNamed } from "../../src/agents/registry.ts";
import type { PermissionEffect } from "../../src/core/permission.ts";

const id = "01a1e1c1-092a-7951-96f0-07f6e0ecb1f5";
const old = "01a1e1c0-f45e-70a2-86a3-796f6feecdeb";
const where = { home: "/home/me/data", supportFolder: "/home/me/.agentctl/support", cwd: "/home/me/project", at: 0 };
const facts = { ...where, model: "m", permission: "edit", prompt: "x", extra: ["--own"] } as const;
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
])("the headless command of %s with permission %s", (agent, kind, words) => {
  expect<unknown>(adapterNamed(agent)?.invocation.headless(orders[kind] as Order)).toEqual(words.split(" "));
});

test.each([
  ["claude-code", "continue", `--resume ${id} --model m ${edits} --own`],
  ["codex", "continue", `resume --model m ${writes} --own ${id}`],
  ["codex", "fork", `fork --model m ${writes} --own ${old}`],
])("the interactive command of %s with permission %s", (agent, kind, words) => {
  expect<unknown>(adapterNamed(agent)?.invocation.interface(orders[kind] as Order)).toEqual(words.split(" "));
});

test.each<[name: string, config: string | null, effect: PermissionEffect]>([
  ["no config", null, "cannot-edit"],
  ["the directory named", '[projects."/p"]\ntrust_level = "trusted"', "edits-in-sandbox"],
  ["named in other quotes", "[projects.'/p'] # mine", "edits-in-sandbox"],
  ["only in a comment", '# [projects."/p"]', "cannot-edit"],
  ["another one", '[projects."/p/q"]', "cannot-edit"],
  ["a mode at the top level", 'sandbox_mode = "danger-full-access"', "no-sandbox"],
  ["a mode of another table", '[profiles.x]\nsandbox_mode = "danger-full-access"', "cannot-edit"],
])("codex without a permission: %s", (_name, config, effect) => {
  const judged = adapterNamed("codex")?.invocation.ownSetting.judge([config], ["/p"]);
  expect(judged?.effect).toBe(effect);
  expect(judged?.isBypass).toBe(effect === "no-sandbox");
});
