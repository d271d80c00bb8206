// Everything that is fuzzed.
import { adapters } from "../../src/adapters/registry.ts";
import { materialOf } from "./corpus.ts";
import { hostTargets } from "./host-targets.ts";
import { hugeTargets } from "./huge-targets.ts";
import { ownTargets } from "./own-targets.ts";
import { parseTargets } from "./parse-targets.ts";
import { processTargets } from "./process-targets.ts";
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
      ...hostTargets(material, homes),
      ...hugeTargets(material, homes),
      // agentctl's own files are nobody's: once is enough.
      ...(victim === undefined || adapter !== adapters.at(-1) ? [] : ownTargets(material, folder, victim)),
    ];
  });
}
