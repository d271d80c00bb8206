// Which files live sessions have changed, by git and by their records.
import { join, relative, resolve } from "node:path";
import type { LineFacts, Message } from "../adapters/adapter.ts";
import { adapterNamed } from "../adapters/registry.ts";
import { AgentctlError } from "../core/problem.ts";
import { deadlineIn } from "../lib/deadline.ts";
import { entriesBackward, readHistory } from "../observe/conversation.ts";
import { errorCode } from "../observe/failure.ts";
import type { Environment } from "../observe/homes.ts";
import { recordAt } from "../observe/records.ts";
import { openScratch } from "../sys/scratch.ts";
import { openView, type ViewWish } from "./git-view.ts";
import type { Live } from "./radar.ts";
import { namesIn, plainStatus, statusIn } from "./view-files.ts";

/** A repository that takes longer to look at is passed over, and that is said: a list must not wait for it. */
const patienceMs = 400;
const mostAtOnce = 8;

export interface ChangedFiles {
  /** By place. */
  files: Map<string, string[]>;
  /** Places where git did not answer in time, or could not. */
  unseen: string[];
}

export async function changedFiles(places: ReadonlySet<string>, env: Environment): Promise<ChangedFiles> {
  const deadline = deadlineIn(patienceMs);
  const files = new Map<string, string[]>();
  const unseen: string[] = [];
  const queue = [...places].map((place, number) => ({ place, number }));
  if (queue.length === 0) return { files, unseen };
  const scratch = openScratch();
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const { place, number } = next;
      const wish = { env, folder: join(scratch.folder, String(number)), mostMs: deadline.remainingMs() };
      const changed = deadline.isOver() ? null : await changedIn(place, wish);
      if (changed === null) unseen.push(place);
      else files.set(place, changed);
    }
  };
  try {
    await Promise.all(Array.from({ length: mostAtOnce }, work));
    return { files, unseen };
  } finally {
    scratch.remove();
  }
}

/** null: git cannot say. */
async function changedIn(place: string, wish: ViewWish): Promise<string[] | null> {
  try {
    const opened = await openView(place, wish);
    if (!opened.ok) return null;
    const { ok, out } = await statusIn(opened.view, plainStatus);
    return ok ? namesIn(out).map((line) => line.slice(3)) : null;
  } catch (error) {
    if (error instanceof AgentctlError) return null;
    throw error;
  }
}

const lookedAt = 300;
const editing = /write|edit|patch|create|replace|insert/i;

/** Of its last calls those of tools that change files, by the paths that they are about; from the place's root. */
export function editedFiles({ session: { agent, home, id, record, cwd }, place }: Live): string[] {
  const adapter = adapterNamed(agent);
  if (adapter === null || record === null || id === null) return [];
  try {
    const { own } = readHistory({ adapter, home, file: recordAt(adapter, record.source, id) });
    const lines = entriesBackward(adapter, [own])
      .take(lookedAt)
      .toArray()
      .flatMap((entry) => (entry.kind === "known" ? [entry.facts] : []))
      .reverse();
    const paths = allowedCalls(lines)
      .flatMap(pathsIn)
      .map((path) => relative(place, resolve(cwd ?? place, path)));
    return paths.filter((path) => path !== "" && !path.startsWith("..") && !/[\n\0]/.test(path));
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return [];
  }
}

/** Without those that were denied: they changed nothing. Records have results in the order of their calls. */
function allowedCalls(lines: readonly LineFacts[]): Message[] {
  const calls = new Set<Message>();
  let open: Message[] = [];
  for (const { messages, denied } of lines)
    for (const message of messages) {
      if (message.role === "user") open = [];
      if (message.role === "tool") {
        calls.add(message);
        open.push(message);
      }
      const answered = message.role === "result" ? open.shift() : undefined;
      if (answered !== undefined && denied > 0) calls.delete(answered);
    }
  return [...calls];
}

/** A patch names its files, also where a shell is given it. */
function pathsIn({ tool, text }: Message): string[] {
  if (text.includes("*** Begin Patch"))
    return [...text.matchAll(/^\*\*\* (?:Add|Update|Delete) File: (.+)$/gm)].map(([, path = ""]) => path.trim());
  return tool !== null && editing.test(tool) ? [text] : [];
}
