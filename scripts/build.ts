// Builds dist/agentctl with a copy of the Bun runtime that ignores Bun's environment variables (decision 23).
//   bun scripts/build.ts [SOURCE OUTPUT]     the bench builds its reference programs with the same options
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { deafenRuntime } from "./deafen-runtime.ts";

const [source = "src/main.ts", output = "dist/agentctl"] = process.argv.slice(2);
const root = join(import.meta.dir, "..");
const dist = join(root, "dist");
const runtime = join(dist, `runtime-${process.pid}`);
const buildOptions = [
  ...["--compile", "--minify", "--bytecode", "--compile-jit-policy=100", "--splitting", "--format=esm"],
  // Code of other systems is left out: together with "sideEffects" in package.json a `list` loads 10 KB less.
  `--define=process.platform=${JSON.stringify(process.platform)}`,
  // Otherwise the program would read .env and bunfig.toml in the directory where it is started.
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
  const words = ["build", source, ...buildOptions, ...more, "--outfile", output];
  return Bun.spawnSync([process.execPath, ...words], { cwd: root, stdio: ["ignore", "inherit", "inherit"] }).exitCode;
}
