// The demo agent as a command of agentctl. Inside an agent the guard decides whether it may run commands.
import { runDemoAgent } from "../../demo/agent.ts";
import { ownCaller } from "../../service/caller.ts";
import type { Context } from "../command.ts";

export async function runGuardedDemoAgent(words: readonly string[], { env }: Context): Promise<number> {
  return await runDemoAgent(words, async () => {
    // Loaded only for a script with commands: the demo agent starts often.
    const { mayRunCommands } = await import("../../control/guard-hidden-commands.ts");
    return await mayRunCommands(ownCaller(env), env);
  });
}
