// A tmux server is asked only if it is ours, is an ancestor of the agent's process, and has a socket that no other user can replace.

import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { binary, type Listed } from "../cli/test-home.ts";
import { AtTerminal, ServerTestHome, statusOf, Tmux, until } from "../cli/test-home-servers.ts";

interface Placed extends Listed {
  tmux: string | null;
}

const agentWords = (id: string): string[] => [binary, "demo-agent", "--session-id", id, "prompt:x", "end", "idle"];

/** tmux, and a note of every call. */
function notedTmux(stage: ServerTestHome): { env: Record<string, string>; calls(): string } {
  const log = join(stage.root, "tmux-calls");
  writeFileSync(log, "");
  writeFileSync(join(stage.folder("noted"), "tmux"), `#!/bin/sh\necho "$*" >>'${log}'\nexec /usr/bin/tmux "$@"\n`, {
    mode: 0o755,
  });
  return { env: { PATH: `${stage.folder("noted")}:${stage.env["PATH"]}` }, calls: () => readFileSync(log, "utf8") };
}

test("a suspended server is not asked, and blocks no command", async () => {
  await using stage = new ServerTestHome();
  const tmux = new Tmux(stage);
  const id = crypto.randomUUID();
  const pane = await tmux.open("-s", "main", ...agentWords(id));
  expect(((await stage.until(id, "idle")) as Placed).tmux).toBe("main:0.0");
  const server = Number(await tmux.ask(pane, "#{pid}"));
  const noted = notedTmux(stage);
  process.kill(server, "SIGSTOP");
  try {
    await until("the stop", () => statusOf(server, "State").startsWith("T"));
    for (const words of [
      ["list", "--json"],
      ["status", id, "--json"],
      ["status", id],
    ]) {
      const asked = stage.run(words, { env: noted.env });
      const answer = await Promise.race([asked, Bun.sleep(5_000).then(() => null)]);
      expect(answer?.code).toBe(0);
    }
    expect(noted.calls()).toBe("");
  } finally {
    process.kill(server, "SIGCONT");
  }
  expect(((await stage.until(id, "idle")) as Placed).tmux).toBe("main:0.0");
});

describe("a server is not asked", () => {
  /** Another server of ours, at which the agent only points. */
  async function pointedAt(stage: ServerTestHome): Promise<{ env: Record<string, string>; pane: string }> {
    const other = new Tmux(stage, "other");
    const pane = await other.open("-s", "other", "cat");
    return { env: { TMUX: `${await other.ask(pane, "#{socket_path}")},1,0`, TMUX_PANE: pane }, pane };
  }

  test("if it is not an ancestor of the agent's process", async () => {
    await using stage = new ServerTestHome();
    const { env } = await pointedAt(stage);
    const id = crypto.randomUUID();
    new AtTerminal(stage, agentWords(id), { env });
    await stage.until(id, "idle");
    const noted = notedTmux(stage);
    const { out } = await stage.run(["status", id, "--json"], { env: noted.env });
    expect([JSON.parse(out).tmux, noted.calls()]).toEqual([null, ""]);
  });

  test("if its socket is in a folder that others can write to", async () => {
    await using stage = new ServerTestHome();
    chmodSync(stage.root, 0o755);
    const open = join(stage.root, "open");
    mkdirSync(open);
    const socket = join(open, "sock");
    const started = Bun.spawn(["/usr/bin/tmux", "-f", "/dev/null", "-S", socket, "new-session", "-d", "cat"], {
      env: stage.env,
    });
    expect(await started.exited).toBe(0);
    const id = crypto.randomUUID();
    const words = ["/usr/bin/tmux", "-S", socket, "new-window", ...agentWords(id)];
    expect(await Bun.spawn(words, { env: stage.env }).exited).toBe(0);
    expect(((await stage.until(id, "idle")) as Placed).tmux).toBe("0:1.0");
    const noted = notedTmux(stage);
    for (const [mode, place] of [
      [0o777, null],
      [0o1777, "0:1.0"],
      [0o775, null],
      [0o755, "0:1.0"],
    ] as const) {
      chmodSync(open, mode);
      const before = noted.calls();
      const { out } = await stage.run(["status", id, "--json"], { env: noted.env });
      expect([mode, JSON.parse(out).tmux, noted.calls() === before]).toEqual([mode, place, place === null]);
    }
  });
});
