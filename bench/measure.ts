// One run of one command: its time and its peak memory; or, in another run, what it opened and read.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "./commands.ts";
import { announcements } from "./commands.ts";
import type { Stage } from "./stage.ts";

export interface Measured {
  ms: number;
  peakMb: number;
}

export async function measure(command: Command, stage: Stage): Promise<Measured> {
  await command.before?.(stage);
  const until = command.until === "line" ? ["-line"] : command.until === "file" ? ["-file", announcements(stage)] : [];
  const argv = command.argv(stage);
  const { stdout, stderr } = run([stage.tools.measure, ...until, ...argv], command, stage);
  const [nanoseconds, kilobytes, status] = stdout.toString().split(" ").map(Number);
  if (status !== 0 || nanoseconds === undefined || kilobytes === undefined)
    throw new Error(`bench: ${argv.join(" ")} ended with ${status}: ${stderr}`);
  return { ms: nanoseconds / 1e6, peakMb: kilobytes / 1024 };
}

function run(argv: string[], { stdin }: Command, stage: Stage) {
  const { cwd, env } = stage;
  return Bun.spawnSync(argv, {
    cwd,
    env,
    stdin: stdin === undefined ? "ignore" : Bun.file(stdin(stage)),
    stdout: "pipe",
  });
}

export interface Traced {
  opened: number;
  bytes: number;
}

const calls = "open,openat,openat2,read,readv,pread64,preadv,preadv2,getdents64";

/** null: there is no strace. Folders that are listed count as opened, their entries as read. */
export async function trace(command: Command, stage: Stage): Promise<Traced | null> {
  if (Bun.which("strace") === null) return null;
  await command.before?.(stage);
  const output = join(stage.folder, "trace");
  run(
    ["strace", "-f", "-qq", "-e", `trace=${calls}`, "-e", "signal=none", "-o", output, ...command.argv(stage)],
    command,
    stage,
  );
  return countCalls(readFileSync(output, "latin1"));
}

/** A call that another thread came between stands in two lines: the second one has the answer. */
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
