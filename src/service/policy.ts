// Rules that several acts share: a session needs an id, a directory, a known state, and a strong link to its process.
import { statSync } from "node:fs";
import type { Adapter } from "../agents/adapter.ts";
import { adapterNamed } from "../agents/registry.ts";
import type { Confirmation } from "../core/confirmation.ts";
import { Failure } from "../core/failure.ts";
import { errorCode, failureText } from "../lib/errors.ts";
import type { SessionRow } from "./look.ts";

export function adapterOf({ session }: SessionRow): Adapter {
  const adapter = adapterNamed(session.agent);
  if (adapter === null) throw new Error(`no adapter for ${session.agent}`);
  return adapter;
}

export function idOf({ session, ref }: SessionRow): string {
  if (session.id !== null) return session.id;
  throw new Failure("no-session-yet", { ref });
}

/** Agents look for the conversation in the directory that it was held in. */
export function ownDirectory({ session, ref }: SessionRow): string {
  const { cwd } = session;
  if (cwd === null) throw new Failure("directory-unknown", { ref });
  try {
    if (statSync(cwd).isDirectory()) return cwd;
  } catch (error) {
    const detail = errorCode(error) === "ENOENT" ? null : failureText(error);
    throw new Failure("directory-gone", { ref, cwd, detail }, { cause: error });
  }
  throw new Failure("directory-gone", { ref, cwd, detail: "there is a file in its place" });
}

/** Refuses to act on a session with an unknown state. */
export function checkKnown({ session: { status }, ref }: SessionRow): void {
  if (status.state !== "unknown") return;
  throw new Failure("status-unknown", { ref, why: status.why });
}

/** Names a session in the key of a confirmation: another session, or another process of it, is asked about again. */
export const keyOf = ({ session: { agent, home, id, processes } }: SessionRow): string =>
  [agent, home, id, ...processes.map(({ identity: { pid, start } }) => `${pid}@${start}`)].join(" ");

/** A weak link may mean the wrong process. */
export function weakLinkOf(row: SessionRow): Confirmation[] {
  const { session, ref } = row;
  const { status, processes } = session;
  const link = status.state === "running" && status.owner.kind === "process" ? status.owner.link : "announced";
  if (link === "announced" || link === "assigned") return [];
  const pid = processes[0]?.identity.pid ?? null;
  return [{ code: "weak-link", key: `weak-link ${keyOf(row)}`, ref, pid, link }];
}
