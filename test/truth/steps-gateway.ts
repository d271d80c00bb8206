// Steps with gateways: ones that answer half, wrongly, late or not at all, whose token nobody knows, and what only looks like one.
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expectNow } from "./allowances.ts";
import { changeMemory, quickManners, readMemory, writeSettings } from "./gateway.ts";
import { askNow } from "./product.ts";
import type { Dice } from "./random.ts";
import type { Action } from "./schedule.ts";
import { isAlive, isSuspended, type Twin } from "./twin.ts";
import type { World } from "./world.ts";

export const gatewaySteps: Record<string, Action> = {
  "gateway-manner": onGateway(9, isTalking, async (_world, twin, dice) =>
    changeMemory(twin, () => ({ manner: dice.pick(quickManners), page: 1 + dice.below(4) })),
  ),
  "gateway-mended": onGateway(6, isTalking, async (_world, twin) => changeMemory(twin, () => ({ manner: "true" }))),
  // Two seconds pass until nobody waits for it any more: asked once, and mended.
  "gateway-hangs": onGateway(0.4, isTalking, async (world, twin) => {
    const { manner } = readMemory(twin.memory?.path ?? "");
    changeMemory(twin, () => ({ manner: "silent" }));
    await askNow(world, expectNow(world));
    changeMemory(twin, () => ({ manner }));
  }),
  "gateway-token": onGateway(4, isAlive, async (world, twin, dice) => {
    const path = join(world.storeOf(twin).home, twin.format.gateway?.settings ?? "");
    const { token } = readMemory(twin.memory?.path ?? "");
    const manner = dice.pick(["right", "wrong", "wrong", "none", "broken"] as const);
    if (manner === "none") rmSync(path, { force: true });
    else if (manner === "broken") writeFileSync(path, "{");
    else writeSettings(path, manner === "right" ? token : dice.uuid());
  }),
  // It shows sessions of the gateway, and has none.
  "gateway-viewer": onGateway(1, isAlive, async (world, _twin, dice) => {
    const body = "printf %s openclaw-tui >/proc/self/comm; read word";
    world.startStranger(["/bin/sh", "-c", body, "openclaw-tui"], dice.pick(world.places));
  }),
};

/** It could answer. */
function isTalking(twin: Twin): boolean {
  if (twin.memory === null || !isAlive(twin) || isSuspended(twin) || !twin.memory.hasLock) return false;
  return ["true", ...quickManners].includes(readMemory(twin.memory.path).manner);
}

function onGateway(
  weight: number,
  fits: (twin: Twin) => boolean,
  act: (world: World, twin: Twin, dice: Dice) => Promise<void>,
): Action {
  const there = (world: World) => world.twins.filter((twin) => twin.memory !== null && isAlive(twin) && fits(twin));
  return {
    weight,
    targets: (world) => (there(world).length > 0 ? [0] : []),
    run: async (world, _target, dice) => await act(world, dice.pick(there(world)), dice),
  };
}
