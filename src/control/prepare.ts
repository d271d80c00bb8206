// What an agent needs to find before it can begin a session under an id that we chose; taken back if it does not begin.
import { closeSync, mkdirSync, openSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import type { Order, Place, Preparation } from "../adapters/invocation.ts";
import { writeFileAtomically, writeWhole } from "../lib/atomic-file.ts";
import { failureText } from "../observe/failure.ts";
import { findRecords } from "../observe/names.ts";
import { type FoundRecord, recordAt } from "../observe/records.ts";
import { readRow } from "../observe/stores.ts";
import { runCommand } from "../sys/spawn.ts";
import { agentEnvironment } from "./environment.ts";
import type { LaunchOrder } from "./launch.ts";

export interface Preparing {
  /** null: the agent chooses it. */
  session: string | null;
  order: Order;
  place: Place;
  /** For what the agent's importer reads. */
  file: string;
}

/**
 * The words that start the agent. Its own importer runs first, under the same holder: it takes seconds in which nobody else
 * should have to wait, and what it says when it fails is what the agent said.
 */
export function prepared(preparing: Preparing, { adapter, command }: LaunchOrder): string[] {
  const { order, place, file } = preparing;
  const { headless, support } = adapter.invocation;
  const ours = support?.(order, place) ?? null;
  if (ours !== null) writeFileAtomically(ours.path, ours.text, "soon");
  const words = [...command, ...headless(order, place)];
  const needed = neededFor(preparing, adapter);
  if (needed === null) return words;
  if (needed.kind === "file") {
    writePrivately(needed.path, needed.text);
    return words;
  }
  writePrivately(file, needed.text);
  const importer = [...command, ...needed.arguments(file)].map(quoted).join(" ");
  const script = `${importer} </dev/null >&2; _agentctl_status=$?; rm -f ${quoted(file)}; [ $_agentctl_status -eq 0 ] || exit $_agentctl_status; exec "$@"`;
  return ["/bin/sh", "-c", script, "sh", ...words];
}

const neededFor = ({ session, order, place }: Preparing, { invocation }: LaunchOrder["adapter"]): Preparation | null =>
  session === null || order.kind === "continue" ? null : (invocation.prepare?.(session, order, place) ?? null);

/** After a start that failed: a prepared record without a prompt would look like a session. What is left all the same. */
export async function unprepared(preparing: Preparing, wanted: LaunchOrder): Promise<string[]> {
  const { adapter, command, env, home, cwd } = wanted;
  removePrepared(preparing, wanted);
  const needed = neededFor(preparing, adapter);
  if (needed?.kind !== "command") return [];
  const record = findRecords(adapter, home).visited.find(({ subject }) => subject === preparing.session);
  if (record === undefined || !isEmpty(record, wanted)) return [];
  const own = { ...agentEnvironment(env, adapter, home), PWD: cwd };
  const words = [...command, ...needed.undo];
  const said = await outcomeOf(runCommand(words, { cwd, env: own, mostMs: undoMs }));
  return said === null ? [] : [`an empty session stays: ${words.join(" ")}: ${said}`];
}

/** The part of it that is there before anything was started. */
export function removePrepared(preparing: Preparing, wanted: LaunchOrder): void {
  const needed = neededFor(preparing, wanted.adapter);
  if (needed?.kind === "file" && isEmpty(recordAt(wanted.adapter, needed.path, preparing.session ?? ""), wanted))
    rmSync(needed.path, { force: true });
}

const undoMs = 30_000;

/** null: it went well. */
async function outcomeOf(run: ReturnType<typeof runCommand>): Promise<string | null> {
  try {
    const { status, text } = await run;
    return status === 0 ? null : text.trim() || `exit status ${status ?? "unknown"}`;
  } catch (error) {
    return failureText(error);
  }
}

function isEmpty(record: FoundRecord, { adapter }: LaunchOrder): boolean {
  const reading = readRow(adapter, record)?.reading;
  return reading?.ok === true && reading.value.turn.state === "none";
}

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

/** Whole or not at all, and never over anything. */
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
