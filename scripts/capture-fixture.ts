// Captures test/fixtures/<agent>/<case>/ from the real tool: the agent's files at the interesting moment, redacted, and
// case.json with what the schedule did. Run through test/agents/run:
//   test/agents/run scripts/capture-fixture.ts claude-code|codex [case…]
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Capture, CaptureCase } from "../test/agents/case.ts";
import { claudeCases } from "../test/agents/claude-cases.ts";
import { codexCases } from "../test/agents/codex-cases.ts";
import {
  type ClaudeVersion,
  claudeVersions,
  codexVersion,
  createWorld,
  filesBelow,
  lockedThreads,
  type World,
} from "../test/agents/rig.ts";
import { type Redaction, redactLines, redactText } from "./redact-fixture.ts";

const fixtures = join(import.meta.dir, "..", "test", "fixtures");
const rawFolder = process.env["CAPTURE_RAW"];

async function main([agent, ...wanted]: string[]): Promise<void> {
  if (agent !== "claude-code" && agent !== "codex")
    throw new Error("usage: capture-fixture.ts claude-code|codex [case…]");
  const failed: string[] = [];
  const capture = async (version: string, prefix: string, scheduled: CaptureCase): Promise<void> => {
    const name = `${prefix}${scheduled.name}`;
    if (wanted.length > 0 && !wanted.includes(name) && !wanted.includes(scheduled.name)) return;
    try {
      await captureCase(agent, version, name, scheduled);
      console.log(`captured ${agent}/${name}`);
    } catch (error) {
      failed.push(name);
      console.error(`FAILED ${agent}/${name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  };
  if (agent === "codex") for (const scheduled of codexCases()) await capture(codexVersion, "", scheduled);
  else
    for (const version of claudeVersions)
      for (const scheduled of claudeCases(version)) await capture(version, `${version.split(".").at(-1)}-`, scheduled);
  if (failed.length > 0) throw new Error(`not captured: ${failed.join(", ")}`);
}

async function captureCase(agent: string, version: string, name: string, scheduled: CaptureCase): Promise<void> {
  await using world = await createWorld({ claude: version as ClaudeVersion, ...scheduled.world });
  const capture = await scheduled.run(world);
  const home = agent === "codex" ? world.codexHome : world.claudeHome;
  const target = join(fixtures, agent, name);
  rmSync(target, { recursive: true, force: true });
  const redaction: Redaction = {
    world: world.dir,
    agents: join(import.meta.dir, "..", "test", "agents", "node_modules"),
  };
  if (rawFolder !== undefined) cpSync(world.home, join(rawFolder, name), { recursive: true });
  const keep = async (from: string, path: string): Promise<void> => {
    const to = join(target, "home", redactText(path, redaction));
    mkdirSync(dirname(to), { recursive: true });
    writeFileSync(to, redactLines(await Bun.file(from).text(), redaction));
  };
  for (const path of recordPatterns(agent).flatMap((pattern) => filesBelow(home, pattern)))
    await keep(join(home, path), path);
  // What the trust dialog depends on. Claude's file lies beside its home; inside of it, it is read as well.
  if (scheduled.world?.trust === "ask" && agent === "codex") await keep(join(home, "config.toml"), "config.toml");
  if (scheduled.world?.trust === "ask" && agent !== "codex") await keep(`${home}.json`, ".claude.json");
  mkdirSync(target, { recursive: true });
  writeFileSync(join(target, "case.json"), caseFile(agent, version, scheduled, capture, world, redaction));
}

const recordPatterns = (agent: string): string[] =>
  agent === "codex"
    ? ["sessions/**/*.jsonl", "archived_sessions/*.jsonl", "thread-writer-locks/*-*.lock"]
    : [
        "history.jsonl",
        "sessions/*.json",
        "projects/**/*.jsonl",
        "projects/**/*.json",
        "jobs/*/state.json",
        "daemon/roster.json",
      ];

function caseFile(
  agent: string,
  version: string,
  scheduled: CaptureCase,
  { command, moment, ending, host, sessions }: Capture,
  world: World,
  redaction: Redaction,
): string {
  const processes = world
    .processes()
    .filter(({ name }) => /claude|codex|node|bwrap|tail/.test(name))
    .map((seen) => ({
      ...seen,
      lockedFiles: lockedThreads(seen.pid).map((thread) => `thread-writer-locks/${thread}.lock`),
    }));
  const content = {
    agent,
    version,
    world: scheduled.world ?? {},
    command,
    date: new Date().toISOString().slice(0, 10),
    moment,
    ending: ending ?? null,
    cwd: world.cwd,
    sessions,
    processes,
    ...(host === undefined ? {} : { host }),
  };
  return `${JSON.stringify(JSON.parse(redactLines(JSON.stringify(content), redaction)), null, 2)}\n`;
}

await main(process.argv.slice(2));
