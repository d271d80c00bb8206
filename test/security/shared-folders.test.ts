// Folders that every user of the host can write to. Files of another user there cannot block agentctl, and cannot make it write to
// or remove other files.

import { describe, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  rmdirSync,
  statSync,
  watch,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { tryLock } from "../../src/sys/file-lock.ts";
import { binary } from "../cli/test-home.ts";
import { LaunchTestHome } from "../cli/test-home-launch.ts";
import { createRepositoryHome } from "../cli/test-home-repository.ts";
import { waitFor } from "../conformance/wait.ts";
import { asOther, OtherFolder, otherUid, testAsOther } from "./other-user.ts";

const uid = process.getuid?.() ?? 0;

/** A folder like /tmp: writable by all users, and sticky. */
function sharedFolder(world: LaunchTestHome): string {
  chmodSync(world.root, 0o711);
  const shared = world.folder("shared");
  chmodSync(shared, 0o1777);
  return shared;
}

function otherDoes(script: string, ...args: string[]): void {
  const [program = "", ...words] = asOther("sh", "-ec", script, "sh", ...args);
  const { status, stderr } = spawnSync(program, words, { encoding: "utf8" });
  if (status !== 0) throw new Error(`as the other user: ${stderr}`);
}

describe("the launch lock", () => {
  /** With this folder of another user's in the place of a name of ours in /tmp. */
  async function launchBeside(world: LaunchTestHome, theirs: string) {
    const name = `/tmp/agentctl-${uid}`;
    const isMade = !existsSync(name);
    if (isMade) mkdirSync(name, { mode: 0o700 });
    const script = `mount --bind "$THEIRS" ${name} && exec ${binary} launch demo x --permission edit`;
    const answer = await world.begin(["unshare", "-m", "sh", "-c", script], { env: { THEIRS: theirs } }).answer;
    if (isMade) rmdirSync(name);
    return answer;
  }

  testAsOther("cannot be blocked by a folder in /tmp", async () => {
    await using world = new LaunchTestHome();
    using theirs = new OtherFolder();
    expect(await launchBeside(world, theirs.path)).toMatchObject({ code: 0 });
    expect(readdirSync(theirs.path)).toEqual([]);
  });

  testAsOther("is not taken in a runtime folder or a home of another user", async () => {
    await using world = new LaunchTestHome();
    using theirs = new OtherFolder();
    expect(
      await world.begin([binary, "launch", "demo", "x"], { env: { XDG_RUNTIME_DIR: theirs.path } }).answer,
    ).toMatchObject({
      code: 0,
    });
    const { code, err } = await world.begin([binary, "lock", "add"], { env: { AGENTCTL_HOME: theirs.path } }).answer;
    expect([code, err]).toEqual([
      1,
      `agentctl: ${theirs.path} belongs to another user (uid ${otherUid})\n  set AGENTCTL_HOME to a folder of yours\n`,
    ]);
    expect(readdirSync(theirs.path)).toEqual([]);
  });

  test("is the same with and without XDG_RUNTIME_DIR", async () => {
    await using world = new LaunchTestHome();
    const runtime = world.folder("runtime");
    chmodSync(runtime, 0o700);
    const all = await Promise.all(
      Array.from(
        { length: 10 },
        (_, index) =>
          world.begin([binary, "lock", "add"], { env: index % 2 === 0 ? { XDG_RUNTIME_DIR: runtime } : {} }).answer,
      ),
    );
    expect(all.map(({ code }) => code).sort()).toEqual([0, ...Array.from({ length: 9 }, () => 5)]);
    // Not only by chance: one that has it in either place keeps the others waiting.
    for (const path of [join(runtime, "agentctl/launch.lock"), join(world.root, ".agentctl/run/launch.lock")]) {
      const held = openSync(path, "r+");
      expect(tryLock(held)).toBe(true);
      const other = world.begin([binary, "lock", "add"], { env: { XDG_RUNTIME_DIR: runtime } });
      await waitFor("its waiting", () => waitsForChanges(other.pid));
      closeSync(held);
      expect((await other.answer).code).toBe(5);
    }
  });

  /** It asks the kernel for news of a file only where it has to wait for a lock. */
  const waitsForChanges = (pid: number): boolean =>
    readdirSync(`/proc/${pid}/fd`).some((fd) => {
      try {
        return readlinkSync(`/proc/${pid}/fd/${fd}`) === "anon_inode:inotify";
      } catch (error) {
        if (!(error instanceof Error)) throw error;
        return false;
      }
    });

  test("is taken once if two names lead to one folder", async () => {
    await using world = new LaunchTestHome();
    const runtime = world.folder("runtime");
    chmodSync(runtime, 0o700);
    spawnSync("ln", ["-s", "agentctl", join(runtime, "run")]);
    const env = { XDG_RUNTIME_DIR: runtime, AGENTCTL_HOME: runtime };
    expect((await world.begin([binary, "lock", "add"], { env }).answer).code).toBe(0);
    spawnSync("ln", ["-s", world.root, join(world.root, "alias")]);
    const through = { ...env, XDG_RUNTIME_DIR: join(world.root, "alias/runtime") };
    expect((await world.begin([binary, "lock", "rm"], { env: through }).answer).code).toBe(0);
  });
});

describe("temporary copies", () => {
  /** Where a process of ours with this TMPDIR would put its copies; it keeps them, as one that was killed. */
  function scratchOf(folder: string): { folder: string; owner: number; mode: string } {
    const program = [
      `import { openScratch } from ${JSON.stringify(join(import.meta.dir, "../../src/sys/scratch.ts"))};`,
      'import { statSync } from "node:fs";',
      "const { folder } = openScratch();",
      "const { uid, mode } = statSync(folder);",
      "console.log(JSON.stringify({ folder, owner: uid, mode: (mode & 0o777).toString(8) }));",
    ].join("\n");
    const child = spawnSync(process.execPath, ["-e", program], {
      env: { ...process.env, TMPDIR: folder },
      encoding: "utf8",
    });
    if (child.status !== 0) throw new Error(child.stderr);
    return JSON.parse(child.stdout) as { folder: string; owner: number; mode: string };
  }

  testAsOther("are made beside files of another user", async () => {
    await using world = new LaunchTestHome();
    const shared = sharedFolder(world);
    const victim = world.folder("victim");
    writeFileSync(join(victim, "file"), "");
    for (const squat of [
      `: >"$1/agentctl-${uid}"`,
      `rm "$1/agentctl-${uid}"; ln -s /nowhere "$1/agentctl-${uid}"`,
      `rm "$1/agentctl-${uid}"; mkdir -m 777 "$1/agentctl-${uid}"; ln -s "$2" "$1/agentctl-${uid}/copy-1"`,
      `mkdir "$1/agentctl-${uid}-theirs"; ln -s "$2" "$1/agentctl-${uid}-link"`,
    ]) {
      otherDoes(squat, shared, victim);
      const scratch = scratchOf(shared);
      expect([scratch.owner, scratch.mode]).toEqual([uid, "700"]);
      expect(scratch.folder.startsWith(`${shared}/agentctl-${uid}/`)).toBe(false);
    }
    expect(existsSync(join(victim, "file"))).toBe(true);
    // Those of other users stay, and of our own only the last one: the others have ended.
    const [ours, theirs] = [uid, otherUid].map((owner) =>
      readdirSync(shared).filter((name) => statSync(join(shared, name), { throwIfNoEntry: false })?.uid === owner),
    );
    expect([ours?.length, theirs]).toEqual([2, [`agentctl-${uid}`, `agentctl-${uid}-theirs`]]);
  });

  testAsOther("are not made where another user could replace them", async () => {
    await using world = new LaunchTestHome();
    const open = sharedFolder(world);
    chmodSync(open, 0o777);
    const { folder } = scratchOf(open);
    expect(folder.startsWith(open)).toBe(false);
    spawnSync("rm", ["-r", folder]);
  });
});

describe("a folder in the temporary folder with a name like ours", () => {
  test("is not removed if it is a worktree or a person made it", async () => {
    await using here = await createRepositoryHome();
    const temporary = here.folder("tmp");
    const prefix = join(temporary, `agentctl-${process.getuid?.()}-`);
    await here.git("worktree", "add", "-q", `${prefix}fixing`);
    writeFileSync(`${prefix}fixing/unsaved`, "work");
    mkdirSync(`${prefix}thesis`, { mode: 0o700 });
    writeFileSync(`${prefix}thesis/text`, "work");
    const { code } = await here.begin([binary, "worktree", "list"], {
      cwd: here.repository,
      env: { TMPDIR: temporary },
    }).answer;
    expect(code).toBe(0);
    expect(readdirSync(temporary).sort()).toEqual(
      ["fixing", "thesis"].map((name) => `agentctl-${process.getuid?.()}-${name}`),
    );
    expect(existsSync(`${prefix}fixing/unsaved`)).toBe(true);
  });

  testAsOther("a temporary folder of another user is not used, sticky or not", async () => {
    using theirs = new OtherFolder();
    chmodSync(theirs.path, 0o1777);
    await using here = await createRepositoryHome();
    const env = { TMPDIR: theirs.path };
    const watched = watch(theirs.path);
    const seen: string[] = [];
    watched.on("change", (_kind, name) => void seen.push(String(name)));
    expect((await here.begin([binary, "worktree", "list"], { cwd: here.repository, env }).answer).code).toBe(0);
    writeFileSync(join(theirs.path, "last"), "");
    await waitFor("the last file", () => seen.includes("last"));
    watched.close();
    expect(seen.filter((name) => name !== "last")).toEqual([]);
  });
});
