// agentctl config, and the defaults that launch and run take from the configuration file.
import { describe, expect, test } from "bun:test";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { binary, type Listed, TestHome } from "./test-home.ts";
import { ServerTestHome } from "./test-home-servers.ts";

interface Shown {
  path: string;
  exists: boolean;
  settings: { key: string; value: string | null; from: string }[];
  faults: string[];
}

function configure(world: TestHome, value: unknown): string {
  const folder = world.folder(".config", "agentctl");
  const path = join(folder, "config.json");
  writeFileSync(path, typeof value === "string" ? value : JSON.stringify(value));
  return path;
}

const run = (world: TestHome, ...flags: string[]) =>
  world.run(["run", "demo", "-p", "say:done", "--json", "--share", ...flags]);

const settingIn = ({ settings }: Shown, key: string) => settings.find((each) => each.key === key);

describe("agentctl config", () => {
  test("without a file shows the defaults and the path", async () => {
    await using world = new TestHome();
    const shown = await world.json<Shown>("config");
    const path = join(world.root, ".config", "agentctl", "config.json");
    expect([shown.path, shown.exists, shown.faults]).toEqual([path, false, []]);
    expect(settingIn(shown, "defaults.permission")).toMatchObject({ value: null, from: "default" });
    expect(settingIn(shown, "AGENTCTL_HOME")).toMatchObject({ from: "environment" });
    expect((await world.run(["config", "path"])).out).toBe(`${path}\n`);
    expect((await world.run(["config"])).out).toMatch(/\(does not exist\)\nSETTING .*\ndefaults\.permission +default /);
  });

  test("names the origin of each value", async () => {
    await using world = new TestHome();
    const defaults = { permission: "edit", claude: { model: "opus" }, codex: { permission: "read" } };
    configure(world, { defaults, insideAgents: "guarded", worktrees: "~/trees" });
    const shown = await world.json<Shown>("config", "show");
    const values = Object.fromEntries(shown.settings.map(({ key, value, from }) => [key, `${value} (${from})`]));
    expect(values).toMatchObject({
      "defaults.permission": "edit (config)",
      "defaults.claude-code.model": "opus (config)",
      "defaults.codex.permission": "read (config)",
      insideAgents: "guarded (config)",
      worktrees: `${world.root}/trees (config)`,
    });
  });

  test.each(["the file", "its folder"])("is not known if %s is a link to nothing: launch refuses", async (which) => {
    await using world = new TestHome();
    const path = configure(world, { defaults: { permission: "read" } });
    const link = which === "the file" ? path : dirname(path);
    rmSync(link, { recursive: true });
    symlinkSync(join(world.root, "unmounted"), link);
    expect((await world.run(["config"])).code).toBe(8);
    expect(await world.run(["launch", "demo", "-p", "say:done"])).toMatchObject({ code: 8, out: "" });
  });

  test.each([
    [{ defaults: { permission: "all" } }, 'defaults.permission must be "read", "edit" or "bypass"'],
    [{ defaults: { cluade: {} } }, "defaults.cluade: no agent is called cluade"],
    [{ defaults: { demo: "x" } }, "defaults.demo must be an object"],
    [{ defaults: { demo: { model: 5 } } }, "defaults.demo.model must be a string"],
    [{ defaults: { demo: { modle: "x" } } }, "defaults.demo.modle is not a setting"],
    [{ defaults: [] }, "defaults must be an object"],
    ["{", "JSON"],
  ])("reports the error in %j, and launch refuses to start", async (value, fault) => {
    await using world = new TestHome();
    const path = configure(world, value);
    const { code, err } = await world.run(["config"]);
    expect([code, err]).toEqual([8, expect.stringContaining(`${path}: `)]);
    expect(err).toContain(fault);
    const launch = await world.run(["launch", "demo", "-p", "say:done"]);
    expect([launch.code, launch.out]).toEqual([8, ""]);
    expect(launch.err).toContain(fault);
    const { error } = JSON.parse((await run(world)).out);
    expect(error).toMatchObject({ code: "config-invalid", exit: 8, retryable: false, facts: { path } });
    expect((await world.list()).sessions).toEqual([]);
  });

  test("reports errors in settings that a launch does not need", async () => {
    await using world = new TestHome();
    configure(world, { insideAgents: "no", homes: [] });
    const { code, out } = await world.run(["config", "--json"]);
    const { faults }: Shown = JSON.parse(out);
    expect([code, faults.map((fault) => fault.split(" ")[0])]).toEqual([8, ["homes", "insideAgents"]]);
    expect((await run(world)).code).toBe(0);
  });

  test("reports an unknown key, and launch ignores it", async () => {
    await using world = new TestHome();
    configure(world, { defautls: {} });
    expect((await world.run(["config"])).err).toContain("defautls is not a setting");
    expect((await run(world)).code).toBe(0);
  });
});

describe("defaults of launch and run", () => {
  test("are used, an option overrides them, and those of the agent come before the general ones", async () => {
    await using world = new ServerTestHome();
    const started = async (...flags: string[]) => {
      const { permission, model } = JSON.parse((await run(world, ...flags)).out);
      return [permission, model];
    };
    configure(world, { defaults: { permission: "edit", demo: { model: "demo-9" } } });
    expect(await started()).toEqual(["edit", "demo-9"]);
    expect(await started("--permission", "read", "--model", "demo-2")).toEqual(["read", "demo-2"]);
    configure(world, { defaults: { permission: "edit", demo: { permission: "read" } } });
    expect((await started())[0]).toBe("read");
  });

  test("are reported on stderr only for bypass", async () => {
    await using world = new TestHome();
    configure(world, { defaults: { permission: "edit" } });
    expect((await run(world)).err).not.toContain("--permission");
    configure(world, { defaults: { permission: "bypass" } });
    expect((await run(world)).err).toContain("--permission bypass, from config.json: ");
  });

  test("do not lift the limit of a call from inside an agent", async () => {
    await using world = new TestHome();
    configure(world, { defaults: { permission: "bypass" } });
    mkdirSync(join(world.root, "elsewhere"));
    const said = join(world.root, "said");
    const inner = `${binary} launch demo -p say:x --cwd ${world.root}/elsewhere >${said} 2>&1; echo $? >>${said}`;
    const agent = world.start(["prompt:x", `tool:${inner}`, "end", "idle"]);
    await world.until(agent.id, "idle");
    expect(await Bun.file(said).text()).toEndWith("\n5\n");
    expect((await world.list()).sessions.map(({ id }: Listed) => id)).toEqual([agent.id]);
  });
});
