// Not for people: what a launch, a holder at its end and a later command start to run a person's hook.
import { refuseHooksInside } from "../control/own-callers.ts";
import { runExitHook, runLateHook, runStartHook } from "../control/run-hook.ts";
import type { Context } from "./command.ts";

export async function runHook([when, launch, directory = "/"]: readonly string[], { env }: Context): Promise<number> {
  if (launch === undefined) return 2;
  await refuseHooksInside(env);
  if (when === "start") await runStartHook(launch, directory, env);
  else if (when === "exit") await runExitHook(launch, directory, env);
  else if (when === "late") await runLateHook(launch, env);
  else return 2;
  return 0;
}
