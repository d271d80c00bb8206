// Describes the host for the results: only what matters for the numbers, nothing that identifies it.
import { readFileSync } from "node:fs";
import { cpus, loadavg, release, totalmem } from "node:os";

export function machineFacts(folder: string): string[] {
  const all = cpus();
  return [
    `Linux ${release().split("-")[0]}, ${all.length} × ${all[0]?.model.trim() ?? "unknown processor"}, ${Math.round(totalmem() / 2 ** 30)} GB, ${fileSystem(folder)}`,
    `Bun ${Bun.version}; everything in the page cache`,
  ];
}

/** The load average of the last minute. */
export const load = (): string => (loadavg()[0] ?? 0).toFixed(2);

/** The mount with the longest path above the folder. */
function fileSystem(folder: string): string {
  const mounts = readFileSync("/proc/self/mountinfo", "utf8").trim().split("\n");
  const above = mounts.flatMap((line) => {
    const fields = line.split(" ");
    const point = fields[4] ?? "";
    const isAbove = point === "/" || folder === point || folder.startsWith(`${point}/`);
    return isAbove ? [{ length: point.length, type: fields[fields.indexOf("-") + 1] ?? "" }] : [];
  });
  return above.sort((a, b) => b.length - a.length)[0]?.type ?? "unknown file system";
}

export function commitOf(repository: string): string {
  const { stdout, exitCode } = Bun.spawnSync(["git", "describe", "--always", "--dirty"], { cwd: repository });
  return exitCode === 0 ? stdout.toString().trim() : "unknown";
}
