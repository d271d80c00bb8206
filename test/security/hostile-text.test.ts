// Hostile text in records, names, tags, branches, folders and the output of servers and agents, at a real terminal. No command
// prints an escape sequence, except for agentctl's own colours and the cursor movements of `list -w`.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { binary } from "../cli/test-home.ts";
import { createRepositoryHome } from "../cli/test-home-repository.ts";
import { argvOf, recordPath, Server, ServerTestHome, until } from "../cli/test-home-servers.ts";

setDefaultTimeout(60_000);

/** Each kind of sequence in both of its forms, what only hides text, and line breaks. "seen" is what a person may see of it. */
const evil = [
  ..."seen",
  ...["\x1b]52;c;cm0gLXJmIH4=\x07", "\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\", "\x1b]0;title\x07"],
  ...["\x1b[31m", "\x1b[2J\x1b[1;1H", "\x1b[?1049h", "\x1b[6n", "\x1b[>c", "\x1bP+q544e\x1b\\", "\x1b_Gi=1;AAAA\x1b\\"],
  ...["\x1b^pm\x1b\\", "\x1bXsos\x1b\\", "\x1bc", "\x1b(0", "\x1b#8", "\x1b7\x1b8", "\x1b", "\x1b[", "\x1b]"],
  ...["\u009b31m", "\u009d52;c;aGk=\u009c", "\u0090q\u009c", "\u009f\u009c", "\u0085", "\u008d"],
  ...["\x07", "\x08\x08\x08", "\x0b", "\x0c", "\x0e", "\x0f", "\x7f", "\x05", "\x1f", "\x00"],
  ...["\u202e", "\u2066", "\u200f", "\u061c", "\u200b", "\ufeff", "\u{e0041}\u{e007f}", "\u2028", "\ud800"],
  ..."\nagentctl: forged\rover",
].join("");

/** The same for places where no zero byte, or no line break, can be. */
const evilWord = evil.replaceAll("\0", "").replaceAll("\ud800", "");
const evilLine = evilWord.replaceAll(/[\n\r]/g, " ");

