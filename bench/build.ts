// Builds the reference programs: in C, and in Bun with the build options of agentctl.
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Tools } from "./prepared-case.ts";

const sources = join(import.meta.dir, "reference");

/** `withSqlite`: false if sqlite3.h is missing; then the C reference leaves out OpenCode. */
export function buildTools(folder: string): { tools: Tools; withSqlite: boolean } {
  mkdirSync(folder, { recursive: true });
  const withSqlite = existsSync("/usr/include/sqlite3.h");
  const compile = (name: string, ...more: string[]): string => {
    const output = join(folder, name);
    run(["gcc", "-O2", "-o", output, join(sources, `${name}.c`), ...more]);
    return output;
  };
  const tools = {
    measure: compile("measure"),
    list: compile("list", ...(withSqlite ? ["-DWITH_SQLITE", "-lsqlite3"] : [])),
    tokens: compile("tokens"),
    sleeper: compile("sleeper"),
    empty: buildLikeUs(emptySource(folder), join(folder, "empty")),
    bare: buildLikeUs(join(sources, "list.ts"), join(folder, "bare-list")),
    read: buildLikeUs(join(sources, "read.ts"), join(folder, "read")),
  };
  return { tools, withSqlite };
}

function emptySource(folder: string): string {
  const source = join(folder, "empty.ts");
  writeFileSync(source, "export {};\n");
  return source;
}

function buildLikeUs(source: string, output: string): string {
  run([process.execPath, join(import.meta.dir, "../scripts/build.ts"), source, output]);
  return output;
}

function run(command: string[]): void {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command);
  if (exitCode !== 0) throw new Error(`bench: ${command.join(" ")} exited with ${exitCode}\n${stdout}${stderr}`);
}
