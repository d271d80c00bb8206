// A pipe, a socket, a device, a folder, an endless file or a file of another user instead of each file of agentctl. No command hangs
// on it or believes it, and sessions are still listed.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { hashOf } from "../../src/sys/hash.ts";
import { binary } from "../cli/test-home.ts";
import { createRepositoryHome } from "../cli/test-home-repository.ts";
import { ServerTestHome, until } from "../cli/test-home-servers.ts";
import { otherUid, testAsOther } from "./other-user.ts";

setDefaultTimeout(60_000);

/** Far more than any of them takes on a busy machine, far less than for ever. */
const deadlineMs = 8_000;

class OwnFilesTestHome extends ServerTestHome {
  readonly own = join(this.root, ".agentctl");
  readonly cache = join(this.root, ".cache", "agentctl");
  readonly config = join(this.root, ".config", "agentctl", "config.json");

  /** null: it was still at it when its time was over. */
  async inTime(...args: string[]): Promise<{ code: number | null; out: string; err: string }> {
    const stdio = { stdin: "ignore", stdout: "pipe", stderr: "pipe" } as const;
    const child = Bun.spawn([binary, ...args], { env: this.env, cwd: this.folder("work"), ...stdio });
    let isOver = false;
    const timer = setTimeout(() => {
      isOver = true;
      child.kill("SIGKILL");
    }, deadlineMs);
    const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    clearTimeout(timer);
    return { code: isOver ? null : code, out, err };
  }

  /** Every file that agentctl keeps, after a launch with hooks, a lock, and a record that is long enough to be counted once. */
  async files(): Promise<{ session: string; paths: string[] }> {
    const session = await this.past("say:x", "--on-start", "true", "--on-exit", "true");
    await until("the end of both hooks", () => this.endedHooks().length === 2);
    const tokens = { input: 1, output: 1 };
    const long = this.record([
      { type: "reply", text: "x".repeat(2_000_000), tokens },
      { type: "end", outcome: "completed" },
    ]);
    for (const args of [
      ["lock", "add", this.folder("locked")],
      ["list", "-a", "--tokens"],
    ])
      expect((await this.inTime(...args)).code).toBe(0);
    const totals = join(this.cache, "totals", hashOf(`demo ${join(this.home, "sessions", `${long}.jsonl`)}`));
    const cached = [join(this.cache, "records"), join(this.cache, "live"), totals];
    return { session, paths: [...this.kept().map((name) => join(this.own, name)), ...cached, this.config] };
  }

  private kept = (): string[] =>
    readdirSync(this.own, { recursive: true, encoding: "utf8" }).filter(
      // A file that is being replaced may be gone already.
      (name) => statSync(join(this.own, name), { throwIfNoEntry: false })?.isFile() === true,
    );

  /** The file of a hook's run is written at its beginning and at its end. */
  private endedHooks = (): string[] =>
    this.kept().filter(
      (name) =>
        /^launches.*\.on-(?:start|exit)$/.test(name) &&
        !readFileSync(join(this.own, name), "utf8").includes('"endedAt":null'),
    );
}

