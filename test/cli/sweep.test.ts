// One launch of several sessions: each has its own worktree, row and log, and a failure affects only its own session.
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { waitFor } from "../conformance/wait.ts";
import { binary } from "./test-home.ts";
import { RepositoryTestHome } from "./test-home-repository.ts";
import { AtTerminal, StopTestHome } from "./test-home-stop.ts";

class SweepTestHome extends RepositoryTestHome {
  launch = (...args: string[]) => this.here("launch", "--permission", "edit", ...args);
  worktrees = (): string[] => (existsSync(this.at("")) ? readdirSync(this.at("")).sort() : []);
  matrix(text: string): string {
    writeFileSync(join(this.root, "sweep.yaml"), text);
    return join(this.root, "sweep.yaml");
  }
}

const world = async (): Promise<SweepTestHome> => await new SweepTestHome().filled();

const readIfThere = (path: string): string => (existsSync(path) ? readFileSync(path, "utf8") : "");

interface SlotAnswer {
  slot: number;
  id?: string;
  error?: string;
  cwd?: string;
  group?: string;
}

describe("--agent given several times", () => {
  test("starts one session each, in its own worktree, named after the group", async () => {
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
    expect([code, err]).toEqual([0, expect.stringContaining("started 2 of 2; see agentctl list --group g")]);
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

  test("for the second time gives branches and folders the next free number", async () => {
    await using here = await world();
    const launch = () => here.launch("--agent", "demo", "--agent", "demo", "edit:o:1", "--group", "speed");
    for (const _ of [1, 2]) expect(await launch()).toMatchObject({ code: 0 });
    await here.git("branch", "agentctl/speed-demo-1-3");
    expect(await launch()).toMatchObject({ code: 0 });
    const names = [
      "speed-demo-1",
      "speed-demo-1-2",
      "speed-demo-1-4",
      "speed-demo-2",
      "speed-demo-2-2",
      "speed-demo-2-3",
    ];
    expect(here.worktrees()).toEqual(names);
    const branches = await here.git("branch", "--format=%(refname:short)", "--list", "agentctl/*");
    expect(branches.split("\n")).toEqual([...names, "speed-demo-1-3"].sort().map((name) => `agentctl/${name}`));
  });

  test("with a named branch that exists is refused with a hint", async () => {
    await using here = await world();
    await here.git("branch", "topic-1");
    const { err } = await here.launch("--agent", "demo", "work:600", "--worktree=topic", "--base", "HEAD");
    expect(err).toContain(
      "1/1 demo did not start: the branch topic-1 exists already; --base would not change it\n  drop --base to continue on that branch, or use --worktree=BRANCH for another one\n",
    );
    expect(here.worktrees()).toEqual([]);
  });

  test("reports a failed session, which affects no other and leaves nothing", async () => {
    await using here = await world();
    here.env["AGENTCTL_CODEX_BIN"] = "/nowhere";
    const { code, out, err } = await here.launch(
      "--agent",
      "demo",
      "--agent",
      "codex",
      "work:600",
      "--group",
      "g",
      "--json",
    );
    expect(code).toBe(1);
    expect(err).toContain("2/2 codex did not start: AGENTCTL_CODEX_BIN does not name a program: /nowhere\n");
    const answers = JSON.parse(out) as SlotAnswer[];
    expect(answers).toMatchObject([
      { slot: 1, group: "g" },
      { slot: 2, error: expect.stringContaining("/nowhere") },
    ]);
    expect(here.worktrees()).toEqual(["g-demo-1"]);
    expect(await here.row(answers[0]?.id ?? "")).toMatchObject({ state: "running" });
  });

  test("has the exit code and hint of the failure if all fail for the same reason", async () => {
    await using here = await world();
    here.env["AGENTCTL_CODEX_BIN"] = "/nowhere";
    const { code, err } = await here.launch("--agent", "codex", "--agent", "codex", "x");
    expect([code, err]).toEqual([7, expect.stringContaining("/nowhere\n  set it to an executable file\n")]);
    const file = here.matrix("prompt: x\nmatrix:\n  - agent: codex\n  - agent: demo\n    base: no-such\n");
    expect(await here.launch("--matrix", file)).toMatchObject({ code: 1, out: "" });
  });

  test("with an unknown agent is a usage error, and nothing starts", async () => {
    await using here = await world();
    const { code, out, err } = await here.launch("--agent", "demo", "--agent", "nobody=x", "work:600");
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain("agentctl: no agent is called nobody (known: claude-code, codex, ");
    expect([here.worktrees(), here.launchedAgents()]).toEqual([[], []]);
  });

  test("without a repository fails for each session; --share starts all in one directory", async () => {
    await using here = new SweepTestHome();
    expect(await here.launch("--agent", "demo", "--agent", "demo", "work:600")).toMatchObject({ code: 2, out: "" });
    const shared = await here.launch("--agent", "demo", "--agent", "demo", "work:600", "--share");
    expect(shared.code).toBe(0);
    for (const id of shared.out.trim().split("\n")) expect(await here.row(id)).toMatchObject({ cwd: here.repository });
  });
});

describe("--matrix", () => {
  test("starts one session per combination; shared values are given once; the command line wins", async () => {
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
    ["prompt: x\nmatrix:\n  - agent: [demo,\n      nobody]\n", ":4: no agent is called nobody (known: claude-code, "],
    ["prompt: {}\nmatrix:\n  - agent: demo\n", ":1: prompt must be a text"],
    ["prompt: x\nhooks:\n  later: y\nmatrix:\n  - agent: demo\n", ":3: unknown key later"],
    ["prompt: x\n", ":1: there is no matrix"],
    ["- a\n", ":1: not a map"],
    ["prompt: 'x\n", ":"],
    ["prompt: x\nprompt: y\nmatrix:\n  - agent: demo\n", ":2:"],
    ["a: &a [x,x]\nb: &b [*a,*a]\nprompt: *b\nmatrix:\n  - agent: demo\n", ":1: unknown key a"],
    ["", ":1: not a map"],
    ["matrix:\n  - agent: demo\n", "there is no prompt"],
    ["prompt: x\n__proto__: x\nmatrix:\n  - agent: demo\n", ":2: unknown key __proto__"],
    ["prompt: x\nmatrix:\n  - agent: demo\n    constructor: x\n", ":4: unknown key constructor"],
    ["prompt: x\nmatrix:\n  - agent: demo\n    <<: {model: a}\n", ":4: unknown key <<"],
    ["prompt: &p x\nspec: *p\nmatrix:\n  - agent: demo\n", ":2: spec must be a text, not an alias"],
    ["prompt: true\nmatrix:\n  - agent: demo\n", ":1: prompt must be a text"],
    ["prompt: !odd x\nmatrix:\n  - agent: demo\n", ":1: Unresolved tag"],
    ["prompt: x\nmatrix:\n  - agent: demo\n    model: []\n", ":4: model must not be empty"],
    ["prompt: x\nmatrix:\n  - agent: demo\n    model: [[a]]\n", ":4: model must be a text"],
    ["prompt: x\nmatrix:\n  - agent: demo\n    agent: demo\n", ":4: agent is given twice"],
    ['prompt: x\nmatrix:\n  - agent: demo\n    base: "a\\0b"\n', ":4: base contains a NUL character"],
    ["prompt: x\nmatrix:\n  - agent: demo\n---\nprompt: y\n", ":4: only one YAML document is allowed"],
    ["prompt: x\nmatrix:\n\t- agent: demo\n", ":3: Tabs are not allowed as indentation\n"],
  ])("%j is a usage error with its line", async (text, says) => {
    await using here = await world();
    const answer = await here.launch("--matrix", here.matrix(text));
    expect(answer).toMatchObject({ code: 2, out: "" });
    expect(answer.err).toContain(says);
    expect(here.launchedAgents()).toEqual([]);
  });

  test.each([
    [
      "arrays with too many combinations",
      `prompt: x\nmatrix:\n  - agent: demo\n${["model", "prompt", "base"].map((key) => `    ${key}: [${"a, ".repeat(200)}]\n`).join("")}`,
      ":3: more than 1000 sessions",
    ],
    ["a hundred thousand brackets", `prompt: ${"[".repeat(100_000)}\n`, ":1: nested too deeply"],
    [
      "twenty thousand keys",
      Array.from({ length: 20_000 }, (_, index) => `k${index}: x\n`).join(""),
      ":1: unknown key k0",
    ],
    ["more than 256 KB", `prompt: ${"x".repeat(256 * 1024)}\n`, "has more than 256 KB"],
  ])("%s", async (_name, text, says) => {
    await using here = await world();
    const answer = await here.launch("--matrix", here.matrix(text));
    expect(answer).toMatchObject({ code: 2, out: "" });
    expect(answer.err).toContain(says);
  });

  test("uses the group of the file, and keeps numbers as written", async () => {
    await using here = await world();
    const file = here.matrix("prompt: 'work:600'\ngroup: of-file\nmatrix:\n  - agent: demo\n    model: 4.10\n");
    const { code, out, err } = await here.launch("--matrix", file);
    expect([code, err]).toEqual([0, expect.stringContaining("agentctl list --group of-file")]);
    expect(await here.row(out.trim())).toMatchObject({ model: "4.10", launch: { group: "of-file" } });
  });

  test("starts twenty sessions", async () => {
    await using here = await world();
    const numbers = Array.from({ length: 20 }, (_, index) => `m${index}`).join(", ");
    const file = here.matrix(`prompt: "say:x"\nmatrix:\n  - agent: demo\n    model: [${numbers}]\n`);
    const { code, out, err } = await here.launch("--matrix", file, "--group", "g");
    expect([code, err]).toEqual([0, expect.stringContaining("started 20 of 20")]);
    expect(new Set(out.trim().split("\n")).size).toBe(20);
    expect(here.worktrees()).toHaveLength(20);
    await here.untilAlone();
    const { sessions } = await here.list("--group", "g");
    expect([sessions.length, [...new Set(sessions.map(({ status }) => status))]]).toEqual([20, ["completed"]]);
  }, 60_000);

  test("on SIGINT ends sessions that are starting, starts no more, and keeps those that have started", async () => {
    await using here = await world();
    const setup = `case $PWD in *-1) ;; *) echo >>'${join(here.root, "setups")}'; sleep 600;; esac`;
    const words = ["--agent", "demo"].join(" ");
    const args = `launch ${Array(8).fill(words).join(" ")} work:600 --group g --permission edit --setup`.split(" ");
    const job = here.begin([binary, ...args, setup], { cwd: here.repository });
    await waitFor("the first one", () => job.said().includes("1/8 demo started"));
    await waitFor("four setups", () => readIfThere(join(here.root, "setups")) === "\n".repeat(4));
    job.kill("SIGINT");
    const { code, out, err } = await job.answer;
    expect([code, err]).toEqual([130, expect.stringContaining("started 1 of 8")]);
    expect(here.worktrees()).toEqual(["g-demo-1"]);
    expect(await here.row(out.trim())).toMatchObject({ state: "running" });
    expect(here.processes().filter(({ argv }) => argv[0] === "sleep")).toEqual([]);
  });

  test("needs a confirmation for more than 64 sessions", async () => {
    await using here = await world();
    const numbers = Array.from({ length: 65 }, (_, index) => `m${index}`).join(", ");
    const answer = await here.launch(
      "--matrix",
      here.matrix(`prompt: x\nmatrix:\n  - agent: demo\n    model: [${numbers}]\n`),
    );
    expect(answer).toMatchObject({ code: 5, out: "" });
    expect(answer.err).toContain("65 sessions would be started");
    expect(here.worktrees()).toEqual([]);
  });

  test("ends at Ctrl-C while it asks for the confirmation", async () => {
    await using home = new StopTestHome();
    const agents = Array(65).fill(["--agent", "demo"]).flat();
    const terminal = new AtTerminal(home, ["launch", ...agents, "say:x", "--share"]);
    await terminal.shows("Start 65 sessions? [y/N] ");
    terminal.type("\x03");
    const { code, shown } = await terminal.ended();
    expect([code, shown]).toEqual([130, expect.not.stringContaining("started")]);
  });
});

test("--max-parallel N keeps at most N sessions at a time, and launch waits until the last has started", async () => {
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
])("%j is a usage error", async (args) => {
  await using here = await world();
  expect(await here.launch(...args)).toMatchObject({ code: 2, out: "" });
});
