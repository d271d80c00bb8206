// What a session is to a command that acts on it: its adapter, its id, its directory, whether a host has it.
import { statSync } from "node:fs";
import type { Adapter } from "../adapters/adapter.ts";
import { adapterNamed } from "../adapters/registry.ts";
import { AgentctlError } from "../core/problem.ts";
import { errorCode, failureText } from "../observe/failure.ts";
import type { Row } from "./sessions.ts";

export function adapterOf({ session }: Row): Adapter {
  const adapter = adapterNamed(session.agent);
  if (adapter === null) throw new Error(`no adapter for ${session.agent}`);
  return adapter;
}

export function idOf({ session, ref }: Row): string {
  if (session.id !== null) return session.id;
  throw new AgentctlError("refused", `${ref} has no session yet: there is nothing to go on with`);
}

/** Agents look for the conversation in the directory that it was held in. */
export function ownDirectory({ session, ref }: Row): string {
  const { cwd } = session;
  if (cwd === null)
    throw new AgentctlError("cannot-tell", `the record of ${ref} does not say in which directory it was held`);
  const hint = `make the directory again (git worktree add, mkdir), then repeat; agentctl logs ${ref} still reads it`;
  try {
    if (statSync(cwd).isDirectory()) return cwd;
  } catch (error) {
    if (errorCode(error) === "ENOENT")
      throw new AgentctlError("refused", `its directory is gone: ${cwd}`, { hint, cause: error });
    throw new AgentctlError("refused", `its directory ${cwd}: ${failureText(error)}`, { hint, cause: error });
  }
  throw new AgentctlError("refused", `its directory is gone, there is a file in its place: ${cwd}`, { hint });
}

/** What cannot be told is not acted on. */
export function checkKnown({ session: { status }, ref }: Row): void {
  if (status.state !== "unknown") return;
  throw new AgentctlError("cannot-tell", `cannot tell whether ${ref} is running: ${status.why}`, {
    hint: `agentctl why ${ref}; nothing was done`,
  });
}
