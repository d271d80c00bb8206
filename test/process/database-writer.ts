// Another process that has a database with a log open, until its input ends.
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";

export async function openElsewhere(path: string): Promise<ChildProcessByStdio<Writable, Readable, null>> {
  const script = `
    import { Database } from "bun:sqlite";
    const database = new Database(${JSON.stringify(path)});
    database.run("PRAGMA journal_mode = WAL");
    database.run("CREATE TABLE IF NOT EXISTS t (x)");
    console.log("ready");
    process.stdin.on("end", () => process.exit()).resume();`;
  const child = spawn(process.execPath, ["-e", script], { stdio: ["pipe", "pipe", "inherit"] });
  await once(child.stdout, "data");
  return child;
}
