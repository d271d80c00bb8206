// Several sessions by one launch: each slot with its own worktree, row and log, and a failure that stays its own.
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { RepositoryWorld } from "./repository.ts";
import { binary } from "./world.ts";

class SweepWorld extends RepositoryWorld {
  launch = (...args: string[]) => this.here("launch", "--permission", "edit", ...args);
  worktrees = (): string[] => (existsSync(this.at("")) ? readdirSync(this.at("")).sort() : []);
  matrix(text: string): string {
    writeFileSync(join(this.root, "sweep.yaml"), text);
    return join(this.root, "sweep.yaml");
  }
}

const world = async (): Promise<SweepWorld> => await new SweepWorld().filled();

interface SlotAnswer {
  slot: number;
  id?: string;
  error?: string;
  cwd?: string;
  group?: string;
}

describe("--agent, repeated", () => {
  test("begins one each, in worktrees of their own, with the group's name", async () => {
    await using here = await world();
    const { code, out, err } = await here.launch(
      "--agent",
      "demo",
      "--agent",
      "demo=demo-2",
      "work:600",
      "--group",
      "g",
      "--name",
      "n",
    );
    expect([code, err]).toEqual([0, expect.stringContaining("2 of 2 have begun; agentctl list --group g")]);
    const ids = out.trim().split("\n");
    expect(ids).toHaveLength(2);
    expect(here.worktrees()).toEqual(["g-demo-1", "g-demo-2"]);
    for (const [index, id] of ids.entries())
      expect(await here.row(id)).toMatchObject({
        status: "working",
        cwd: here.at(`g-demo-${index + 1}`),
        launch: { group: "g", name: `n-${index + 1}` },
      });
    expect(await here.row(ids[1] ?? "")).toMatchObject({ model: "demo-2" });
  });

  test("a slot that fails is told, and leaves the others alone and nothing behind", async () => {
    await using here = await world();
    const { code, out, err } = await here.launch(
      "--agent",
      "demo",
      "--agent",
      "nobody",
      "work:600",
      "--group",
      "g",
      "--json",
    );
    expect(code).toBe(1);
    expect(err).toContain("2/2 nobody did not begin: no agent is called nobody");
    const answers = JSON.parse(out) as SlotAnswer[];
    expect(answers).toMatchObject([
      { slot: 1, group: "g" },
      { slot: 2, error: expect.stringContaining("nobody") },
    ]);
    expect(here.worktrees()).toEqual(["g-demo-1"]);
    expect(await here.row(answers[0]?.id ?? "")).toMatchObject({ status: "working" });
  });

  test("without a repository each slot says so; --share puts them all in one place", async () => {
    await using here = new SweepWorld();
    expect(await here.launch("--agent", "demo", "--agent", "demo", "work:600")).toMatchObject({ code: 1, out: "" });
    const shared = await here.launch("--agent", "demo", "--agent", "demo", "work:600", "--share");
    expect(shared.code).toBe(0);
    for (const id of shared.out.trim().split("\n")) expect(await here.row(id)).toMatchObject({ cwd: here.repository });
  });
});

describe("--matrix", () => {
  test("arrays multiply out; what all share is said once; the command line wins", async () => {
    await using here = await world();
    mkdirSync(join(here.repository, "other"));
    writeFileSync(join(here.root, "spec.md"), "do it");
    const file = here.matrix(
      `prompt: "work:600"\nspec: ${join(here.root, "spec.md")}\ngroup: from-file\npermission: read\nmatrix:\n  - agent: demo\n    model: [a, b]\n  - agent: demo\n    model: c\n`,
    );
    const { code, out } = await here.launch("--matrix", file, "--group", "g");
    expect(code).toBe(0);
    const rows = await Promise.all(
      out
        .trim()
        .split("\n")
        .map((id) => here.row(id)),
    );
    expect(rows.map((row) => (row as unknown as { model: string }).model)).toEqual(["a", "b", "c"]);
    for (const row of rows) expect(row).toMatchObject({ launch: { group: "g", spec: join(here.root, "spec.md") } });
  });

  test.each([
    ["prompt: x\nmatrix:\n  - agent: demo\n    modle: a\n", ":4: unknown key modle"],
    ["prompt: x\ncolour: red\nmatrix: []\n", ":2: unknown key colour"],
    ["prompt: x\nmatrix: []\n", ":2: matrix must be a list"],
    ["prompt: x\nmatrix:\n  - model: a\n", ":3: an entry of matrix needs an agent"],
    ["prompt: {}\nmatrix:\n  - agent: demo\n", ":1: prompt must be a text"],
    ["prompt: x\nhooks:\n  later: y\nmatrix:\n  - agent: demo\n", ":3: unknown key later"],
    ["prompt: x\n", ":1: there is no matrix"],
    ["- a\n", ":1: not a map"],
    ["prompt: 'x\n", ":"],
    ["prompt: x\nprompt: y\nmatrix:\n  - agent: demo\n", ":2:"],
    ["a: &a [x,x]\nb: &b [*a,*a]\nprompt: *b\nmatrix:\n  - agent: demo\n", ":1: unknown key a"],
    ["", ":1: not a map"],
    ["matrix:\n  - agent: demo\n", "there is no prompt"],
  ])("%j is a mistake, told with its line", async (text, says) => {
    await using here = await world();
    const answer = await here.launch("--matrix", here.matrix(text));
    expect(answer).toMatchObject({ code: 2, out: "" });
    expect(answer.err).toContain(says);
    expect(here.launchedAgents()).toEqual([]);
  });

  test("more than 64 need a yes", async () => {
    await using here = await world();
    const numbers = Array.from({ length: 65 }, (_, index) => `m${index}`).join(", ");
    const answer = await here.launch(
      "--matrix",
      here.matrix(`prompt: x\nmatrix:\n  - agent: demo\n    model: [${numbers}]\n`),
    );
    expect(answer).toMatchObject({ code: 5, out: "" });
    expect(answer.err).toContain("that is 65 sessions");
    expect(here.worktrees()).toEqual([]);
  });
});

test("--max-parallel keeps launch in the foreground until the last one has begun, never with more than so many", async () => {
  await using here = await world();
  const file = here.matrix("prompt: 'until:go'\nmatrix:\n  - agent: demo\n    model: [a, b, c]\n");
  const running = here.begin(
    [binary, "launch", "--permission", "edit", "--matrix", file, "-p", "work:1", "--max-parallel", "1", "--group", "g"],
    { cwd: here.repository },
  );
  const { code, out } = await running.answer;
  expect(code).toBe(0);
  const rows = await Promise.all(
    out
      .trim()
      .split("\n")
      .map((id) => here.row(id)),
  );
  expect(rows).toHaveLength(3);
  const spans = rows.map((row) => row as unknown as { startedAt: string; endedAt: string | null });
  for (const [index, { startedAt }] of spans.entries())
    if (index > 0) expect(Date.parse(startedAt)).toBeGreaterThanOrEqual(Date.parse(spans[index - 1]?.endedAt ?? ""));
});

test.each([
  [["--agent", "demo", "--matrix", "x", "p"]],
  [["--agent", "demo", "p", "--max-parallel", "0"]],
  [["--agent", "demo"]],
])("%j is a mistake", async (args) => {
  await using here = await world();
  expect(await here.launch(...args)).toMatchObject({ code: 2, out: "" });
});
