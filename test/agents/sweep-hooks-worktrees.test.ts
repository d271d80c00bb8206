// Sweeps, hooks, compare, conflicts, occupied directories, worktrees and notes, with several real agents in one repository.
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { Listed } from "./check-answers.ts";
import { claude } from "./drivers/claude.ts";
import { codex } from "./drivers/codex.ts";
import { pi073 } from "./drivers/pi.ts";
import { asked, inTurn } from "./lifecycle-steps.ts";
import { type Answer, act, acted, nothingLeft } from "./run-commands.ts";
import { createTestHome, type SeenProcess, type TestHome, waitFor } from "./test-home.ts";

interface Hook {
  state: string;
  status: number | null;
  late: boolean;
  attempts: number;
  problem: string | null;
}

interface Launch {
  id: string;
  name: string | null;
  group: string | null;
  spec: string | null;
  worktree: string | null;
  exit: { status: number } | null;
  hooks: { start: Hook | null; exit: Hook | null } | null;
}

type Row = Listed & { ref: string; launch: Launch | null };

interface Conflict {
  kind: string;
  sessions: string[];
  files: string[];
}

interface Compared {
  id: string;
  agent: string;
  outcome: string | null;
  denied: number | null;
  tokens: { total: number } | null;
  wallMs: number | null;
  changes: { commits: number; files: number; added: number; removed: number } | null;
  check: { status: number | null; output: string } | null;
}

interface Started {
  slot: number;
  id?: string;
  agent?: string;
  cwd?: string;
  group?: string;
  label?: string;
  error?: string;
}

const three = [claude, codex, pi073] as const;
const here = (agents: readonly (typeof three)[number][] = three) => createTestHome({ agents });

const json = async <T>(world: TestHome, ...args: string[]): Promise<T> =>
  JSON.parse(await acted(world, [...args, "--json"])) as T;

const rows = async (world: TestHome, ...args: string[]): Promise<Row[]> =>
  (await json<{ sessions: Row[] }>(world, "list", "-a", ...args)).sessions;

const conflicts = async (world: TestHome): Promise<Conflict[]> =>
  (await json<{ conflicts: Conflict[] }>(world, "list")).conflicts;

const git = (cwd: string, ...args: string[]): string => {
  const { exitCode, stdout, stderr } = Bun.spawnSync(["git", "-C", cwd, ...who, ...args], {
    env: { PATH: "/usr/bin:/bin" },
  });
  if (exitCode !== 0) throw new Error(`git ${args.join(" ")}: ${stderr}`);
  return stdout.toString().trim();
};

const who = ["-c", "user.name=a", "-c", "user.email=a@example.invalid"];

/** Where agentctl puts the worktree of this name. */
const at = ({ cwd }: TestHome, name: string): string => `${cwd}.worktrees/${name}`;

/** Everything that a hook finds in its environment, in a file of each agent, whole as soon as it is there. */
const toFile = (world: TestHome, name: string): string => {
  const file = `${world.dir}/${name}-$AGENTCTL_AGENT`;
  return `echo >>"${file}.times"; env >"${file}.tmp"; mv "${file}.tmp" "${file}"`;
};

async function variables(world: TestHome, name: string): Promise<Record<string, string>> {
  const path = join(world.dir, name);
  await waitFor(`the hook's ${name}`, () => existsSync(path));
  const pairs = readFileSync(path, "utf8")
    .split("\n")
    .flatMap((line) => (line.startsWith("AGENTCTL_") ? [line.split(/=(.*)/s).slice(0, 2)] : []));
  const own = ["AGENTCTL_HOME", "AGENTCTL_TEST_WORLD", "AGENTCTL_GEMINI_BIN", "AGENTCTL_QWEN_BIN"];
  return Object.fromEntries(pairs.filter(([key = ""]) => !own.includes(key))) as Record<string, string>;
}

const timesOf = (world: TestHome, name: string): number =>
  existsSync(join(world.dir, `${name}.times`)) ? readFileSync(join(world.dir, `${name}.times`), "utf8").length : 0;