const allowed = /\x1b\[(?:0|1|2|3[12346])m|\x1b\[H|\x1b\[J/g;
const [enterScreen, leaveScreen] = ["\x1b[?1049h\x1b[?25l", /\x1b\[\?25h\x1b\[\?1049l$/];
const obeyed =
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e0fff}]/gu;

/** What is left of an output that a terminal would obey, or that hides text. A terminal itself ends its lines with CR LF. */
const obeyedIn = (bytes: Buffer): string[] => [
  ...(bytes.toString("utf8").replaceAll("\r\n", "\n").replaceAll(allowed, "").match(obeyed) ?? []),
];

class HostileTextTestHome extends ServerTestHome {
  readonly place = this.folder(`place ${evilWord.replaceAll("/", "|")}`.slice(0, 80));
  readonly repository = this.folder("repository");
  readonly failing = join(this.root, "failing-agent");
  stopped = "";
  live = "";
  asking = "";
  served = "";
  claude = "";

  async fill(): Promise<this> {
    this.stopped = this.record([
      { type: "session", id: evil, cwd: this.place, model: evil, version: 1, permission: evil },
      { type: "title", text: evil },
      { type: "prompt", text: evil },
      { type: "tool", name: evil, input: evil, call: "1" },
      { type: "tool-result", text: evil, call: "1" },
      { type: "reply", text: `${evil} the end` },
      { type: "end", outcome: "failed", reason: evil },
      { type: evil, text: evil },
    ]);
    this.note(this.stopped, "g");
    this.claude = this.claudeRecord();
    // The tool leaves a process behind whose tag is forged.
    const tag = `${evilWord.replaceAll("'", "")}`;
    const leave = `env -i PATH="$PATH" HOME="$HOME" AGENTCTL_TAG='${tag}' setsid sleep 600 & wait`;
    this.live = this.start([`title:${evilLine}`, `prompt:${evilWord}`, `tool:${leave}`]).id;
    this.note(this.live, "g");
    this.asking = this.start([`prompt:${evilWord}`, `ask:question:${evilWord}`], { cwd: this.place }).id;
    const server = new Server(this);
    this.served = await server.start(evilLine);
    await server.tell(`ask ${this.served} ${evilLine}`, this.served, "question");
    writeFileSync(this.failing, `#!/bin/sh\nprintf '%s\\n' '${evilWord.replaceAll("'", "")}' >&2\nexit 3\n`);
    chmodSync(this.failing, 0o755);
    await this.git("init", "-q", "-b", `main\u202e\u009b31m`);
    await this.git("commit", "-q", "--allow-empty", "-m", evilWord);
    await this.until(this.live, "working");
    await this.until(this.asking, "waiting");
    await until("the leftover", () => this.sleepers() === 1);
    return this;
  }

  private sleepers = (): number => this.pids().filter((pid) => argvOf(pid).join(" ") === "sleep 600").length;

  /** A launch note whose every word is hostile. */
  note(session: string, group: string): void {
    const id = crypto.randomUUID();
    const folder = join(this.root, ".agentctl", "launches");
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const logs = this.folder(".agentctl", "logs");
    const words = {
      name: evil,
      group,
      labels: { [evil]: evil },
      prompt: evil,
      spec: evil,
      worktree: evil,
      commit: evil,
    };
    const hooks = { start: evil, exit: evil };
    const at = new Date().toISOString();
    const note = { schema: 1, id, agent: "demo", home: this.home, session, at, permission: null, launchedBy: evil };
    writeFileSync(join(folder, `${id}.json`), JSON.stringify({ ...note, ...words, hooks }), { mode: 0o600 });
    const run = {
      schema: 1,
      runner: { pid: 1, start: evil, boot: evil },
      begunAt: evil,
      endedAt: evil,
      status: 1,
      problem: evil,
    };
    for (const kind of ["on-start", "on-exit"])
      writeFileSync(join(folder, `${id}.${kind}`), JSON.stringify(run), { mode: 0o600 });
    writeFileSync(join(logs, `${id}.out`), `${evil}\x9b31m`, { mode: 0o600 });
    writeFileSync(join(logs, `${id}.err`), Buffer.concat([Buffer.from(evil), Buffer.from([0x9b, 0x33, 0x31, 0x6d])]));
  }

  /** One with a branch, a title and a version. */
  private claudeRecord(): string {
    const id = crypto.randomUUID();
    const folder = this.folder(".claude", "projects", "-evil");
    const base = {
      sessionId: id,
      cwd: this.place,
      gitBranch: evil,
      version: evil,
      isSidechain: false,
      userType: "external",
    };
    const at = { timestamp: new Date().toISOString() };
    const lines = [
      { type: "summary", summary: evil, leafUuid: "1" },
      { ...base, ...at, type: "user", uuid: "1", parentUuid: null, message: { role: "user", content: evil } },
      {
        ...{ ...base, ...at, type: "assistant", uuid: "2", parentUuid: "1" },
        message: { role: "assistant", model: evil, content: [{ type: "text", text: evil }], stop_reason: "end_turn" },
      },
    ];
    writeFileSync(join(folder, `${id}.jsonl`), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    return id;
  }

  async git(...args: string[]): Promise<void> {
    const words = ["git", "-C", this.repository, "-c", "user.name=A", "-c", "user.email=a@b", ...args];
    const child = Bun.spawn(words, { env: this.env, stdout: "ignore", stderr: "pipe" });
    if ((await child.exited) !== 0) throw new Error(`git ${args[0]}: ${await child.stderr.text()}`);
  }

  /** At a new terminal. With a mark, until the mark is shown: then an endless command is killed. */
  async show(args: readonly string[], options: { env?: Record<string, string>; mark?: string; cwd?: string } = {}) {
    const chunks: Buffer[] = [];
    const child = Bun.spawn([binary, ...args], {
      env: { ...this.env, ...options.env },
      cwd: options.cwd ?? this.repository,
      terminal: { cols: 200, rows: 50, data: (_terminal, data) => void chunks.push(Buffer.from(data)) },
    });
    const { mark } = options;
    if (mark !== undefined) {
      await until(
        `${mark} of ${args.join(" ")}`,
        () => Buffer.concat(chunks).includes(mark) || child.exitCode !== null,
      );
      child.kill("SIGTERM");
    }
    await child.exited;
    await Bun.sleep(1);
    return Buffer.concat(chunks);
  }
}

let stage: HostileTextTestHome;
beforeAll(async () => {
  stage = await new HostileTextTestHome().fill();
});
afterAll(async () => await stage[Symbol.asyncDispose]());

type Words = (stage: HostileTextTestHome) => string[];

/** Commands that leave the stage as it is. */
const looking: [name: string, words: Words][] = [
  ["bare", () => []],
  ["list", () => ["list"]],
  ["list -a --tokens", () => ["list", "-a", "--tokens"]],
  ["list --json", () => ["list", "-a", "--json"]],
  ["statusline", () => ["statusline"]],
  ["doctor", () => ["doctor"]],
  ["doctor --json", () => ["doctor", "--json"]],
  ["adapters", () => ["adapters"]],
  ["du", () => ["du"]],
  ["prune --dry-run", () => ["prune", "--dry-run"]],
  ["lock", () => ["lock"]],
  ["lock add", ({ place }) => ["lock", "add", place, "--reason", evilWord]],
  ["lock list --json", () => ["lock", "list", "--json"]],
  ["worktree list", () => ["worktree", "list"]],
  ["worktree list --json", () => ["worktree", "list", "--json"]],
  ["compare", () => ["compare", "g"]],
  ["compare --json", () => ["compare", "g", "--json"]],
  ["compare --check", () => ["compare", "g", "--check", `printf '%s' '${evilWord.replaceAll("'", "")}'; exit 1`]],
  ["a session that is not there", () => ["status", evilWord]],
  ["a command that is not there", () => [evilWord]],
  ["a flag that is not there", () => ["list", `--${evilWord}`]],
  ["launch of an agent that is not there", () => ["launch", evilWord, "x"]],
  ["launch of an agent that fails", () => ["launch", "demo", "x"]],
  ["run of an agent that fails", () => ["run", "demo", "x"]],
  ["launch with a failing hook", () => ["launch", "demo", "say:x", "--on-start", `echo '${evilWord}' >&2; exit 1`]],
  ["run", () => ["run", "demo", `say:${evilWord}`, "--share"]],
  ["run --json", () => ["run", "demo", `say:${evilWord}`, "--share", "--json"]],
];

const ofSessions: [name: string, words: (id: string) => string[]][] = [
  ["status", (id) => ["status", id]],
  ["status --json", (id) => ["status", id, "--json"]],
  ["why", (id) => ["why", id]],
  ["peek", (id) => ["peek", id]],
  ["peek --json", (id) => ["peek", id, "--json"]],
  ["logs", (id) => ["logs", id]],
  ["logs --json", (id) => ["logs", id, "--json"]],
  ["logs --raw", (id) => ["logs", id, "--raw"]],
  ["logs --output", (id) => ["logs", id, "--output"]],
  ["result", (id) => ["result", id]],
  ["result --json", (id) => ["result", id, "--json"]],
  ["diff", (id) => ["diff", id]],
  ["attach", (id) => ["attach", id]],
  ["resume --print", (id) => ["resume", id, "--print"]],
  ["wait", (id) => ["wait", id, "--timeout", "100ms"]],
  ["wait --json", (id) => ["wait", id, "--timeout", "100ms", "--json"]],
];

const sessions = ["stopped", "live", "asking", "served", "claude"] as const;

describe("at a terminal no escape sequence from elsewhere is printed", () => {
  test.each(looking)("%s", async (name, words) => {
    const env = name.includes("agent that fails") ? { AGENTCTL_DEMO_BIN: stage.failing } : {};
    const bytes = await stage.show(words(stage), { env });
    expect(bytes.length).toBeGreaterThan(0);
    expect(obeyedIn(bytes)).toEqual([]);
  });

  test.each(ofSessions)("%s", async (_name, words) => {
    for (const each of sessions) expect(obeyedIn(await stage.show(words(stage[each])))).toEqual([]);
  });

  test.each([
    ["logs -f", ({ stopped }: HostileTextTestHome) => ["logs", stopped, "-f"], "the end"],
    ["logs -f --raw", ({ stopped }: HostileTextTestHome) => ["logs", stopped, "-f", "--raw"], "the end"],
  ] satisfies [string, Words, string][])("%s", async (_name, words, mark) => {
    const bytes = await stage.show(words(stage), { mark });
    expect(bytes.toString("utf8")).toContain(mark);
    expect(obeyedIn(bytes)).toEqual([]);
  });

  // Enters the alternate screen before its first row. Records cannot make it leave or enter again.
  test("list -w", async () => {
    const [before, after, ...more] = (await stage.show(["list", "-a", "-w"], { mark: "seen" }))
      .toString("utf8")
      .split(enterScreen);
    expect([before, more]).toEqual(["", []]);
    expect(after).toContain("seen");
    expect(obeyedIn(Buffer.from((after ?? "").replace(leaveScreen, "")))).toEqual([]);
  });

  test("agentctl's own colours and cursor movements are printed", async () => {
    expect((await stage.show(["list", "-a"])).toString("utf8")).toContain("\x1b[32mworking");
    expect((await stage.show(["list", "-w"], { mark: "seen" })).toString("utf8")).toContain("\x1b[H\x1b[J");
  });

  test("a row of a table stays one line", async () => {
    const text = (await stage.show(["list", "-a"])).toString("utf8").replaceAll(allowed, "");
    const [head, ...rows] = text.trimEnd().split("\r\n");
    expect(head).toMatch(/^REF +AGENT/);
    const { sessions: listed } = await stage.list();
    expect(rows.length).toBe(listed.length);
    expect(rows.filter((row) => /^[0-9a-f]{8}/.test(row)).length).toBe(listed.length);
    expect(rows.filter((row) => row.includes("seen")).length).toBeGreaterThanOrEqual(sessions.length);
  });

  test("a message stays one line, so that text cannot forge a line of agentctl", async () => {
    for (const words of [["list", "-a"], ["lock"], ["why", stage.live], ["status", stage.stopped], ["compare", "g"]])
      expect((await stage.show(words)).toString("utf8")).not.toMatch(/^agentctl: forged/m);
    const failed = (
      await stage.show(["launch", "demo", "x"], { env: { AGENTCTL_DEMO_BIN: stage.failing } })
    ).toString();
    expect(failed).toContain("\n  agentctl: forged");
    expect(failed).not.toMatch(/^agentctl: forged/m);
  });
});

describe("in a pipe or a file", () => {
  test("records and output are printed byte for byte", async () => {
    const raw = Bun.spawn([binary, "logs", stage.stopped, "--raw"], { env: stage.env, stdout: "pipe" });
    const written = readFileSync(recordPath(stage, stage.stopped));
    expect(Buffer.from(await raw.stdout.bytes()).equals(written)).toBe(true);
    const output = Bun.spawn([binary, "logs", stage.stopped, "--output"], { env: stage.env, stdout: "pipe" });
    const bytes = Buffer.from(await output.stdout.bytes());
    expect(bytes.includes(Buffer.from(`${evil}\x9b31m${evil}`))).toBe(true);
    expect(bytes.subarray(-4)).toEqual(Buffer.from([0x9b, 0x33, 0x31, 0x6d]));
  });

  test("a patch with hostile text applies, and is cleaned at a terminal", async () => {
    await using here = await createRepositoryHome();
    writeFileSync(join(here.repository, "file"), "one\n");
    const { out } = await here.launchHere("work:0.1");
    const id = out.trim();
    await here.agentctl("wait", id);
    writeFileSync(join(here.repository, "file"), `one\n${evilWord}\n`);
    const child = Bun.spawn([binary, "diff", id], { env: here.env, cwd: here.repository, stdout: "pipe" });
    const patch = Buffer.from(await child.stdout.bytes());
    await here.git("checkout", "-q", "--", "file");
    writeFileSync(join(here.root, "patch"), patch);
    await here.git("apply", join(here.root, "patch"));
    expect(readFileSync(join(here.repository, "file"), "utf8")).toBe(`one\n${evilWord}\n`);
    const shown = await stage.show(["diff", id], { env: here.env, cwd: here.repository });
    expect(shown.toString("utf8")).toContain("+seen");
    expect(obeyedIn(shown)).toEqual([]);
  });

  test.each(["list -a", "doctor", "adapters", "du", "lock", "compare g"])(
    "%s --json is JSON without anything hidden in it",
    async (command) => {
      const { out } = await stage.run([...command.split(" "), "--json"]);
      JSON.parse(out);
      expect(out.slice(0, -1)).not.toMatch(obeyed);
      expect(out).not.toMatch(/\\u00[01]/);
    },
  );
});

/** These come last, because they change the home. */
describe("commands that act", () => {
  test("send to a session, and to one in a server", async () => {
    for (const id of [stage.served, stage.stopped])
      expect(obeyedIn(await stage.show(["send", id, `say:${evilWord}`]))).toEqual([]);
  });

  test("interrupt", async () => {
    for (const id of [stage.served, stage.asking]) expect(obeyedIn(await stage.show(["interrupt", id]))).toEqual([]);
  });

  test("stop prints a process with a forged tag on one line, and ignores the tag", async () => {
    const bytes = await stage.show(["stop", stage.live, "-y"]);
    const text = bytes.toString("utf8");
    expect(text).toContain("it belongs to the launch seen");
    expect(obeyedIn(bytes)).toEqual([]);
    expect(text).not.toMatch(/^agentctl: forged/m);
    expect(obeyedIn(await stage.show(["stop", stage.asking, "-y", "--json"]))).toEqual([]);
  });
});