const made = (program: string, ...args: string[]): void => {
  const { status, stderr } = spawnSync(program, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${program} ${args.join(" ")}: ${stderr}`);
};

const kinds: [kind: string, plant: (path: string) => void | Promise<void>][] = [
  ["a pipe without a writer", (path) => made("mkfifo", path)],
  [
    "a link to a pipe",
    (path) => {
      made("mkfifo", `${path}.pipe`);
      symlinkSync(`${path}.pipe`, path);
    },
  ],
  ["a link to a device that never ends", (path) => symlinkSync("/dev/zero", path)],
  ["a link to itself", (path) => symlinkSync(path, path)],
  ["a folder", (path) => void mkdirSync(path)],
  [
    "a file of a terabyte",
    (path) => {
      writeFileSync(path, "{");
      truncateSync(path, 2 ** 40);
    },
  ],
  [
    "a socket",
    async (path) => {
      const server = createServer();
      await new Promise<void>((done) => server.listen(path, done));
      // Closing it would remove the file.
      server.unref();
    },
  ],
];

describe.each(kinds)("%s instead of each file", (_kind, plant) => {
  test("no command hangs or crashes, and every session is listed", async () => {
    await using stage = new OwnFilesTestHome();
    const { session, paths } = await stage.files();
    const live = await stage.launch("work:600");
    for (const path of paths) {
      rmSync(path, { force: true });
      mkdirSync(join(path, ".."), { recursive: true, mode: 0o700 });
      await plant(path);
    }
    const answered = async (words: string[]): Promise<number | null> => {
      const { code, err } = await stage.inTime(...words);
      expect({ words, isInTime: code !== null, isUnknown: err.includes("this should not happen") }).toEqual({
        ...{ words, isInTime: true, isUnknown: false },
      });
      return code;
    };
    for (const words of [
      ["list", "-a"],
      ["list", "-a", "--tokens"],
      ["status", session],
    ])
      expect({ words, code: await answered(words) }).toEqual({ words, code: 0 });
    for (const words of [["du"], ["doctor"], ["lock"], ["logs", session, "--output"]]) await answered(words);
    expect((await stage.list()).problems.map(({ code }) => code)).toContain("config-unreadable");
    // The settings may name a default permission, so nothing is launched without them.
    const launch = ["launch", "demo", "say:y", "--share"];
    expect(await answered(launch)).toBe(8);
    rmSync(stage.config, { recursive: true });
    expect(await answered(launch)).toBe(0);
    for (const words of [
      ["stop", live],
      ["prune", "-y"],
    ])
      await answered(words);
    expect(await answered(["list", "-a"])).toBe(0);
    expect((await stage.list()).sessions.length).toBe(4);
  });
});

/** Ways in which a file or a folder of ours is not ours alone. */
const foreign: [how: string, spoil: (path: string) => void][] = [
  ["belongs to another user", (path) => chownSync(path, otherUid, otherUid)],
  ["is writable by everybody", (path) => chmodSync(path, statSync(path).mode | 0o002)],
  [
    "is writable by another group",
    (path) => {
      chownSync(path, -1, otherUid);
      chmodSync(path, statSync(path).mode | 0o020);
    },
  ],
];

function onEach(ways: typeof foreign, title: string, body: (spoil: (path: string) => void) => Promise<void>): void {
  for (const [how, spoil] of ways) testAsOther(title.replace("%s", how), () => body(spoil));
}

describe("files of another user", () => {
  testAsOther("a note and a lock are not believed, and a warning says so", async () => {
    await using stage = new OwnFilesTestHome();
    const { session, paths } = await stage.files();
    await stage.inTime("launch", "demo", "say:z", "--name", "named");
    const notes = readdirSync(join(stage.own, "launches")).filter((name) => name.endsWith(".json"));
    for (const name of notes) chownSync(join(stage.own, "launches", name), otherUid, otherUid);
    for (const path of paths.filter((each) => each.includes("/locks/"))) chownSync(path, otherUid, otherUid);
    const { complete, sessions, problems } = await stage.list();
    expect(complete).toBe(true);
    expect(sessions.find(({ id }) => id === session)?.launch).toBe(null);
    expect(problems.map(({ code }) => code)).toEqual(notes.map(() => "note-unreadable"));
    const { out, err } = await stage.inTime("lock");
    expect({ out, isSaid: err.includes("it belongs to another user") }).toEqual({
      out: "no directory is in use\n",
      isSaid: true,
    });
  });

  testAsOther("a cache is ignored", async () => {
    await using stage = new OwnFilesTestHome();
    const id = await cachedLie(stage);
    expect((await stage.list()).sessions.find((each) => each.id === id)?.title).toBe("a lie");
    for (const name of ["records", "live"])
      if (existsSync(join(stage.cache, name))) chownSync(join(stage.cache, name), otherUid, otherUid);
    expect((await stage.list()).sessions.find((each) => each.id === id)?.title).toBe("true");
  });

  onEach(foreign, "agentctl's own folder that %s is not used; looking goes on, and it is said", async (spoil) => {
    await using stage = new OwnFilesTestHome();
    const { session } = await stage.files();
    spoil(stage.own);
    const { complete, sessions, problems } = await stage.list();
    expect({ complete, codes: problems.map(({ code, source }) => [code, source]) }).toEqual({
      ...{ complete: true, codes: [["note-unreadable", stage.own]] },
    });
    expect(sessions.find(({ id }) => id === session)).toMatchObject({ status: "completed", launch: null });
    const before = readdirSync(stage.own, { recursive: true });
    const launched = await stage.inTime("launch", "demo", "work:600");
    expect(launched).toMatchObject({ code: 1, err: expect.stringMatching(/cannot write to .*\n {2}.*AGENTCTL_HOME/) });
    for (const words of [
      ["lock", "add", "."],
      ["lock", "rm", stage.folder("locked")],
    ])
      expect(await stage.inTime(...words)).toMatchObject({ code: expect.any(Number) });
    expect((await stage.inTime("prune", "-y")).code).toBe(8);
    expect((await stage.inTime("du")).code).toBe(8);
    expect(readdirSync(stage.own, { recursive: true })).toEqual(before);
  });

  onEach(foreign, "a cache folder that %s is neither read nor written nor removed, and it is said", async (spoil) => {
    await using stage = new OwnFilesTestHome();
    const id = await cachedLie(stage);
    spoil(stage.cache);
    const before = readdirSync(stage.cache, { recursive: true });
    const { sessions, problems } = await stage.list();
    expect(sessions.find((each) => each.id === id)?.title).toBe("true");
    expect(problems).toMatchObject([{ code: "cache-unused", source: stage.cache }]);
    await stage.inTime("prune", "-y");
    expect(readdirSync(stage.cache, { recursive: true })).toEqual(before);
  });

  onEach(foreign, "a file of settings that %s does not open the guard", async (spoil) => {
    await using stage = new OwnFilesTestHome();
    mkdirSync(join(stage.config, ".."), { recursive: true });
    writeFileSync(stage.config, JSON.stringify({ insideAgents: "free" }), { mode: 0o600 });
    expect((await stage.list()).problems).toEqual([]);
    spoil(stage.config);
    expect((await stage.list()).problems).toMatchObject([{ code: "config-unreadable", source: stage.config }]);
  });
});

/** A record with a title, and a cache that says another one. */
async function cachedLie(stage: OwnFilesTestHome): Promise<string> {
  const ids = Array.from({ length: 20 }, () =>
    stage.record([
      { type: "title", text: "true" },
      { type: "end", outcome: "completed" },
    ]),
  );
  // What was written within the last two seconds is not cached.
  const path = join(stage.home, "sessions", `${ids[0]}.jsonl`);
  await until("records that are old enough", () => Date.now() - statSync(path).ctimeMs > 2_100);
  await stage.list();
  const file = join(stage.cache, "records");
  const [head = "", body = ""] = readFileSync(file, "utf8").split("\n");
  const lie = body.replaceAll('"title":"true"', '"title":"a lie"');
  writeFileSync(file, `${head.replace(/\S+$/, hashOf(lie))}\n${lie}`);
  return ids[0] ?? "";
}

describe("the page of compare --html", () => {
  test("is readable for its owner only, and not written through a planted link", async () => {
    await using here = await createRepositoryHome();
    const { out } = await here.launchHere("say:x", "--group", "g");
    await here.agentctl("wait", out.trim());
    const [victim, planted, page] = ["victim", "planted.html", "page.html"].map((name) => join(here.root, name)) as [
      string,
      string,
      string,
    ];
    writeFileSync(victim, "precious\n");
    symlinkSync(victim, planted);
    expect(await here.here("compare", "g", "--html", planted)).toMatchObject({
      code: 1,
      err: expect.stringContaining(`${planted}: it is a symbolic link`),
    });
    expect([readFileSync(victim, "utf8"), lstatSync(planted).isSymbolicLink()]).toEqual(["precious\n", true]);
    writeFileSync(page, "old", { mode: 0o644 });
    expect((await here.here("compare", "g", "--html", page)).code).toBe(0);
    expect([(statSync(page).mode & 0o777).toString(8), readFileSync(page, "utf8").slice(0, 15)]).toEqual([
      "600",
      "<!doctype html>",
    ]);
    made("mkfifo", `${page}.pipe`);
    expect(await here.here("compare", "g", "--html", `${page}.pipe`)).toMatchObject({ code: 1 });
    expect(readdirSync(here.root).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });

  testAsOther("does not replace another user's file", async () => {
    await using here = await createRepositoryHome();
    const { out } = await here.launchHere("say:x", "--group", "g");
    await here.agentctl("wait", out.trim());
    const page = join(here.root, "page.html");
    writeFileSync(page, "theirs");
    chownSync(page, otherUid, otherUid);
    expect(await here.here("compare", "g", "--html", page)).toMatchObject({
      code: 1,
      err: expect.stringContaining("another user"),
    });
    expect(readFileSync(page, "utf8")).toBe("theirs");
  });
});

describe("temporary files of a killed writer", () => {
  test("are removed by the next launch if they are old, and kept while they may be in use", async () => {
    await using stage = new OwnFilesTestHome();
    await stage.past("say:x");
    const id = crypto.randomUUID();
    mkdirSync(join(stage.cache, "totals"), { recursive: true, mode: 0o700 });
    for (const folder of ["locks", "support"]) mkdirSync(join(stage.own, folder), { mode: 0o700, recursive: true });
    const left = [
      ...[`launches/${id}.exit.tmp`, `launches/${id}.json.12.3.tmp`, `logs/${id}.prompt`, `logs/${id}.env`].map(
        (name) => join(stage.own, name),
      ),
      ...["locks/x.json.12.3.tmp", "support/settings.json.12.3.tmp"].map((name) => join(stage.own, name)),
      ...["records.12.3.tmp", "totals/abc.12.3.tmp"].map((name) => join(stage.cache, name)),
    ];
    for (const path of left) writeFileSync(path, "x");
    await stage.past("say:y");
    expect(left.filter(existsSync)).toEqual(left);
    const old = Date.now() / 1000 - 7_200;
    for (const path of left) utimesSync(path, old, old);
    await stage.past("say:z");
    await until("the end of the tidying", () => left.filter(existsSync).length === 0);
  });

  test("a holder on a full disk leaves no incomplete exit status", async () => {
    await using here = await createRepositoryHome();
    const own = here.folder(".agentctl");
    const script = [
      `mount -t tmpfs -o size=256k,mode=700 none '${own}' || exit 1`,
      `${binary} launch demo work:0.3 --permission edit >'${here.root}/id' || exit 2`,
      `dd if=/dev/zero of='${own}/filler' bs=4k 2>/dev/null`,
      `${binary} wait "$(cat '${here.root}/id')" >/dev/null`,
      // The holder is gone a moment after its agent.
      `while pgrep -f '[a]gentctl-holder' >/dev/null; do sleep 0.05; done`,
      `find '${own}' -name '*.tmp' >'${here.root}/left'; find '${own}' -name '*.json' >'${here.root}/notes'`,
    ].join("\n");
    const { code, err } = await here.begin(["unshare", "--mount", "sh", "-c", script], { cwd: here.repository }).answer;
    expect({ code, err }).toMatchObject({ code: 0 });
    expect(readFileSync(join(here.root, "notes"), "utf8")).toContain(".json");
    expect(readFileSync(join(here.root, "left"), "utf8")).toBe("");
  });
});

describe("a prompt from a pipe", () => {
  test.each(["SIGINT", "SIGTERM"] as const)("is read to its end, and %s ends the waiting", async (signal) => {
    await using stage = new OwnFilesTestHome();
    const pipe = join(stage.root, "pipe");
    made("mkfifo", pipe);
    const waiting = stage.begin("launch", "demo", "-F", pipe);
    await until("the open pipe", () => isOpening(waiting.pid));
    waiting.kill(signal);
    await waiting.answer();
    expect(waiting.signal ?? 130).not.toBe(0);
    const reading = stage.begin("launch", "demo", "-F", pipe);
    writeFileSync(pipe, "say:x");
    expect((await reading.answer()).code).toBe(0);
  });
});

/** openat(2), by its number on x86-64 or arm64. */
const isOpening = (pid: number): boolean => /^(?:257|56) /.test(readFileSync(`/proc/${pid}/syscall`, "utf8"));