/** The prompt as the model got it from this agent. */
const promptTo = (world: TestHome, api: string, words: string): string =>
  world.model.requests.find((request) => request.api === api && request.text.includes(words))?.text ?? "";

const apis = { "claude-code": "messages", codex: "responses", pi: "chat" } as const;

const until = (world: TestHome, what: string, look: () => Promise<boolean>): Promise<true> =>
  waitFor(what, async () => ((await look()) ? (true as const) : null), {
    explain: () =>
      JSON.stringify(
        world.processes().map(({ argv }) => argv.join(" ").slice(0, 200)),
        null,
        1,
      ),
  });

const refused = (answer: Answer, ...words: string[]): void => {
  expect([answer.code, answer.out]).toEqual([5, ""]);
  for (const word of words) expect(answer.err).toContain(word);
};

test("a sweep with worktrees, group, specification, context, hooks and one failed session; then list, wait, compare, diff", async () => {
  await using world = await here();
  mkdirSync(join(world.cwd, "docs"));
  writeFileSync(join(world.cwd, "docs", "spec.md"), "the specification itself\n");
  writeFileSync(join(world.cwd, "file"), "one\ntwo\nthree\n");
  writeFileSync(join(world.cwd, "notes.txt"), "what the context says\n");
  git(world.cwd, "add", ".");
  git(world.cwd, "commit", "-qm", "files");
  const edits = [
    `BASH=printf 'a\\nb\\n' >work.txt; git add work.txt; git ${who.join(" ")} commit -qm work`,
    "BASH=sed -i 1d file; echo 'new <b>' >left.txt",
    "HOLD=sweep",
    "SAY=swept",
  ].join("\n");
  const agents = ["--agent", "claude", "--agent", "codex", "--agent", "gemini", "--agent", "pi", "--agent", "qwen"];
  const fails = join(world.dir, "fails");
  writeFileSync(fails, "#!/bin/sh\necho it cannot begin >&2\nexit 3\n", { mode: 0o755 });
  const context = ["--spec", "docs/spec.md", "--context", "notes.txt"];
  const setup = `basename "$PWD" >>"${world.dir}/setups"`;
  const hooks = ["--on-start", toFile(world, "start"), "--on-exit", toFile(world, "exit")];
  const { code, out, err } = await act(
    world,
    [
      ...["launch", ...agents, "--group", "g", "--name", "n", "--permission", "bypass", "--json"],
      ...["--setup", setup, ...hooks, ...context, edits],
    ],
    { env: { AGENTCTL_GEMINI_BIN: "/nowhere/gemini", AGENTCTL_QWEN_BIN: fails } },
  );
  expect([code, err]).toEqual([1, expect.stringContaining("started 3 of 5; see agentctl list --group g")]);
  expect(err).toMatch(/3\/5 gemini did not start: .*\/nowhere\/gemini/);
  expect(err).toMatch(/5\/5 qwen did not start: [\s\S]*it cannot begin/);
  const answers = JSON.parse(out) as Started[];
  const places = {
    "claude-code": at(world, "g-claude-code-1"),
    codex: at(world, "g-codex-2"),
    pi: at(world, "g-pi-4"),
  };
  expect(answers).toMatchObject([
    { slot: 1, agent: "claude-code", cwd: places["claude-code"], group: "g", permission: "bypass" },
    { slot: 2, agent: "codex", cwd: places.codex, group: "g", permission: "bypass" },
    { slot: 3, label: "gemini", error: expect.stringContaining("/nowhere/gemini") },
    { slot: 4, agent: "pi", cwd: places.pi, group: "g", permission: "bypass" },
    { slot: 5, label: "qwen", error: expect.stringContaining("it cannot begin") },
  ]);
  const begun = answers.filter(({ error }) => error === undefined);
  // A session that did not start leaves neither a worktree nor a branch.
  expect(git(world.cwd, "worktree", "list", "--porcelain").match(/^worktree /gm)).toHaveLength(4);
  expect(git(world.cwd, "branch", "--list").split("\n")).toHaveLength(4);
  expect(readFileSync(join(world.dir, "setups"), "utf8").trim().split("\n").sort()).toEqual(
    expect.arrayContaining(["g-claude-code-1", "g-codex-2", "g-pi-4"]),
  );

  // All of them have edited, and are held before their last answer.
  for (const [agent, place] of Object.entries(places))
    await waitFor(`${agent}'s edits`, () => existsSync(join(place, "left.txt")));
  await until(
    world,
    "three last answers",
    async () => world.model.requests.filter(({ toolResults }) => toolResults.length === 2).length === 3,
  );
  const live = await rows(world, "--group", "g");
  expect(live.map(({ id }) => id).sort()).toEqual(begun.map(({ id }) => id ?? "").sort());
  const spec = realpathSync(join(world.cwd, "docs", "spec.md"));
  for (const { id, agent = "", slot } of begun) {
    const row = live.find((each) => each.id === id);
    const place = places[agent as keyof typeof places];
    expect(row).toMatchObject({
      agent,
      state: "running",
      activity: "working",
      cwd: place,
      // Pi does not write it down.
      branch: agent === "pi" ? null : git(place, "branch", "--show-current"),
    });
    expect(row?.launch).toMatchObject({ name: `n-${slot}`, group: "g", spec, worktree: place, exit: null });
    expect(existsSync(join(world.dir, "agentctl", "logs", `${row?.launch?.id}.out`))).toBe(true);
    const prompt = promptTo(world, apis[agent as keyof typeof apis], "HOLD=sweep");
    const told = prompt.slice(prompt.indexOf("Read this"));
    expect(told).toStartWith(`Read this specification first: ${spec}\n\nBASH=printf`);
    expect(told).toContain("SAY=swept\n\nContent of notes.txt:\n\nwhat the context says\n\nEnd of notes.txt.");
    expect(await variables(world, `start-${agent}`)).toEqual({
      AGENTCTL_SESSION_ID: id ?? "",
      AGENTCTL_AGENT: agent,
      AGENTCTL_CWD: place,
      AGENTCTL_GROUP: "g",
      AGENTCTL_NAME: `n-${slot}`,
      AGENTCTL_MODEL: expect.any(String),
      AGENTCTL_BRANCH: git(place, "branch", "--show-current"),
      AGENTCTL_LAUNCH_ID: row?.launch?.id ?? "",
      AGENTCTL_EXIT_STATUS: "",
      AGENTCTL_OUTCOME: "",
    });
    expect(existsSync(join(world.dir, `exit-${agent}`))).toBe(false);
  }

  world.model.release("sweep");
  const waited = await act(world, ["wait", "--group", "g"]);
  expect([waited.code, waited.out.match(/completed/g)?.length]).toEqual([0, 3]);
  for (const { id, agent = "" } of begun) {
    expect(await variables(world, `exit-${agent}`)).toMatchObject({
      AGENTCTL_SESSION_ID: id ?? "",
      AGENTCTL_EXIT_STATUS: "0",
      AGENTCTL_OUTCOME: "completed",
      AGENTCTL_MODEL: expect.stringMatching(/./),
    });
    expect([timesOf(world, `start-${agent}`), timesOf(world, `exit-${agent}`)]).toEqual([1, 1]);
  }
  await nothingLeft(world);
  for (const { launch } of await rows(world, "--group", "g"))
    expect(launch).toMatchObject({
      exit: { status: 0 },
      hooks: { start: { state: "ended", status: 0, late: false }, exit: { state: "ended", status: 0, late: false } },
    });

  const page = join(world.dir, "page.html");
  const check = "test -e work.txt && case $PWD in *codex*) echo no; exit 3;; esac";
  const compared = await json<Compared[]>(world, "compare", "g", "--check", check, "--html", page);
  expect(compared.map(({ id }) => id).sort()).toEqual(begun.map(({ id }) => id ?? "").sort());
  for (const each of compared) {
    expect(each).toMatchObject({ outcome: "completed", changes: { commits: 1, files: 3, added: 3, removed: 1 } });
    // Only Claude's record tells.
    expect([each.agent, each.denied]).toEqual([each.agent, each.agent === "claude-code" ? 0 : null]);
    expect(each.check).toMatchObject(each.agent === "codex" ? { status: 3, output: "no\n" } : { status: 0 });
    expect(each.tokens?.total).toBeGreaterThan(0);
    expect(each.wallMs).toBeGreaterThan(0);
  }
  const table = await acted(world, ["compare", "g"]);
  expect(table.match(/completed .* 1 +3 +\+3 -1/g)).toHaveLength(3);
  const html = readFileSync(page, "utf8");
  expect(html).not.toMatch(/<script|<link|<img|<iframe|src=|href=|url\(|@import/i);
  expect(html.match(/new &lt;b&gt;/g)).toHaveLength(3);
  for (const { id } of begun) {
    const patch = await acted(world, ["diff", id ?? ""]);
    for (const line of ["+++ b/work.txt", "+++ b/left.txt", "-one", "+new <b>"]) expect(patch).toContain(line);
  }
});

test("conflicts are reported, and worktrees with live sessions are kept and removed later", async () => {
  await using world = await here();
  const file = join(world.dir, "sweep.yaml");
  const write = { file_path: join(at(world, "c-claude-code-1"), "shared.txt"), content: "by claude\n" };
  const prompts = [
    `TOOL=Write ${JSON.stringify(write)}\nBASH=python3 -c "open('ran','w')"\nHOLD=c\nSAY=done`,
    "BASH=echo by codex >shared.txt\nHOLD=c\nSAY=done",
    "HOLD=c\nSAY=done",
  ];
  const names = ["claude", "codex", "pi"];
  writeFileSync(
    file,
    `permission: edit\ngroup: c\nmatrix:\n${names.map((agent, index) => `  - agent: ${agent}\n    prompt: ${JSON.stringify(prompts[index])}\n`).join("")}`,
  );
  const ids = (await acted(world, ["launch", "--matrix", file, "--on-exit", toFile(world, "exit")])).split("\n");
  const [claudeId = "", codexId = "", piId = ""] = ids;
  const [claudePlace, codexPlace, piPlace] = [
    at(world, "c-claude-code-1"),
    at(world, "c-codex-2"),
    at(world, "c-pi-3"),
  ];
  for (const place of [claudePlace, codexPlace])
    await waitFor(`shared.txt in ${place}`, () => existsSync(join(place, "shared.txt")));
  await until(
    world,
    "three last answers",
    async () =>
      world.model.requests.filter(({ text, toolResults, answer, tools }) => {
        const calls = text.match(/^(?:TOOL|BASH)=/gm)?.length ?? 0;
        return tools.length > 0 && text.includes("HOLD=c") && toolResults.length === calls && answer === "text";
      }).length >= 3,
  );
  const expected = [{ kind: "file", sessions: expect.arrayContaining([claudeId, codexId]), files: ["shared.txt"] }];
  expect(await conflicts(world)).toEqual(expected);
  const told = await act(world, ["list"]);
  expect(told.err).toMatch(/(claude-code|codex) \S+ and (claude-code|codex) \S+ have both changed shared\.txt/);
  expect((await act(world, ["doctor"])).out).toContain("have both changed shared.txt");

  const trees = await json<{ path: string; sessions: unknown[]; keep: string[] }[]>(world, "worktree", "list");
  const places = [claudePlace, codexPlace, piPlace];
  for (const [index, agent] of ["claude-code", "codex", "pi"].entries())
    expect(trees.find(({ path }) => path === places[index])?.sessions).toEqual([
      { agent, id: ids[index], state: "running" },
    ]);
  const shown = await acted(world, ["worktree", "list"]);
  // Pi's record begins with its first complete answer.
  for (const [index, agent] of ["claude-code", "codex", "pi"].entries())
    expect(shown).toMatch(
      new RegExp(`${agent} ${ids[index]?.slice(0, 8)}\\S* ${agent === "pi" ? "starting|unclear" : "working"}`),
    );
  for (const place of places)
    for (const flags of [[], ["--discard"]]) {
      refused(await act(world, ["worktree", "remove", basename(place), ...flags]), place, "agentctl stop ");
      expect(existsSync(place)).toBe(true);
    }
  expect(await act(world, ["worktree", "prune", "-y"])).toMatchObject({ code: 0, out: "no worktree can be removed\n" });

  await acted(world, ["stop", "--group", "c", "-y"]);
  expect(await conflicts(world)).toEqual([]);
  // Interrupted, Claude exits with 0; Pi dies of SIGTERM before it has written a word.
  const ends = { "claude-code": ["0", "interrupted"], codex: ["1", "interrupted"], pi: ["143", ""] };
  for (const [agent, [status = "", outcome = ""]] of Object.entries(ends))
    expect(await variables(world, `exit-${agent}`)).toMatchObject({
      AGENTCTL_EXIT_STATUS: status,
      AGENTCTL_OUTCOME: outcome,
    });
  const after = await rows(world, "--group", "c");
  expect(after.map(({ state }) => state)).toEqual(["stopped", "stopped", "stopped"]);
  const compared = await json<Compared[]>(world, "compare", "c");
  expect(compared.find(({ agent }) => agent === "claude-code")).toMatchObject({
    denied: 1,
    changes: { commits: 0, files: 1, added: 1, removed: 0 },
  });
  expect(compared.find(({ agent }) => agent === "codex")).toMatchObject({ changes: { files: 1, added: 1 } });
  expect(compared.find(({ id }) => id === piId)).toMatchObject({ changes: { files: 0 } });
  const pruned = await act(world, ["worktree", "prune", "-y"]);
  expect(pruned.code).toBe(0);
  expect(pruned.err).toContain(`${claudePlace} is kept: `);
  expect(pruned.err).toContain(`${codexPlace} is kept: `);
  expect(places.map((place) => existsSync(place))).toEqual([true, true, false]);
  refused(await act(world, ["worktree", "remove", basename(codexPlace)]), "--discard");
  await acted(world, ["worktree", "remove", basename(codexPlace), "--discard"]);
  expect(existsSync(codexPlace)).toBe(false);
  expect(git(world.cwd, "branch", "--list").split("\n")).toHaveLength(2);
});

test("if the holder was killed, the next acting command runs on-exit once", async () => {
  await using world = await here([claude, codex]);
  const hooks = ["--on-exit", toFile(world, "exit"), "--group", "k", "--permission", "bypass"];
  const out = await acted(world, ["launch", "--agent", "claude", "--agent", "codex", "HOLD=k ;; SAY=over", ...hooks]);
  const ids = out.split("\n");
  await until(
    world,
    "two prompts",
    async () =>
      world.model.requests.filter(({ text, tools }) => tools.length > 0 && text.includes("HOLD=k")).length === 2,
  );
  const isHolder = ({ argv, pid, session }: SeenProcess) => argv[3] === "agentctl-holder" && pid === session;
  const holders = world.processes().filter(isHolder);
  expect(holders).toHaveLength(2);
  for (const { pid } of holders) process.kill(pid, "SIGKILL");
  await waitFor("the holders' end", () => world.processes().filter(isHolder).length === 0);
  for (const { state, activity } of await rows(world, "--group", "k"))
    expect([state, activity]).toEqual(["running", "working"]);
  // The sessions are alive, so no command may run the hook yet.
  const failing = ["--worktree", "--label", "is=bad", "--on-exit", toFile(world, "failed"), "--permission", "edit"];
  for (const agent of ["claude", "codex"]) {
    const id = await acted(world, ["launch", agent, "ERR=400", ...failing]);
    expect((await act(world, ["wait", id])).code).toBe(10);
  }
  for (const agent of ["claude-code", "codex"])
    expect(await variables(world, `failed-${agent}`)).toMatchObject({
      AGENTCTL_EXIT_STATUS: "1",
      AGENTCTL_OUTCOME: "failed",
    });
  world.model.release("k");
  expect((await act(world, ["wait", "--group", "k"])).code).toBe(0);
  await nothingLeft(world);
  await rows(world);
  expect(["claude-code", "codex"].map((agent) => timesOf(world, `exit-${agent}`))).toEqual([0, 0]);
  // Two at once: each hook is run by one of them.
  await Promise.all([1, 2].map(() => acted(world, ["stop", ids[0] ?? ""])));
  for (const [index, agent] of ["claude-code", "codex"].entries())
    expect(await variables(world, `exit-${agent}`)).toMatchObject({
      AGENTCTL_SESSION_ID: ids[index] ?? "",
      AGENTCTL_GROUP: "k",
      AGENTCTL_LATE: "1",
      AGENTCTL_EXIT_STATUS: "",
      AGENTCTL_OUTCOME: "completed",
    });
  await nothingLeft(world);
  for (const agent of ["claude-code", "codex"]) {
    expect(Object.keys(await variables(world, `exit-${agent}`)).filter((key) => key.includes("TAG"))).toEqual([]);
    expect(timesOf(world, `exit-${agent}`)).toBe(1);
  }
  for (const { launch } of await rows(world, "--group", "k"))
    expect(launch).toMatchObject({
      exit: null,
      hooks: { exit: { state: "ended", status: 0, late: true, attempts: 1 } },
    });
});

for (const [occupant, other] of [
  [claude, codex],
  [codex, claude],
] as const)
  test(`a directory in which ${occupant.agent} works, started by hand, refuses a launch of ${other.agent}`, async () => {
    await using world = await here([claude, codex]);
    symlinkSync(world.cwd, join(world.home, "link"));
    mkdirSync(join(world.cwd, "sub"));
    const { id, pid, agent } = await inTurn(world, occupant);
    const words = [`${occupant.agent} ${id?.slice(0, 8)}`, "is working there", `(pid ${pid}`, "--worktree", "--share"];
    const launch = (...args: string[]) => act(world, ["launch", other.agent, "SAY=x", "--permission", "edit", ...args]);
    for (const where of [world.cwd, join(world.home, "link"), join(world.cwd, "sub"), join(world.home, "link", "sub")])
      refused(await launch("--cwd", where), ...words);
    expect(other.sessions(world)).toEqual([]);
    expect(await acted(world, ["lock", "list"])).toContain(`${occupant.agent} ${id?.slice(0, 8)}`);
    // What the hint offers works.
    const apart = await launch("--worktree");
    expect([apart.code, apart.err]).toEqual([0, expect.not.stringContaining("same directory:")]);
    const shared = await launch("--share");
    expect([shared.code, shared.err]).toEqual([0, expect.stringContaining(`same directory: ${words[0]}`)]);
    for (const { out } of [apart, shared]) await acted(world, ["wait", out.trim()]);
    world.model.release("answer");
    await acted(world, ["wait", String(id)]);
    await agent.exited;
    // A person's lock, through the link: the same place.
    await acted(world, ["lock", "add", join(world.home, "link"), "--by", "anna", "--reason", "release"]);
    expect(await json(world, "lock", "list")).toMatchObject([
      { kind: "manual", place: realpathSync(world.cwd), by: "anna", reason: "release" },
    ]);
    refused(await launch(), "locked by anna until 20", ": release");
    await acted(world, ["lock", "rm", world.cwd]);
    const free = await launch();
    expect(free.code).toBe(0);
    await acted(world, ["wait", free.out.trim()]);
    // The directory is free at once, even while a finished process takes its time to exit.
    const next = await acted(world, ["launch", occupant.agent, "HOLD=next ;; SAY=next", "--permission", "edit"]);
    await asked(world, "HOLD=next");
    expect(await conflicts(world)).toEqual([]);
    expect((await act(world, ["doctor"])).out).not.toContain("at work in one worktree");
    expect(await json(world, "lock", "list")).toMatchObject([{ kind: "derived", by: `${occupant.agent} ${next}` }]);
    const second = await acted(world, [
      "launch",
      other.agent,
      "HOLD=next ;; SAY=next",
      "--permission",
      "edit",
      "--share",
    ]);
    await until(world, "both at work", async () => (await conflicts(world)).length > 0);
    expect(await conflicts(world)).toEqual([
      { kind: "index", sessions: expect.arrayContaining([next, second]), files: [] },
    ]);
    await acted(world, ["stop", next, second]);
  });

test("removing agentctl's notes while agents run changes no status", async () => {
  await using world = await here();
  const home = join(world.dir, "agentctl");
  const args = ["--group", "notes", "--permission", "bypass", "--name", "n"];
  const agents = ["--agent", "claude", "--agent", "codex", "--agent", "pi"];
  const over = await acted(world, ["launch", "claude", "SAY=over", "--permission", "bypass"]);
  await acted(world, ["wait", over]);
  await nothingLeft(world);
  const out = await acted(world, ["launch", ...agents, "BASH=true ;; HOLD=notes ;; SAY=done", ...args]);
  for (const api of Object.values(apis))
    await until(world, `${api} is asked`, async () =>
      world.model.requests.some((request) => request.api === api && request.toolResults.length === 1),
    );
  await asked(world, "HOLD=notes");
  const du = await json<{ what: string; count: number; inUse: number; bytes: number }[]>(world, "du");
  for (const what of ["notes", "logs"])
    expect(du.find((each) => each.what === what)).toMatchObject({ count: 4, inUse: 3, bytes: expect.any(Number) });
  expect(du.find(({ what }) => what === "worktrees")).toMatchObject({ count: 3, inUse: 3 });
  const dry = await act(world, ["prune", "--dry-run"]);
  expect([dry.code, dry.out]).toEqual([0, expect.stringContaining("3 launches are in use and stay")]);
  expect(dry.out.match(/launch \S+ can be deleted/g)).toHaveLength(1);
  const plain = async () =>
    (await rows(world))
      .map(({ launch: _, ...row }) => ({ ...row, name: null }))
      .sort((a, b) => (String(a.id) < String(b.id) ? -1 : 1));
  const before = await plain();
  expect(before.map(({ status }) => status).sort()).toEqual(["completed", "working", "working", "working"]);
  rmSync(home, { recursive: true });
  expect(await plain()).toEqual(before);
  expect((await rows(world)).map(({ launch }) => launch)).toEqual([null, null, null, null]);
  world.model.release("notes");
  for (const id of out.split("\n")) expect((await act(world, ["wait", id])).code).toBe(0);
  await nothingLeft(world);
  // Nor do they come back.
  expect(existsSync(join(home, "launches"))).toBe(false);
  expect((await rows(world)).map(({ status }) => status)).toEqual(Array(4).fill("completed"));
});

test("a denied edit is not a conflict; a patch is one, even after it was committed", async () => {
  await using world = await here([claude, codex]);
  const launch = (agent: string, name: string, permission: string, ...calls: string[]) =>
    acted(world, [
      ...["launch", agent, [...calls, "HOLD=r", "SAY=done"].join("\n"), "--worktree", "--name", name],
      ...["--permission", permission],
    ]);
  const write = (name: string): string =>
    `TOOL=Write ${JSON.stringify({ file_path: join(at(world, name), "shared.txt"), content: "x\n" })}`;
  const patch = "apply_patch <<'E'\n*** Begin Patch\n*** Add File: shared.txt\n+by codex\n*** End Patch\nE";
  const denied = await launch("claude", "denied", "read", write("denied"));
  const patched = await launch(
    "codex",
    "patched",
    "bypass",
    `TOOL=exec_command ${JSON.stringify({ cmd: patch })}`,
    `BASH=git add . && git ${who.join(" ")} commit -qm patched && touch ${world.dir}/committed`,
  );
  await waitFor("the commit", () => existsSync(join(world.dir, "committed")));
  expect(git(at(world, "patched"), "status", "--porcelain")).toBe("");
  await until(world, "the refusal", async () => (await json<Row>(world, "status", denied)).denied === 1);
  expect(existsSync(join(at(world, "denied"), "shared.txt"))).toBe(false);
  expect(await conflicts(world)).toEqual([]);
  const wrote = await launch("claude", "wrote", "edit", write("wrote"));
  await waitFor("shared.txt", () => existsSync(join(at(world, "wrote"), "shared.txt")));
  expect(await conflicts(world)).toEqual([
    { kind: "file", sessions: expect.arrayContaining([patched, wrote]), files: ["shared.txt"] },
  ]);
});
