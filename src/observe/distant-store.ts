// A store on a network or FUSE file system is read by a process of its own: if its server hangs, that process hangs, we do not.
import type { Adapter } from "../adapters/adapter.ts";
import type { Store } from "../core/evidence.ts";
import { type Problem, unread } from "../core/problem.ts";
import type { Deadline } from "../lib/deadline.ts";
import { selfCommand } from "../sys/self.ts";

/** The hidden command that the reading process runs. */
const readStoreCommand = "read-store";

/** What was parsed of tens of thousands of records. */
const mostBytes = 256 * 1024 * 1024;

/** null: there is no such store. Unread: the answer did not come in time, or was none. */
export async function readDistantStore(
  adapter: Adapter,
  home: string,
  deadline: Deadline,
  command: readonly string[] = [...selfCommand(), readStoreCommand, adapter.agent, home],
): Promise<Store | null> {
  // Stores are almost always on a local disk: what starts children is loaded only where one is not.
  const { runCommand } = await import("../sys/spawn.ts");
  const { out, gaveUp } = await runCommand(command, { cwd: "/", mostMs: deadline.remainingMs(), mostBytes });
  if (gaveUp === "late") return unreadStore(adapter, home, "store-slow", "its file system does not answer in time");
  if (gaveUp !== null) return unreadStore(adapter, home, "store-unreadable", "it holds more than agentctl reads");
  try {
    // Our own child's words, of our own type.
    return JSON.parse(out) as Store | null;
  } catch (error) {
    return unreadStore(adapter, home, "store-unreadable", `the reading process failed: ${String(error)}`);
  }
}

function unreadStore(adapter: Adapter, home: string, code: Problem["code"], message: string): Store {
  const listing = unread({ code, agent: adapter.agent, source: home, message });
  return {
    agent: adapter.agent,
    home,
    names: [home],
    onRootDevice: false,
    listing,
    rows: [],
    claims: [],
    successions: [],
  };
}
