// Runs one command and measures its time and peak memory, or traces what it opens and reads.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "./commands.ts";
import { announcements } from "./commands.ts";
import type { PreparedCase } from "./prepared-case.ts";

export interface Measured {
  ms: number;
  peakMb: number;
}

export async function measure(command: Command, prepared: PreparedCase): Promise<Measured> {
  await command.before?.(prepared);
  const until =
    command.until === "line" ? ["-line"] : command.until === "file" ? ["-file", announcements(prepared)] : [];
  const argv = command.argv(prepared);
  const { stdout, stderr } = run([prepared.tools.measure, ...until, ...argv], command, prepared);
  const [nanoseconds, kilobytes, status] = stdout.toString().split(" ").map(Number);
  if (status !== 0 || nanoseconds === undefined || kilobytes === undefined)
    throw new Error(`bench: ${argv.join(" ")} exited with ${status}: ${stderr}`);
  return { ms: nanoseconds / 1e6, peakMb: kilobytes / 1024 };
}

function run(argv: string[], { stdin }: Command, prepared: PreparedCase) {
  const { cwd, env } = prepared;
  return Bun.spawnSync(argv, {
    cwd,
    env,
    stdin: stdin === undefined ? "ignore" : Bun.file(stdin(prepared)),
    stdout: "pipe",
  });
}

export interface Traced {
  opened: number;
  bytes: number;
}

const calls = "open,openat,openat2,read,readv,pread64,preadv,preadv2,getdents64";

/** null: strace is not installed. Listing a folder counts as opening it and as reading its entries. */
export async function trace(command: Command, prepared: PreparedCase): Promise<Traced | null> {
  if (Bun.which("strace") === null) return null;
  await command.before?.(prepared);
  const output = join(prepared.folder, "trace");
  run(
    ["strace", "-f", "-qq", "-e", `trace=${calls}`, "-e", "signal=none", "-o", output, ...command.argv(prepared)],
    command,
    prepared,
  );
  return countCalls(readFileSync(output, "latin1"));
}

/** strace splits a call into two lines if another thread interrupts it: the second line has the result. */
function countCalls(text: string): Traced {
  const traced = { opened: 0, bytes: 0 };
  for (const [, name = "", resumed = "", result] of text.matchAll(
    /^\d+ +(?:(\w+)\(|<\.\.\. (\w+) resumed>).* = (\d+)/gm,
  )) {
    if ((name || resumed).startsWith("open")) traced.opened += 1;
    else traced.bytes += Number(result);
  }
  return traced;
}
