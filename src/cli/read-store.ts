// Hidden: reads one store and prints it as JSON, for a parent that does not want to hang with a dead file server.
import { adapterNamed } from "../adapters/registry.ts";
import { deadlineIn } from "../lib/deadline.ts";
import { readStore } from "../observe/stores.ts";
import { usage } from "./arguments.ts";
import type { Context } from "./command.ts";

const patienceMs = 60_000;

export async function runReadStore([agent = "", home = ""]: readonly string[], context: Context): Promise<number> {
  const adapter = adapterNamed(agent);
  if (adapter === null) throw usage(`no agent ${agent}`, "read-store");
  // Bytes, because a path in it has to reach our parent process as it is.
  context.out(Buffer.from(JSON.stringify(readStore(adapter, home, deadlineIn(patienceMs)))));
  return 0;
}
