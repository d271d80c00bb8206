// agentctl attach goes to the tmux pane of a session, with real tmux servers; without a pane it says where the session runs.
import { describe, expect, test } from "bun:test";
import { mkdirSync, rmSync } from "node:fs";
import { hostname } from "node:os";
import { binary, type Listed } from "./test-home.ts";
import { AtTerminal, isAlive, recordPath, Server, ServerTestHome, Tmux, until } from "./test-home-servers.ts";

const agentWords = (id: string): string[] => [binary, "demo-agent", "--session-id", id, "prompt:x", "end", "idle"];

interface Placed extends Listed {
  tmux: string | null;
  tty: string | null;
}

/** Two sessions of one server; the agent is in the second pane of the second window of the second one. */
async function agentInTmux(stage: ServerTestHome, tmux: Tmux): Promise<{ id: string; pane: string }> {
  const id = crypto.randomUUID();
  await tmux.open("-s", "first", "cat");
  await tmux.open("-s", "my work", "cat");
  await tmux.run("new-window", "-t", "my work:", "cat");
  const words = ["split-window", "-t", "my work:1", "-P", "-F", "#{pane_id}", ...agentWords(id)];
  const pane = await tmux.run(...words);
  await tmux.run("select-pane", "-t", "my work:1.0");
  await tmux.run("select-window", "-t", "my work:0");
  await stage.until(id, "idle");
  return { id, pane };
}

describe("from outside tmux", () => {
  test("this terminal becomes a tmux client that shows the pane", async () => {
    await using stage = new ServerTestHome();
    const tmux = new Tmux(stage);
    const { id, pane } = await agentInTmux(stage, tmux);
    const here = new AtTerminal(stage, [binary, "attach", id]);
    await until("the client", async () => (await tmux.clients()) === `${here.pid} my work ${pane}`);
    expect(await tmux.ask("my work:", "#{window_index}.#{pane_index}")).toBe("1.1");
    await tmux.run("detach-client", "-s", "my work");
    expect(await here.ended()).toBe(0);
  });

  test("without a terminal it prints the command", async () => {
    await using stage = new ServerTestHome();
    const tmux = new Tmux(stage);
    const { id } = await agentInTmux(stage, tmux);
    const { code, out, err } = await stage.run(["attach", id]);
    expect([code, out]).toEqual([5, ""]);
    expect(err).toMatch(
      new RegExp(
        `^agentctl: ${id.slice(0, 8)} is in tmux pane my work:1.1\n  run in a terminal: tmux -S \\S+ attach-session -t 'my work'\n$`,
      ),
    );
  });

  test("a second server is found by the session's own environment", async () => {
    await using stage = new ServerTestHome();
    await new Tmux(stage).open("-s", "main", "cat");
    const other = new Tmux(stage, "other");
    const { id, pane } = await agentInTmux(stage, other);
    const here = new AtTerminal(stage, [binary, "attach", id]);
    await until("the client", async () => (await other.clients()) === `${here.pid} my work ${pane}`);
  });

  test("a pane is found by its terminal, without tmux variables, also in the C locale", async () => {
    await using stage = new ServerTestHome();
    const tmux = new Tmux(stage);
    const id = crypto.randomUUID();
    const pane = await tmux.open("-s", "Büro", "env", "-u", "TMUX", "-u", "TMUX_PANE", ...agentWords(id));
    await stage.until(id, "idle");
    expect((await stage.run(["attach", id], { env: { LC_ALL: "C" } })).err).toContain("is in tmux pane Büro:0.0\n");
    const here = new AtTerminal(stage, [binary, "attach", id], { env: { LC_ALL: "C" } });
    await until("the client", async () => (await tmux.clients()).startsWith(`${here.pid} `));
    expect(await tmux.ask("%0", "#{session_attached} #{pane_id}")).toBe(`1 ${pane}`);
  });
});

