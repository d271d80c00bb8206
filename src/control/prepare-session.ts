// Prepares what an agent must find to begin a session under an id that agentctl chose, and undoes it if the session does not
// begin.
import { closeSync, mkdirSync, openSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import type { Preparation } from "../agents/invocation.ts";
import type { Notice } from "../core/notice.ts";
import { writeFileAtomically, writeWhole } from "../lib/atomic-file.ts";
import { failureText } from "../lib/errors.ts";
import { findRecords } from "../observe/record-names.ts";
import { type FoundRecord, recordAt } from "../observe/records.ts";
import { readRow } from "../observe/stores.ts";
import { runCommand } from "../sys/spawn.ts";
import { agentEnvironment } from "./child-environment.ts";
import type { LaunchPlan } from "./start-agent.ts";

/**
 * Returns the words that start the agent. An importer of the agent's runs first, under the same holder: it takes seconds, which
 * no other launch should wait for, and its error messages become the agent's. `importFile` is the file that it reads.
 */
export function prepareSession(plan: LaunchPlan, importFile: string): string[] {
  const { adapter, command } = plan;
  const { headless, support } = adapter.invocation;
  const ours = support?.(plan) ?? null;
  if (ours !== null) writeFileAtomically(ours.path, ours.text, "soon");
  const words = [...command, ...headless(plan)];
  const preparation = preparationOf(plan);
  if (preparation === null) return words;
  if (preparation.kind === "file") {
    writePrivately(preparation.path, preparation.text);
    return words;
  }
  writePrivately(importFile, preparation.text);
  const importer = [...command, ...preparation.arguments(importFile)].map(quoted).join(" ");
  const script = `${importer} </dev/null >&2; _agentctl_status=$?; rm -f ${quoted(importFile)}; [ $_agentctl_status -eq 0 ] || exit $_agentctl_status; exec "$@"`;
  return ["/bin/sh", "-c", script, "sh", ...words];
}

const preparationOf = (plan: LaunchPlan): Preparation | null =>
  plan.session === null || plan.kind === "continue"
    ? null
    : (plan.adapter.invocation.prepare?.(plan.session, plan) ?? null);

/** After a failed start: an empty prepared record would look like a session. Returns what could not be undone. */
export async function undoPreparation(plan: LaunchPlan): Promise<Notice[]> {
  const { adapter, command, env, home, cwd, session } = plan;
  removePreparedFile(plan);
  const preparation = preparationOf(plan);
  if (preparation?.kind !== "command") return [];
  const record = findRecords(adapter, home).visited.find(({ subject }) => subject === session);
  if (record === undefined || !isEmpty(record, plan)) return [];
  const own = { ...agentEnvironment(env, adapter, home), PWD: cwd };
  const words = [...command, ...preparation.undo];
  const left = (detail: string): Notice[] => [
    { code: "empty-session-left", facts: { command: words.join(" "), detail } },
  ];
  try {
    const { status, text } = await runCommand(words, { cwd, env: own, maxMs: undoMs });
    return status === 0 ? [] : left(text.trim() || `exit status ${status ?? "unknown"}`);
  } catch (error) {
    return left(failureText(error));
  }
}

export function removePreparedFile(plan: LaunchPlan): void {
  const preparation = preparationOf(plan);
  if (preparation?.kind === "file" && isEmpty(recordAt(plan.adapter, preparation.path, plan.session ?? ""), plan))
    rmSync(preparation.path, { force: true });
}

const undoMs = 30_000;

function isEmpty(record: FoundRecord, { adapter }: LaunchPlan): boolean {
  const reading = readRow(adapter, record)?.reading;
  return reading?.ok === true && reading.value.turn.state === "none";
}

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

/** Writes the whole file or nothing, and never replaces a file. */
function writePrivately(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const fd = openSync(path, "wx", 0o600);
  try {
    writeWhole(fd, text);
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(fd);
  }
}
