// Signs from the agents themselves: lines of their records, announcements, locks, requests to the model.
import { existsSync } from "node:fs";
import { askAppServer } from "../../agents/codex-app-server.ts";
import { announcement, lockedThreads, readLines, rollout, transcript, waitFor } from "../../agents/test-home.ts";
import type { Identity, Life, Scene, Session } from "./simulated-host.ts";
import { find, liveProcesses } from "./simulated-host.ts";

const recordOf = ({ world }: Scene, { agent, id }: Session): string | null =>
  agent === "claude" ? transcript(world, id) : rollout(world, id);

/** How many lines its record has now: what comes later is news. */
export function linesOf(scene: Scene, session: Session): number {
  const path = recordOf(scene, session);
  return path === null ? 0 : readLines(path).length;
}

/** Its record got a line that has all of these parts. */
export const recorded = (scene: Scene, session: Session, since: number, ...parts: string[]): Promise<true> =>
  waitFor(`${parts.join(" and ")} in the record of ${session.id}`, () => {
    const path = recordOf(scene, session);
    if (path === null) return null;
    return readLines(path)
      .slice(since)
      .map((line) => JSON.stringify(line))
      .some((line) => parts.every((part) => line.includes(part)));
  });

/** The model was asked for what comes after the prompt with this mark and so many tool results. */
export const requested = ({ world }: Scene, mark: string, toolResults = 0): Promise<true> =>
  waitFor(`the request of ${mark}`, () =>
    world.model.requests.some(
      (request) => request.tools.length > 0 && request.text.includes(mark) && request.toolResults.length >= toolResults,
    ),
  );

/** What Claude's process says of itself. */
const says = ({ world }: Scene, { pid }: Identity, status: string): Promise<true> =>
  waitFor(`pid ${pid} saying ${status}`, () => announcement(world, pid)?.["status"] === status, {
    explain: () => JSON.stringify(announcement(world, pid)),
  });

const fileThere = (path: string): Promise<true> => waitFor(path, () => existsSync(path));

export const gone = (identity: Identity): Promise<true> =>
  waitFor(`the end of ${identity.pid}`, () => find(liveProcesses(), identity) === null);

/** The process that says that it has this session: by its announcement, or by its lock. */
export function ownerOf({ world }: Scene, { agent, id }: Session): Identity | null {
  const owner = world
    .processes()
    .find(({ pid, start }) =>
      agent === "codex"
        ? lockedThreads(pid).includes(id)
        : announcement(world, pid)?.["sessionId"] === id && announcement(world, pid)?.["procStart"] === start,
    );
  return owner === undefined ? null : { pid: owner.pid, start: owner.start };
}

export const owned = (scene: Scene, session: Session): Promise<Identity> =>
  waitFor(`an owner of ${session.id}`, () => ownerOf(scene, session));

/** What the daemon says of its thread, a moment later than its record does; after an API error it is "systemError". */
export const serverSaysIdle = ({ world }: Scene, { id }: Session): Promise<true> =>
  waitFor("the daemon saying idle", async () => {
    const answers = await askAppServer(world.codexHome, [
      { method: "thread/read", params: { threadId: id, includeTurns: false } },
    ]);
    return JSON.stringify(answers["thread/read"]).match(/"status":\{"type":"(idle|systemError)"/) !== null;
  });

/** The turn is open, and the model has been asked. */
export async function turnBegun(scene: Scene, session: Session, since: number, mark: string): Promise<void> {
  await requested(scene, mark);
  await recorded(scene, session, since, mark, session.agent === "claude" ? '"type":"user"' : '"UserMessage"');
}

/** Its tool runs, and its call is on record. */
export async function toolBegun(scene: Scene, session: Session, since: number, file: string): Promise<void> {
  await fileThere(file);
  const call = session.agent === "claude" ? '"tool_use"' : '"type":"function_call"';
  await recorded(scene, session, since, call, file);
}

/** The turn of something that stays is over, by its record and by its own word. */
export async function turnEnded(
  scene: Scene,
  session: Session & { life: Life },
  since: number,
  how: string,
): Promise<void> {
  await recorded(scene, session, since, how);
  await saysIdle(scene, session);
}

export async function saysIdle(scene: Scene, session: Session & { life: Life }): Promise<void> {
  if (session.agent === "claude") await says(scene, session.life.owner, "idle");
  else if (session.life.served) await serverSaysIdle(scene, session);
}

export const completed = ({ agent }: Session): string =>
  agent === "claude" ? '"stop_reason":"end_turn"' : '"type":"task_complete"';
export const failed = ({ agent }: Session): string =>
  agent === "claude" ? '"isApiErrorMessage":true' : '"type":"task_complete"';
export const interrupted = ({ agent }: Session): string =>
  agent === "claude" ? "[Request interrupted" : '"type":"turn_aborted"';
