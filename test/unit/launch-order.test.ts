// A permission that the agent would not keep to is refused before anything is started.
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gemini } from "../../src/adapters/gemini.ts";
import { checkEffect } from "../../src/cli/launch-order.ts";

test("files that take the effect from its flags", () => {
  const folder = mkdtempSync(join(tmpdir(), "agentctl-policies-"));
  try {
    const { read } = gemini.invocation.permissions;
    const voidedBy = { folders: ["/nowhere", folder], name: /\.toml$/, why: "there are others" };
    const permissions = { ...gemini.invocation.permissions, read: { ...read, voidedBy } };
    const agent = { title: "It", invocation: { ...gemini.invocation, permissions } };
    writeFileSync(join(folder, "README"), "");
    expect(() => checkEffect(agent, "read")).not.toThrow();
    writeFileSync(join(folder, "ours.toml"), "");
    expect(() => checkEffect(agent, "read")).toThrow(
      `It cannot be held to --permission read here: there are others (${folder}/ours.toml)`,
    );
    expect(() => checkEffect(agent, "bypass")).not.toThrow();
  } finally {
    rmSync(folder, { recursive: true });
  }
});
