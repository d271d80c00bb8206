// Builds dist/agentctl: the program, compiled together with a runtime that does not obey Bun's environment variables.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { deafenRuntime } from "./deafen-runtime.ts";

const root = join(import.meta.dir, "..");
const dist = join(root, "dist");
const runtime = join(dist, `runtime-${process.pid}`);
const optionsOfBuild = [
  ...["--compile", "--minify", "--bytecode", "--compile-jit-policy=100", "--splitting", "--format=esm"],
  // A compiled program would read .env and bunfig.toml in the directory that it is started in.
  ...["--no-compile-autoload-dotenv", "--no-compile-autoload-bunfig"],
];

mkdirSync(dist, { recursive: true });
try {
  process.exitCode = build(process.platform === "linux" ? [`--compile-executable-path=${writeDeafRuntime()}`] : []);
} finally {
  rmSync(runtime, { force: true });
}

function writeDeafRuntime(): string {
  const executable = readFileSync(process.execPath);
  const { remaining } = deafenRuntime(executable, process.arch);
  if (remaining.length > 0)
    console.error(`build: on ${process.arch} agentctl still obeys ${remaining.join(", ")} of its environment`);
  writeFileSync(runtime, executable, { mode: 0o755 });
  return runtime;
}

function build(more: readonly string[]): number {
  if (process.platform !== "linux")
    console.error(
      `build: on ${process.platform} agentctl still obeys BUN_OPTIONS, BUN_BE_BUN and other variables of Bun`,
    );
  const words = ["build", "src/main.ts", ...optionsOfBuild, ...more, "--outfile", "dist/agentctl"];
  return Bun.spawnSync([process.execPath, ...words], { cwd: root, stdio: ["ignore", "inherit", "inherit"] }).exitCode;
}
