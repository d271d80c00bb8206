// Throw-away folders that remove themselves.
import { mkdtempSync, realpathSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Folder extends Disposable {
  path: string;
}

export function throwAwayFolder(): Folder {
  const path = mkdtempSync(join(onRootDevice(), "conf-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** In a pid namespace agentctl answers unknown for a store on another device than `/`: its writers may be invisible. */
function onRootDevice(): string {
  const device = statSync("/").dev;
  const found = [tmpdir(), "/var/tmp", import.meta.dir].find((folder) => statSync(folder).dev === device);
  if (found === undefined) throw new Error("no folder for throw-away files is on the device of /");
  return realpathSync(found);
}
