// Inside of a pid namespace: sets the stage of one case, then measures what it is asked to, one line of JSON at a time.
import type { Case } from "./cases.ts";
import { wrongAnswers, wrongTokens } from "./check.ts";
import { commands } from "./commands.ts";
import { measure, trace } from "./measure.ts";
import { setStage, type Tools } from "./stage.ts";

export interface Opening {
  case: Case;
  bin: string;
  tools: Tools;
  folder: string;
}

export type Order = { do: "measure" | "trace"; command: string } | { do: "check" } | { do: "check again" };

const opening: Opening = JSON.parse(process.argv[2] ?? "");
const stage = await setStage(opening.bin, opening.tools, opening.folder, opening.case);
say({ live: stage.live.length });

for await (const line of console) {
  // The end of our input.
  if (line === "") break;
  say(await obey(JSON.parse(line)));
}
// With us ends the namespace, and everybody in it.
process.exit(0);

async function obey(order: Order): Promise<unknown> {
  if (order.do === "check") return wrongAnswers(stage, opening.case.commands);
  if (order.do === "check again") return wrongTokens(stage);
  const command = commands[order.command];
  if (command === undefined) throw new Error(`bench: no command ${order.command}`);
  return order.do === "trace" ? await trace(command, stage) : await measure(command, stage);
}

function say(value: unknown): void {
  console.log(JSON.stringify(value));
}
