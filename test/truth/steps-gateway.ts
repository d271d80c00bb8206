// Steps with gateways that answer in part, wrongly, late or not at all, or whose token is unknown, and with programs that look like one.
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expectNow } from "./allowed-answers.ts";
import { type FakeAgent, isAlive, isSuspended } from "./fake-agent.ts";
import { changeMemory, quickManners, readMemory, writeSettings } from "./gateway.ts";
import type { Dice } from "./random.ts";
import { askNow } from "./run-agentctl.ts";
import type { Action } from "./schedule.ts";
import type { SimulatedHost } from "./simulated-host.ts";

export const gatewaySteps: Record<string, Action> = {
  "gateway-manner": onGateway(9, isTalking, async (_host, fake, dice) =>
    changeMemory(fake, () => ({ manner: dice.pick(quickManners), page: 1 + dice.below(4) })),
  ),
  "gateway-mended": onGateway(6, isTalking, async (_host, fake) => changeMemory(fake, () => ({ manner: "true" }))),
  // Each question to it takes the two seconds of its limit, so it is asked once and then mended.
  "gateway-hangs": onGateway(0.4, isTalking, async (host, fake) => {
    const { manner } = readMemory(fake.memory?.path ?? "");
    changeMemory(fake, () => ({ manner: "silent" }));
    await askNow(host, expectNow(host));
    changeMemory(fake, () => ({ manner }));
  }),
  "gateway-token": onGateway(4, isAlive, async (host, fake, dice) => {
    const path = join(host.storeOf(fake).home, fake.format.gateway?.settings ?? "");
    const { token } = readMemory(fake.memory?.path ?? "");
    const manner = dice.pick(["right", "wrong", "wrong", "none", "broken"] as const);
    if (manner === "none") rmSync(path, { force: true });
    else if (manner === "broken") writeFileSync(path, "{");
    else writeSettings(path, manner === "right" ? token : dice.uuid());
  }),
  // It shows sessions of the gateway, and has none.
  "gateway-viewer": onGateway(1, isAlive, async (host, _fake, dice) => {
    const body = "printf %s openclaw-tui >/proc/self/comm; read word";
    host.startStranger(["/bin/sh", "-c", body, "openclaw-tui"], dice.pick(host.places));
  }),
};

/** It could answer. */
function isTalking(fake: FakeAgent): boolean {
  if (fake.memory === null || !isAlive(fake) || isSuspended(fake) || !fake.memory.hasLock) return false;
  return ["true", ...quickManners].includes(readMemory(fake.memory.path).manner);
}

function onGateway(
  weight: number,
  fits: (fake: FakeAgent) => boolean,
  act: (host: SimulatedHost, fake: FakeAgent, dice: Dice) => Promise<void>,
): Action {
  const there = (host: SimulatedHost) =>
    host.fakes.filter((fake) => fake.memory !== null && isAlive(fake) && fits(fake));
  return {
    weight,
    targets: (host) => (there(host).length > 0 ? [0] : []),
    run: async (host, _target, dice) => await act(host, dice.pick(there(host)), dice),
  };
}
