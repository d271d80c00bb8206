// Runs a worker of a harness in a new pid namespace, and says why it died if it did.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { intoNamespace } from "./namespace.ts";
import { absentAsNull } from "./proc.ts";

/** A worker that did not come to its end: it was killed, or the harness itself failed. */
export interface WorkerDeath {
  /** "exit code 1" or "killed by SIGKILL". */
  cause: string;
  /** The end of what it wrote to stderr. */
  lastLines: string[];
  /** What it was doing, as it noted it (noteProgress); null: it had not begun. */
  progress: string | null;
}

const mostLines = 20;

/** The worker's stdout, or how it died. Its stderr is shown as it comes. `base` is the folder of this worker alone. */
export async function runWorker(command: string[], base: string): Promise<{ output: string } | { death: WorkerDeath }> {
  const child = Bun.spawn([...intoNamespace, ...command], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  // The death of unshare kills the first process of the namespace, and the kernel then kills all others in it.
  const end = () => child.kill("SIGKILL");
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(name, end);
  const [output, said] = await Promise.all([child.stdout.text(), showAndKeep(child.stderr), child.exited]);
  if (child.exitCode === 0) return { output };
  const progress = absentAsNull(() => readFileSync(join(base, progressFile), "utf8"));
  return { death: { cause: causeOf(child), lastLines: said.trimEnd().split("\n").slice(-mostLines), progress } };
}

const progressFile = "progress";

/** Called by the worker before each step: whatever kills the worker, the file remains. */
export function noteProgress(base: string, progress: string): void {
  mkdirSync(base, { recursive: true });
  writeFileSync(join(base, progressFile), progress);
}

export const printDeath = ({ cause, lastLines, progress }: WorkerDeath, replay: (progress: string) => string): string =>
  [
    `DEATH of a worker: ${cause}`,
    ...lastLines.map((line) => `  stderr: ${line}`),
    ...(progress === null ? ["  it died before its first schedule"] : [replay(progress)]),
    "",
  ].join("\n");

async function showAndKeep(stream: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream) {
    process.stderr.write(chunk);
    text += decoder.decode(chunk, { stream: true });
  }
  return text;
}

/** The shell in the namespace says 128 + N for a worker that was killed by signal N. */
function causeOf({ exitCode, signalCode }: Pick<Subprocess, "exitCode" | "signalCode">): string {
  if (exitCode === null) return `killed by ${signalCode}, with its namespace`;
  const signal = Object.entries(constants.signals).find(([, number]) => number === exitCode - 128)?.[0];
  return signal === undefined ? `exit code ${exitCode}` : `killed by ${signal}`;
}
