// A permission that files of the agent would override is refused before the start.
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gemini } from "../../src/agents/gemini/index.ts";
import { Failure } from "../../src/core/failure.ts";
import { checkEffect } from "../../src/service/launch-plan.ts";

test("a permission is refused if a file overrides its flags", () => {
  const folder = mkdtempSync(join(tmpdir(), "agentctl-policies-"));
  try {
    const { read } = gemini.invocation.permissions;
    const voidedBy = { folders: ["/nowhere", folder], name: /\.toml$/ };
    const permissions = { ...gemini.invocation.permissions, read: { ...read, voidedBy } };
    const agent = { title: "It", invocation: { ...gemini.invocation, permissions } };
    writeFileSync(join(folder, "README"), "");
    expect(() => checkEffect(agent, "read")).not.toThrow();
    writeFileSync(join(folder, "ours.toml"), "");
    expect(() => checkEffect(agent, "read")).toThrow(
      new Failure("permission-void", { agent: "It", permission: "read", policy: `${folder}/ours.toml` }),
    );
    expect(() => checkEffect(agent, "bypass")).not.toThrow();
  } finally {
    rmSync(folder, { recursive: true });
  }
});
