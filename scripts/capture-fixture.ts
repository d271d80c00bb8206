// Captures test/fixtures/<agent>/<case>/ from the real agent: its redacted files at the interesting moment, and case.json, which says
// what the schedule did. Run it with test/agents/run:
//   test/agents/run scripts/capture-fixture.ts <agent> [case…]
// Claude Code, Codex and OpenClaw have their own schedules; every other agent has the standard ones and those of its driver.
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Adapter } from "../src/agents/adapter.ts";
import { adapterNamed } from "../src/agents/registry.ts";
import type { Capture, CaptureCase } from "../test/agents/case.ts";
import { claudeCases } from "../test/agents/claude-cases.ts";
import { codexCases } from "../test/agents/codex-cases.ts";
import type { RealAgent } from "../test/agents/driver.ts";
import { claude } from "../test/agents/drivers/claude.ts";
import { codex } from "../test/agents/drivers/codex.ts";
import { drivers } from "../test/agents/drivers/index.ts";
import { openclaw } from "../test/agents/drivers/openclaw.ts";
import { openclawCases } from "../test/agents/openclaw-cases.ts";
import { standardCases } from "../test/agents/standard-cases.ts";
import {
  claudeVersions,
  createTestHome,
  filesBelow,
  type TestHome,
  type TestHomeOptions,
} from "../test/agents/test-home.ts";
import type { CapturedServer } from "../test/conformance/cases.ts";
import { keepDatabase } from "./redact-database.ts";
import { type Redaction, redactLines, redactText } from "./redact-fixture.ts";
import { seenProcesses } from "./seen-processes.ts";
import { seenServers } from "./seen-servers.ts";

const fixtures = join(import.meta.dir, "..", "test", "fixtures");
const rawFolder = process.env["CAPTURE_RAW"];

/** One version of an agent, and the schedules to capture. */
interface Subject {
  driver: Pick<RealAgent, "agent" | "version" | "home" | "files">;
  prefix: string;
  world: TestHomeOptions;
  cases: CaptureCase[];
}

function subjectsOf(agent: string | undefined): Subject[] {
  if (agent === codex.agent) return [{ driver: codex, prefix: "", world: {}, cases: codexCases() }];
  if (agent === claude.agent)
    return claudeVersions.map((version) => ({
      driver: { ...claude, version, files: [...claude.files, "jobs/*/state.json", "daemon/roster.json"] },
      prefix: `${version.split(".").at(-1)}-`,
      world: { claude: version },
      cases: claudeCases(version),
    }));
  if (agent === openclaw.agent)
    return [{ driver: openclaw, prefix: "", world: { agents: [openclaw] }, cases: openclawCases() }];
  return drivers
    .filter((driver) => driver.agent === agent)
    .map((driver) => ({
      ...{ driver, prefix: driver.prefix ?? "", world: { agents: [driver] }, cases: standardCases(driver) },
    }));
}

async function main([agent, ...wanted]: string[]): Promise<void> {
  const subjects = subjectsOf(agent);
  if (subjects.length === 0) throw new Error("usage: capture-fixture.ts <agent> [case…]");
  const failed: string[] = [];
  for (const subject of subjects)
    for (const scheduled of subject.cases) {
      const name = `${subject.prefix}${scheduled.name}`;
      if (wanted.length > 0 && !wanted.includes(name) && !wanted.includes(scheduled.name)) continue;
      try {
        await captureCase(subject, name, scheduled);
        console.log(`captured ${agent}/${name}`);
      } catch (error) {
        failed.push(name);
        console.error(`FAILED ${agent}/${name}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  if (failed.length > 0) throw new Error(`not captured: ${failed.join(", ")}`);
}

async function captureCase({ driver, world: common }: Subject, name: string, scheduled: CaptureCase): Promise<void> {
  const adapter = adapterNamed(driver.agent);
  if (adapter === null) throw new Error(`there is no adapter ${driver.agent}`);
  await using world = await createTestHome({ ...common, ...scheduled.world });
  const capture = await scheduled.run(world);
  const home = driver.home(world);
  const servers = capture.moment === "dead" || capture.server !== undefined ? [] : await seenServers(adapter, home);
  const target = join(fixtures, driver.agent, name);
  rmSync(target, { recursive: true, force: true });
  const redaction: Redaction = {
    world: world.dir,
    agents: join(import.meta.dir, "..", "test", "agents", "node_modules"),
  };
  if (rawFolder !== undefined) cpSync(world.home, join(rawFolder, name), { recursive: true });
  const keep = async (from: string, path: string): Promise<void> => {
    const to = join(target, "home", redactText(path, redaction));
    mkdirSync(dirname(to), { recursive: true });
    if (isDatabase(path)) keepDatabase(from, to, redaction);
    else writeFileSync(to, redactLines(await Bun.file(from).text(), redaction));
  };
  for (const path of driver.files.flatMap((pattern) => filesBelow(home, pattern))) await keep(join(home, path), path);
  // The files that the trust dialog depends on. Claude Code's file is beside its home, but is also found inside it.
  if (scheduled.world?.trust === "ask" && driver.agent === "codex")
    await keep(join(home, "config.toml"), "config.toml");
  if (scheduled.world?.trust === "ask" && driver.agent !== "codex") await keep(`${home}.json`, ".claude.json");
  mkdirSync(target, { recursive: true });
  writeFileSync(
    join(target, "case.json"),
    caseFile(driver, adapter, scheduled, { ...capture, servers }, world, redaction),
  );
}

const isDatabase = (path: string): boolean => /\.(?:db|sqlite3?)$/.test(path);

function caseFile(
  driver: Subject["driver"],
  adapter: Adapter,
  scheduled: CaptureCase,
  { command, moment, ending, server, servers, sessions }: Capture & { servers: CapturedServer[] },
  world: TestHome,
  redaction: Redaction,
): string {
  const content = {
    agent: driver.agent,
    version: driver.version,
    world: { ...scheduled.world, agents: undefined },
    command,
    date: new Date().toISOString().slice(0, 10),
    moment,
    ending: ending ?? null,
    cwd: world.cwd,
    sessions,
    processes: seenProcesses(world.processes(), driver.home(world), adapter),
    ...(server === undefined ? {} : { server }),
    ...(servers.length === 0 ? {} : { servers }),
  };
  return `${JSON.stringify(JSON.parse(redactLines(JSON.stringify(content), redaction)), null, 2)}\n`;
}

await main(process.argv.slice(2));
