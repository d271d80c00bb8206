// The other user of these tests really is another user; otherwise no attack would prove anything.

import { expect } from "bun:test";
import { spawnSync } from "node:child_process";
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { asOther, OtherFolder, otherUid, testAsOther } from "./other-user.ts";

testAsOther("the other user owns its files and cannot read ours", () => {
  using folder = new OtherFolder();
  const [program = "", ...words] = asOther("sh", "-c", 'id -u; touch "$0/theirs"; cat "$0/ours"', folder.path);
  const ours = join(folder.path, "ours");
  writeFileSync(ours, "secret", { mode: 0o600 });
  const { stdout, status } = spawnSync(program, words, { encoding: "utf8" });
  expect({ stdout, status, owner: statSync(join(folder.path, "theirs")).uid }).toEqual({
    stdout: `${otherUid}\n`,
    status: 1,
    owner: otherUid,
  });
});
