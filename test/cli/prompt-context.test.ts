// launch --spec and --context: a specification file and the content of files are added to the prompt.
import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LaunchTestHome } from "./test-home-launch.ts";

const promptOf = async (world: LaunchTestHome, id: string): Promise<string> =>
  (JSON.parse((await world.agentctl("logs", id, "--json")).out.split("\n")[0] ?? "") as { text: string }).text;

test("the prompt begins with the name of the specification and ends with the content of files", async () => {
  await using world = new LaunchTestHome();
  writeFileSync(join(world.work, "spec.md"), "the plan");
  writeFileSync(join(world.work, "a.txt"), "line one\nline two\n");
  writeFileSync(join(world.work, "ü b.txt"), "other");
  const files = ["--spec", "spec.md", "--context", "a.txt", "--context", "ü b.txt"];
  const { out, code } = await world.agentctl("launch", "demo", "say:hello", "--permission", "edit", ...files);
  expect(code).toBe(0);
  expect(await world.row(out.trim())).toMatchObject({ launch: { spec: join(world.work, "spec.md") } });
  expect(await promptOf(world, out.trim())).toBe(
    `Read this specification first: ${join(world.work, "spec.md")}\n\nsay:hello\n\nContent of a.txt:\n\nline one\nline two\n\nEnd of a.txt.\n\nContent of ü b.txt:\n\nother\n\nEnd of ü b.txt.`,
  );
});

test.each([
  ["a file that is not there", ["--spec", "none.md"], "no such file"],
  ["a folder as specification", ["--spec", "folder"], "not a file"],
  ["a context that is not there", ["--context", "none.md"], "no such file"],
  ["a folder as context", ["--context", "folder"], "a folder where a file should be"],
  ["something binary", ["--context", "binary"], "it is not text"],
  ["something that is not UTF-8", ["--context", "latin1"], "not UTF-8"],
  ["one file that is too large", ["--context", "large"], "larger than 262144 bytes"],
  ["too much in all", Array.from({ length: 5 }, () => ["--context", "quarter"]).flat(), "together is larger than"],
])("%s is refused", async (_name, args, says) => {
  await using world = new LaunchTestHome();
  mkdirSync(join(world.work, "folder"));
  writeFileSync(join(world.work, "binary"), "a\0b");
  writeFileSync(join(world.work, "latin1"), Buffer.from([0x61, 0xe4, 0x62]));
  writeFileSync(join(world.work, "large"), "x".repeat(256 * 1024 + 1));
  writeFileSync(join(world.work, "quarter"), "x".repeat(250 * 1024));
  const answer = await world.agentctl("launch", "demo", "say:x", "--permission", "edit", ...args);
  expect(answer).toMatchObject({ code: 2, out: "" });
  expect(answer.err).toContain(says);
});
