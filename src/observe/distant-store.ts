// Reads a store on a network or FUSE file system in a separate process: if the file system hangs, only that process hangs.
import type { Adapter } from "../agents/adapter.ts";
import type { Store } from "../core/evidence.ts";
import { type Problem, type ProblemDetail, unread } from "../core/problem.ts";
import type { Deadline } from "../lib/deadline.ts";
import { selfCommand } from "../sys/self.ts";

/** Enough for tens of thousands of records. */
const maxBytes = 256 * 1024 * 1024;

/** null: the store does not exist. */
export async function readDistantStore(
  adapter: Adapter,
  home: string,
  deadline: Deadline,
  command: readonly string[] = [...selfCommand(), "read-store", adapter.agent, home],
): Promise<Store | null> {
  // Most stores are on a local disk: the module that starts children is loaded only when it is needed.
  const { runCommand } = await import("../sys/spawn.ts");
  const { out, gaveUp } = await runCommand(command, { cwd: "/", maxMs: deadline.remainingMs(), maxBytes });
  if (gaveUp === "late") return unreadStore(adapter, home, "store-slow", { code: "store-slow" });
  if (gaveUp !== null) return unreadStore(adapter, home, "store-unreadable", { code: "store-too-large" });
  try {
    // Our own build wrote it, so it has our type.
    return JSON.parse(out) as Store | null;
  } catch (error) {
    return unreadStore(adapter, home, "store-unreadable", { code: "reader-failed", text: String(error) });
  }
}

function unreadStore(adapter: Adapter, home: string, code: Problem["code"], detail: ProblemDetail): Store {
  const listing = unread({ code, agent: adapter.agent, source: home, detail });
  return {
    ...{ agent: adapter.agent, home, names: [home], onRootDevice: false, listing },
    ...{ rows: [], announcements: [], successions: [] },
  };
}
