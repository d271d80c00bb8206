// Not for people: what a holder calls when the time of its launch is over, or the `agentctl run` that wanted it is gone.
import { endLaunch } from "../control/end-launch.ts";
import { guardLaunch } from "../control/own-callers.ts";
import type { Context } from "./command.ts";

export async function runEndLaunch([launch]: readonly string[], { env }: Context): Promise<number> {
  if (launch === undefined) return 2;
  await guardLaunch(launch, env);
  await endLaunch(launch, env);
  return 0;
}
