// Ends a launch. Its holder calls this at the time limit, or when the `agentctl run` that started it is gone.
import { endLaunch } from "../../control/end-launch.ts";
import { guardLaunch } from "../../control/guard-hidden-commands.ts";
import { ownCaller } from "../../service/caller.ts";
import type { Context } from "../command.ts";

export async function runEndLaunch([launch]: readonly string[], { env }: Context): Promise<number> {
  if (launch === undefined) return 2;
  await guardLaunch(launch, ownCaller(env), env);
  await endLaunch(launch, ownCaller(env), env);
  return 0;
}
