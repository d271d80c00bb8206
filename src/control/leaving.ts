// A process that we launched and that is done: it takes its time to end, but has let go of the session that it told us.
import type { Session } from "../core/session.ts";
import type { LaunchNote } from "./notes.ts";

/** Its session is over, and it has no other one: it works nowhere. */
export function hasLetGo(
  { id, processes }: Session,
  notes: readonly Pick<LaunchNote, "id" | "session">[],
  isOver: (id: string) => boolean,
): boolean {
  if (id !== null) return false;
  const tags = processes.map(({ detail }) => detail?.env?.["AGENTCTL_TAG"]);
  const told = notes.find((note) => tags.includes(note.id))?.session ?? null;
  return told !== null && isOver(told);
}

/** For a look at what runs: who is not in it does not run. */
export function notLiveIn(sessions: readonly Session[]): (id: string) => boolean {
  const live = new Set(sessions.filter(({ status }) => status.state !== "stopped").map(({ id }) => id));
  return (id) => !live.has(id);
}
