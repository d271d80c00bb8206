// The attacker is another user of the host. Only root can change the user, so these tests need root; without it they
// are skipped, and say so. `.ci/run` sets SECURITY_TESTS=required: there a skipped attack is a failure.

import { test } from "bun:test";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, realpathSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The user "nobody" has no home and owns no files. */
export const otherUid = 65_534;

const becomeOther = ["setpriv", `--reuid=${otherUid}`, `--regid=${otherUid}`, "--clear-groups"];

/** Inside a user namespace the uid may not exist, although we seem to be root. */
const canBecomeOther = process.getuid?.() === 0 && spawnSync("setpriv", [...becomeOther.slice(1), "true"]).status === 0;

/** A test that plays another user. */
export function testAsOther(name: string, body: () => Promise<void> | void): void {
  if (canBecomeOther) {
    test(name, body);
    return;
  }
  if (process.env["SECURITY_TESTS"] === "required")
    test(name, () => {
      throw new Error("this attack needs root, and SECURITY_TESTS=required forbids to skip it");
    });
  else {
    console.error(`SKIPPED (needs root to play another user): ${name}`);
    test.skip(name, body);
  }
}

/** The command, run as the other user. */
export const asOther = (...command: string[]): string[] => [...becomeOther, ...command];

/** A folder of the other user that all users may read, on the device of `/`. */
export class OtherFolder implements Disposable {
  readonly path: string;

  constructor() {
    const root = statSync("/").dev;
    const base = [tmpdir(), "/var/tmp"].find((folder) => statSync(folder).dev === root) ?? tmpdir();
    this.path = realpathSync(mkdtempSync(join(base, "agentctl-other-")));
    chmodSync(this.path, 0o755);
    spawnSync("chown", [`${otherUid}:${otherUid}`, this.path]);
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}
