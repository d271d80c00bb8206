// Reads one store and prints it as JSON. The parent process must not hang if a file server does not answer.
import { adapterNamed } from "../../agents/registry.ts";
import { deadlineIn } from "../../lib/deadline.ts";
import { readStore } from "../../observe/stores.ts";
import { usage } from "../arguments.ts";
import type { Context } from "../command.ts";

const patienceMs = 60_000;

export async function runReadStore([agent = "", home = ""]: readonly string[], context: Context): Promise<number> {
  const adapter = adapterNamed(agent);
  if (adapter === null) throw usage(`no agent ${agent}`, "read-store");
  // Bytes, because the parent process needs every path unchanged.
  context.out(Buffer.from(JSON.stringify(readStore(adapter, home, deadlineIn(patienceMs)))));
  return 0;
}
