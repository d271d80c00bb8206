// Environment variables of Bun could run code inside agentctl, make it write files, or turn it into another program. The binary
// ignores all of them.

import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { version } from "../../package.json";
import { deafenRuntime } from "../../scripts/deafen-runtime.ts";
import { type Answer, binary, TestHome } from "../cli/test-home.ts";

class Attack extends TestHome {
  /** A file that says so when it is run inside of agentctl. */
  readonly evil = join(this.root, "evil.js");
  readonly trace = join(this.root, "trace");

  constructor() {
    super();
    writeFileSync(this.evil, `require("node:fs").writeFileSync(${JSON.stringify(this.trace)}, "ran");`);
    this.folder("here");
  }

  /** Whatever it writes into its directory is seen. */
  with = (env: Record<string, string>, ...args: string[]): Promise<Answer> =>
    this.run(args, { env, cwd: join(this.root, "here") });

  /** What has come of it: the run file, and the files that agentctl wrote where it was started. */
  get seen(): string[] {
    return [...(existsSync(this.trace) ? ["ran"] : []), ...readdirSync(join(this.root, "here"))];
  }
}

const ownVersion = { code: 0, out: `agentctl ${version}\n`, err: "" };
const emptyList = { code: 0, out: "No sessions.\n", err: "" };

describe("no variable runs code inside agentctl:", () => {
  test.each(["--preload=", "--require=", "--import=", "-r ", "--preload "])("BUN_OPTIONS %s", async (option) => {
    await using attack = new Attack();
    const env = { BUN_OPTIONS: `${option}${attack.evil}` };
    expect([await attack.with(env, "--version"), await attack.with(env, "list"), attack.seen]).toEqual([
      ownVersion,
      emptyList,
      [],
    ]);
  });

  test("BUN_BE_BUN", async () => {
    await using attack = new Attack();
    const env = { BUN_BE_BUN: "1" };
    expect(await attack.with(env, "--version")).toEqual(ownVersion);
    expect(await attack.with(env, "-e", "console.log(6 * 7)")).toMatchObject({ code: 2, out: "" });
    expect(await attack.with(env, "run", attack.evil)).not.toMatchObject({ code: 0 });
    expect(attack.seen).toEqual([]);
  });

  test("BUN_INSPECT_PRELOAD and NODE_OPTIONS", async () => {
    await using attack = new Attack();
    const env = { BUN_INSPECT_PRELOAD: attack.evil, NODE_OPTIONS: `--require ${attack.evil}`, NODE_PATH: attack.root };
    expect([await attack.with(env, "list"), attack.seen]).toEqual([emptyList, []]);
  });

  test("BUN_JSC_functionOverrides", async () => {
    await using attack = new Attack();
    const overrides = join(attack.root, "overrides");
    writeFileSync(overrides, "");
    for (const file of [overrides, "/nowhere"])
      expect(await attack.with({ BUN_JSC_functionOverrides: file }, "list")).toEqual(emptyList);
  });
});

describe("no variable opens agentctl to a debugger:", () => {
  test("BUN_INSPECT_CONNECT_TO, BUN_INSPECT_NOTIFY and BUN_OPTIONS=--inspect-wait", async () => {
    await using attack = new Attack();
    let callers = 0;
    const path = join(attack.root, "debugger.sock");
    const server = createServer((socket) => {
      callers += 1;
      socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(path, resolve));
    const url = `ws+unix://${path}`;
    for (const env of [
      { BUN_INSPECT_CONNECT_TO: url },
      { BUN_INSPECT: `${url}?wait=1`, BUN_INSPECT_NOTIFY: `unix://${path}` },
      { BUN_OPTIONS: `--inspect-wait=${url}`, BUN_INSPECT_NOTIFY: `unix://${path}` },
    ])
      expect(await attack.with(env, "list")).toEqual(emptyList);
    expect(callers).toBe(0);
    server.close();
  });
});

test.each([
  ["BUN_BYTECODE_ORDER_OUT", "order"],
  ["BUN_BYTECODE_ORDER_NAMES_OUT", "names"],
  ["BUN_BYTECODE_DIGEST_OUT", "digest"],
  ["BUN_OPTIONS", "--cpu-prof"],
  ["BUN_OPTIONS", "--heap-prof"],
])("%s=%s writes no file and prints nothing", async (name, value) => {
  await using attack = new Attack();
  expect([await attack.with({ [name]: value }, "list"), attack.seen]).toEqual([emptyList, []]);
});

test.each(["BUN_JSC_dumpOptions", "BUN_JSC_logGC", "BUN_JSC_noSuchOption"])("%s changes no output", async (name) => {
  await using attack = new Attack();
  expect(await attack.with({ [name]: "1" }, "list")).toEqual(emptyList);
});

test("an agent gets the variables that a person set for the agent's own runtime", async () => {
  await using attack = new Attack();
  const seen = join(attack.root, "seen");
  const words = [
    "run",
    "demo",
    "--permission",
    "bypass",
    "-p",
    `tool:echo "$BUN_OPTIONS $NODE_OPTIONS" >${seen}\nsay:done`,
  ];
  const env = { BUN_OPTIONS: "--smol", NODE_OPTIONS: "--max-old-space-size=100" };
  expect(await attack.with(env, ...words)).toMatchObject({ code: 0, out: "done\n" });
  expect(await Bun.file(seen).text()).toBe("--smol --max-old-space-size=100\n");
});

describe("the build", () => {
  test("disables every variable name in the runtime that it compiles in", async () => {
    // The program follows the runtime, and its constants may be named like variables.
    const bytes = Buffer.from(await Bun.file(binary).slice(0, Bun.file(process.execPath).size).arrayBuffer());
    expect(bytes.toString("latin1").match(/(?<=\0)(BUN_[A-Z0-9_]+|NODE_CHANNEL_FD)(?=\0)/g)).toBeNull();
  });

  test("fails with an unknown runtime", () => {
    const other = Buffer.from("\0BUN_OPTIONS\0JSC_functionOverrides\0");
    expect(() => deafenRuntime(other, "x64")).toThrow("does not look up BUN_BE_BUN, BUN_INSPECT");
  });
});
