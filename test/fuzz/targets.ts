// Everything that is fuzzed.
import { adapters } from "../../src/agents/registry.ts";
import { ownTargets } from "./agentctl-file-targets.ts";
import { materialOf } from "./corpus.ts";
import { hugeTargets } from "./huge-file-targets.ts";
import { parseTargets } from "./parse-targets.ts";
import { processTargets } from "./process-targets.ts";
import { serverTargets } from "./server-targets.ts";
import { homesFor, storeTargets } from "./store-targets.ts";
import type { Target } from "./target.ts";

/** Puts captured cases below the folder, to be damaged there. */
export function targetsIn(folder: string): Target[] {
  return adapters.flatMap((adapter) => {
    const material = materialOf(adapter);
    const homes = homesFor(material, folder);
    const [victim] = homes.records;
    return [
      ...parseTargets(material, folder),
      ...storeTargets(material, homes),
      ...processTargets(material, homes),
      ...serverTargets(material, homes),
      ...hugeTargets(material, homes),
      // agentctl's own files belong to no agent: once is enough.
      ...(victim === undefined || adapter !== adapters.at(-1) ? [] : ownTargets(material, folder, victim)),
    ];
  });
}
