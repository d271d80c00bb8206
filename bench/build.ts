// Builds what is compared with: the C references, and Bun programs that do nothing, only read, or do the same as in C, made in the way agentctl is.
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { scripts } from "../package.json";
import type { Tools } from "./stage.ts";

const sources = join(import.meta.dir, "reference");

/** `withSqlite`: false where its header is missing; the reference leaves out OpenCode then. */
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
  const [, ...words] = scripts.build.split(" ");
  const swap: Record<string, string> = { "src/main.ts": source, "dist/agentctl": output };
  run([process.execPath, ...words.map((word) => swap[word] ?? word)]);
  return output;
}

function run(command: string[]): void {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command);
  if (exitCode !== 0) throw new Error(`bench: ${command.join(" ")} ended with ${exitCode}\n${stdout}${stderr}`);
}