describe("from inside tmux", () => {
  async function clientAtShell(stage: ServerTestHome, tmux: Tmux): Promise<{ client: AtTerminal; shell: string }> {
    const shell = await tmux.run("new-window", "-t", "first:", "-P", "-F", "#{pane_id}", "/bin/sh");
    const client = new AtTerminal(stage, [...tmux.command, "attach-session", "-t", "first"]);
    await until("the client", async () => (await tmux.clients()) === `${client.pid} first ${shell}`);
    return { client, shell };
  }

  const typeAttach = (tmux: Tmux, shell: string, id: string): Promise<string> =>
    tmux.run("send-keys", "-t", shell, `'${binary}' attach ${id}; echo "code=$?."`, "Enter");

  test("the client switches to the session, window and pane", async () => {
    await using stage = new ServerTestHome();
    const tmux = new Tmux(stage);
    const { id, pane } = await agentInTmux(stage, tmux);
    const { client, shell } = await clientAtShell(stage, tmux);
    await typeAttach(tmux, shell, id);
    await until("the move", async () => (await tmux.clients()) === `${client.pid} my work ${pane}`);
    await until("its answer", async () => /^code=0\.$/m.test(await tmux.screen(shell)));
  });

  test("the client switches to a pane of the same window", async () => {
    await using stage = new ServerTestHome();
    const tmux = new Tmux(stage);
    const id = crypto.randomUUID();
    const shell = await tmux.open("-s", "main", "/bin/sh");
    const pane = await tmux.run("split-window", "-d", "-t", shell, "-P", "-F", "#{pane_id}", ...agentWords(id));
    await stage.until(id, "idle");
    const client = new AtTerminal(stage, [...tmux.command, "attach-session", "-t", "main"]);
    await until("the client", async () => (await tmux.clients()) === `${client.pid} main ${shell}`);
    await typeAttach(tmux, shell, id);
    await until("the move", async () => (await tmux.clients()) === `${client.pid} main ${pane}`);
  });

  test("a pane of another tmux server is refused with the command to use", async () => {
    await using stage = new ServerTestHome();
    const [here, there] = [new Tmux(stage), new Tmux(stage, "other")];
    const { id } = await agentInTmux(stage, there);
    await here.open("-s", "first", "cat");
    const { client, shell } = await clientAtShell(stage, here);
    await typeAttach(here, shell, id);
    await until("its answer", async () => /^code=5\.$/m.test(await here.screen(shell)));
    expect(await here.screen(shell)).toMatch(
      /is in tmux pane my work:1\.1 of another tmux server\n +detach, then run: tmux -S \S+ attach-session/,
    );
    expect(await here.clients()).toBe(`${client.pid} first ${shell}`);
  });

  test("without an attached client it is refused", async () => {
    await using stage = new ServerTestHome();
    const tmux = new Tmux(stage);
    const { id } = await agentInTmux(stage, tmux);
    const shell = await tmux.run("new-window", "-t", "first:", "-P", "-F", "#{pane_id}", "/bin/sh");
    await typeAttach(tmux, shell, id);
    await until("its answer", async () => /^code=5\.$/m.test(await tmux.screen(shell)));
  });
});

describe("a terminal inside a pane", () => {
  test("belongs to the pane", async () => {
    await using stage = new ServerTestHome();
    const tmux = new Tmux(stage);
    const id = crypto.randomUUID();
    const command = agentWords(id).join(" ");
    await tmux.open("-s", "main", "cat");
    const pane = await tmux.run(
      "new-window",
      "-d",
      "-t",
      "main:",
      "-P",
      "-F",
      "#{pane_id}",
      "script",
      "-qc",
      command,
      "/dev/null",
    );
    const { tty, tmux: place } = (await stage.until(id, "idle")) as Placed;
    expect(tty).not.toBe(await tmux.ask(pane, "#{pane_tty}"));
    expect(place).toBe("main:1.0");
    const here = new AtTerminal(stage, [binary, "attach", id]);
    await until("the client", async () => (await tmux.clients()) === `${here.pid} main ${pane}`);
  });

  test("does not belong to the pane if it only inherited TMUX_PANE", async () => {
    await using stage = new ServerTestHome();
    const tmux = new Tmux(stage);
    const pane = await tmux.open("-s", "main", "cat");
    const TMUX = `${await tmux.ask(pane, "#{socket_path}")},${await tmux.ask(pane, "#{pid}")},0`;
    const id = crypto.randomUUID();
    const agent = new AtTerminal(stage, agentWords(id), { env: { TMUX, TMUX_PANE: pane } });
    const { tmux: place } = (await stage.until(id, "idle")) as Placed;
    expect(place).toBeNull();
    const { code, err } = await stage.run(["attach", id]);
    expect([code, err]).toEqual([5, expect.stringContaining(`(pid ${agent.pid}), started inside tmux, but no`)]);
  });
});

