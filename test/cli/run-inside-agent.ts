// Commands that run as the tool of an agent which a person started.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Answer, binary } from "./test-home.ts";
import { type LaunchTestHome, toFiles } from "./test-home-launch.ts";

export interface Inside {
  /** The session that the command ran in. */
  id: string;
  answer: Answer;
}

/** Runs a command as the tool of an agent, and waits for its end. The binary is known to it as $AGENTCTL. */
export async function inside(
  world: LaunchTestHome,
  command: string,
  wrap = (text: string) => text,
  name = "answer",
): Promise<Inside> {
  const { id } = world.start(["prompt:x", `tool:${wrap(toFiles(command, name))}`, "work:600"], {
    cwd: world.work,
    env: { AGENTCTL: binary },
  });
  const code = Number(await world.untilFile(`${name}.code`));
  const text = (kind: string) => readFileSync(join(world.work, `${name}.${kind}`), "utf8");
  return { id, answer: { code, out: text("out"), err: text("err") } };
}
