// Runs a hook. A launch, a holder at its end, or a later command starts it.
import { refuseHooksInside } from "../../control/guard-hidden-commands.ts";
import { runExitHook, runLateHook, runStartHook } from "../../control/hooks/run-hook.ts";
import { ownCaller } from "../../service/caller.ts";
import type { Context } from "../command.ts";

export async function runHook([when, launch, directory = "/"]: readonly string[], { env }: Context): Promise<number> {
  if (launch === undefined) return 2;
  await refuseHooksInside(ownCaller(env), env);
  if (when === "start") await runStartHook(launch, directory, env);
  else if (when === "exit") await runExitHook(launch, directory, env);
  else if (when === "late") await runLateHook(launch, env);
  else return 2;
  return 0;
}
