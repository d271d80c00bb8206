// The files of a session: its record, and the announcement of its process.
import { appendFileSync, existsSync, mkdirSync, readFileSync, readlinkSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export const hasRecord = (home: string, id: string): boolean => existsSync(recordPath(home, id));

const recordPath = (home: string, id: string): string => join(home, "sessions", `${id}.jsonl`);

export class SessionRecord {
  turnOpen = false;
  /** The outcome of the last turn that ended. */
  outcome: string | null = null;
  private readonly path: string;

  constructor(
    home: string,
    readonly id: string,
  ) {
    mkdirSync(join(home, "sessions"), { recursive: true, mode: 0o700 });
    this.path = recordPath(home, id);
  }

  begin({ parent, model, permission }: Record<"parent" | "model" | "permission", string | null>): void {
    const origin = { version: 1, id: this.id, cwd: process.cwd(), model: model ?? "demo-1" };
    this.add("session", { ...origin, parent, permission });
  }

  reply(text: string): void {
    this.add("reply", { text, tokens: { input: 10, output: 5, cacheRead: 0, cacheWrite: 0 } });
  }

  end(outcome: string): void {
    this.outcome = outcome;
    this.add("end", { outcome });
  }

  add(type: string, fields: Record<string, unknown>): void {
    if (type === "prompt") this.turnOpen = true;
    if (type === "end") this.turnOpen = false;
    const line = JSON.stringify({ type, at: new Date().toISOString(), ...fields });
    appendFileSync(this.path, `${line}\n`, { mode: 0o600 });
  }
}

export function announce(home: string, session: string): string {
  const folder = join(home, "live");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `${process.pid}.json`);
  const at = new Date().toISOString();
  const announcement = { pid: process.pid, ...ownIdentity(), session, cwd: process.cwd(), at };
  writeFileSync(`${path}.tmp`, JSON.stringify(announcement), { mode: 0o600 });
  renameSync(`${path}.tmp`, path);
  return path;
}

function ownIdentity(): { start: string | null; boot: string | null; namespace: string | null } {
  if (process.platform !== "linux") return { start: null, boot: null, namespace: null };
  const stat = readFileSync("/proc/self/stat", "latin1");
  const start = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? null;
  const boot = readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
  return { start, boot, namespace: readlinkSync("/proc/self/ns/pid") };
}
