// The exit status of a launch is written by its holder, a moment after the agent's end.
import { basename, dirname } from "node:path";
import { deadlineIn } from "../lib/deadline.ts";
import type { Environment } from "../observe/homes.ts";
import { openChanges } from "../sys/changes.ts";
import { launchFiles, type ReadNote, readNote } from "./notes.ts";

/** The notes of launches whose agents have ended: as soon as all have their exit status, at the latest after so long. */
export async function notesWhenOver(ids: readonly string[], env: Environment, mostMs: number): Promise<ReadNote[]> {
  const deadline = deadlineIn(mostMs);
  const files = ids.map((id) => launchFiles(env, id).exit);
  const changes = openChanges();
  try {
    for (const folder of new Set(files.map(dirname)))
      changes.path(folder, (name) => files.some((path) => basename(path) === name));
    for (;;) {
      const notes = ids.flatMap((id) => readNote(env, id) ?? []);
      if (deadline.isOver() || notes.every(({ exit }) => exit !== null)) return notes;
      await changes.next(deadline.remainingMs());
    }
  } finally {
    changes.close();
  }
}
