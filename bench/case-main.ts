// Runs inside a pid namespace: prepares one case, then obeys orders from stdin, one line of JSON each.
import type { Case } from "./cases.ts";
import { wrongAnswers, wrongTokens } from "./check.ts";
import { commands } from "./commands.ts";
import { measure, trace } from "./measure.ts";
import { prepareCase, type Tools } from "./prepared-case.ts";

export interface Opening {
  case: Case;
  bin: string;
  tools: Tools;
  folder: string;
}

export type Order = { do: "measure" | "trace"; command: string } | { do: "check" } | { do: "check again" };

const opening: Opening = JSON.parse(process.argv[2] ?? "");
const prepared = await prepareCase(opening.bin, opening.tools, opening.folder, opening.case);
say({ live: prepared.live.length });

for await (const line of console) {
  // The end of stdin.
  if (line === "") break;
  say(await obey(JSON.parse(line)));
}
// When this process ends, the kernel kills everything in the namespace.
process.exit(0);

async function obey(order: Order): Promise<unknown> {
  if (order.do === "check") return wrongAnswers(prepared, opening.case.commands);
  if (order.do === "check again") return wrongTokens(prepared);
  const command = commands[order.command];
  if (command === undefined) throw new Error(`bench: no command ${order.command}`);
  return order.do === "trace" ? await trace(command, prepared) : await measure(command, prepared);
}

function say(value: unknown): void {
  console.log(JSON.stringify(value));
}