test("list and status name the pane", async () => {
  await using stage = new ServerTestHome();
  const { id } = await agentInTmux(stage, new Tmux(stage));
  const outside = stage.start(["prompt:x", "end", "idle"]);
  await stage.until(outside.id, "idle");
  const rows = (await stage.list()).sessions as Placed[];
  expect(rows.find((row) => row.id === id)?.tmux).toBe("my work:1.1");
  expect(rows.find((row) => row.id === outside.id)?.tmux).toBeNull();
  expect((await stage.json<Placed>("status", id)).tmux).toBe("my work:1.1");
  expect((await stage.run(["status", id], { env: { LC_ALL: "C" } })).out).toContain("my work:1.1");
});

describe("without a pane", () => {
  test("a session in another terminal is named with terminal and pid", async () => {
    await using stage = new ServerTestHome();
    const id = crypto.randomUUID();
    const agent = new AtTerminal(stage, agentWords(id));
    const { tty } = (await stage.until(id, "idle")) as Placed;
    const { code, out, err } = await stage.run(["attach", id]);
    const ref = id.slice(0, 8);
    expect([code, out]).toEqual([5, ""]);
    expect(err).toBe(
      `agentctl: cannot attach: ${ref} runs on ${hostname()} at ${tty} (pid ${agent.pid}), outside tmux\n  go to the window of ${tty}, or follow it here: agentctl logs -f ${ref}\n`,
    );
    expect(isAlive(agent.pid)).toBe(true);
  });

  test("a host without tmux is an error with a hint", async () => {
    await using stage = new ServerTestHome();
    const id = crypto.randomUUID();
    const agent = new AtTerminal(stage, agentWords(id), { env: { TMUX: "/nowhere,1,0", TMUX_PANE: "%0" } });
    await stage.until(id, "idle");
    const { code, err } = await stage.run(["attach", id], { env: { PATH: stage.folder("empty") } });
    expect([code, err]).toEqual([
      5,
      expect.stringContaining(`(pid ${agent.pid}), started inside tmux, but there is no tmux in PATH`),
    ]);
    const { out } = await stage.run(["list", "--json"], { env: { PATH: stage.folder("empty") } });
    expect(JSON.parse(out)).toMatchObject({ complete: true, sessions: [{ id, tmux: null }] });
  });

  test("a background session is refused with a hint to logs -f", async () => {
    await using stage = new ServerTestHome();
    const id = await stage.launch("ask:question:Which?");
    const { code, err } = await stage.run(["attach", id]);
    expect(code).toBe(5);
    expect(err).toContain("without a terminal\n");
    expect(err).toContain(`  agentctl logs -f ${id.slice(0, 8)} follows it`);
  });

  test("a stopped session is refused with a hint to resume", async () => {
    await using stage = new ServerTestHome();
    const id = await stage.past("first");
    expect(await stage.run(["attach", id])).toEqual({
      code: 5,
      out: "",
      err: `agentctl: nothing to attach to: ${id.slice(0, 8)} is not running\n  agentctl resume ${id.slice(0, 8)} reopens it here\n`,
    });
  });

  test("an unknown session is not called stopped", async () => {
    await using stage = new ServerTestHome();
    const id = await stage.past("first");
    rmSync(recordPath(stage, id));
    mkdirSync(recordPath(stage, id));
    const { code, err } = await stage.run(["attach", id]);
    expect(code).toBe(8);
    expect(err).toContain(`cannot tell whether ${id.slice(0, 8)} is running`);
  });

  test("a served session is refused with the server's address", async () => {
    await using stage = new ServerTestHome();
    const server = new Server(stage);
    const id = await server.start("Fix it");
    const { code, err } = await stage.run(["attach", id]);
    expect(code).toBe(5);
    expect(err).toContain(`runs in a server on ${hostname()} (pid ${server.pid}), without a terminal`);
    expect(err).toContain(`agentctl resume ${id.slice(0, 8)} opens an interface to it here`);
  });
});
