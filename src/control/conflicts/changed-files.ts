// The files that live sessions have changed, by git and by the sessions' records.
import { relative, resolve } from "node:path";
import type { LineFacts, Message } from "../../agents/adapter.ts";
import { adapterNamed } from "../../agents/registry.ts";
import { Failure } from "../../core/failure.ts";
import { deadlineIn } from "../../lib/deadline.ts";
import { errorCode } from "../../lib/errors.ts";
import { entriesBackward, readHistory } from "../../observe/conversation.ts";
import type { Environment } from "../../observe/homes.ts";
import { recordAt } from "../../observe/records.ts";
import { namesIn, plainStatus } from "../git/git.ts";
import { inView } from "../git/git-view.ts";
import { statusIn } from "../git/view-files.ts";
import type { Live } from "./find-conflicts.ts";

/** A repository that takes longer is skipped and reported: `list` must not wait for it. */
const patienceMs = 400;
const maxAtOnce = 8;

/** The changed files of each place, and the places where git failed or did not answer in time. */
export async function changedFiles(places: ReadonlySet<string>, env: Environment) {
  const deadline = deadlineIn(patienceMs);
  const files = new Map<string, string[]>();
  const unseen: string[] = [];
  const queue = [...places];
  const work = async (): Promise<void> => {
    for (let place = queue.shift(); place !== undefined; place = queue.shift()) {
      const changed = deadline.isOver() ? null : await changedIn(place, env, deadline.remainingMs());
      if (changed === null) unseen.push(place);
      else files.set(place, changed);
    }
  };
  await Promise.all(Array.from({ length: maxAtOnce }, work));
  return { files, unseen };
}

/** null: git cannot tell. */
async function changedIn(place: string, env: Environment, maxMs: number): Promise<string[] | null> {
  try {
    const status = await inView(place, env, (view) => statusIn(view, plainStatus), maxMs);
    return status.ok && status.value.ok ? namesIn(status.value.out).map((line) => line.slice(3)) : null;
  } catch (error) {
    if (error instanceof Failure) return null;
    throw error;
  }
}

const lookedAt = 300;
const editing = /write|edit|patch|create|replace|insert/i;

/** The paths, relative to the place, that the session's last tool calls changed. */
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

/** Without denied calls, which changed nothing. Records have results in the order of their calls. */
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

/** A patch names its files, also in the arguments of a shell. */
function pathsIn({ tool, text }: Message): string[] {
  if (text.includes("*** Begin Patch"))
    return [...text.matchAll(/^\*\*\* (?:Add|Update|Delete) File: (.+)$/gm)].map(([, path = ""]) => path.trim());
  return tool !== null && editing.test(tool) ? [text] : [];
}
