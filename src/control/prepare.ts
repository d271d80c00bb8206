// What an agent needs to find before it can begin a session under an id that we chose.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Order, Place } from "../adapters/invocation.ts";
import { writeFileAtomically } from "../lib/atomic-file.ts";
import { recordAt } from "../observe/records.ts";
import { readRow } from "../observe/stores.ts";
import type { LaunchOrder } from "./launch.ts";
import { agentctlHome } from "./notes.ts";

/**
 * The words that start the agent. Its own importer runs first, under the same holder: it takes seconds in which nobody else
 * should have to wait, and what it says when it fails is what the agent said.
 */
export function prepared(session: string | null, order: Order, place: Place, wanted: LaunchOrder): string[] {
  const { adapter, env, command } = wanted;
  const { headless, prepare, support } = adapter.invocation;
  const ours = support?.(order, place) ?? null;
  if (ours !== null) writeFileAtomically(ours.path, ours.text);
  const words = [...command, ...headless(order, place)];
  const needed = session === null || order.kind === "continue" ? null : (prepare?.(session, order, place) ?? null);
  if (needed === null) return words;
  if (needed.kind === "file") {
    writePrivately(needed.path, needed.text);
    return words;
  }
  const file = join(agentctlHome(env), "logs", `${session}.import`);
  writePrivately(file, needed.text);
  const importer = [...command, ...needed.arguments(file)].map(quoted).join(" ");
  const script = `${importer} </dev/null >&2; _agentctl_status=$?; rm -f ${quoted(file)}; [ $_agentctl_status -eq 0 ] || exit $_agentctl_status; exec "$@"`;
  return ["/bin/sh", "-c", script, "sh", ...words];
}

/** After a start that failed: a prepared record without a prompt would look like a session. */
export function unprepared(session: string | null, order: Order, place: Place, { adapter }: LaunchOrder): void {
  if (session === null || order.kind === "continue") return;
  const needed = adapter.invocation.prepare?.(session, order, place) ?? null;
  if (needed?.kind !== "file") return;
  const reading = readRow(adapter, recordAt(adapter, needed.path, session))?.reading;
  if (reading?.ok === true && reading.value.turn.state === "none") rmSync(needed.path, { force: true });
}

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

function writePrivately(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(path, text, { flag: "wx", mode: 0o600 });
}
