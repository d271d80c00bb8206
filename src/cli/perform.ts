// One command from its beginning to its exit code. The only place that turns errors into text.
import { userInfo } from "node:os";
import { AgentctlError, exitCodes } from "../core/problem.ts";
import { AnswerLost, ReaderGone, writeErr, writeOut } from "../sys/stdout.ts";
import type { Context } from "./command.ts";

export async function perform(action: (context: Context) => Promise<number>): Promise<number> {
  try {
    return await Promise.race([action(contextOf({ ...process.env })), uncaught()]);
  } catch (error) {
    return failure(error);
  }
}

/** An error that no caller awaits. The runtime would print its text as it is, with whatever a terminal obeys in it. */
const uncaught = (): Promise<never> =>
  new Promise((_, reject) => {
    process.on("uncaughtException", reject);
    process.on("unhandledRejection", reject);
  });

/** With a plain copy: process.env itself takes milliseconds to go through a few times. */
const contextOf = (given: Context["env"]): Context => ({
  // cron and services leave HOME out; the user has one all the same.
  env: given["HOME"] ? given : { ...given, HOME: userInfo().homedir },
  // Asked for only where needed: it costs a call.
  get cwd() {
    return process.cwd();
  },
  out: writeOut,
  err: writeErr,
});

/** What the machine does not have or allow is no mistake of ours. */
const limits = [
  "ENOTDIR",
  "EISDIR",
  "ELOOP",
  "ENAMETOOLONG",
  "ENOSPC",
  "EDQUOT",
  "EROFS",
  "EACCES",
  "EPERM",
  "EIO",
  "EMFILE",
  "ENFILE",
  "ENOMEM",
];

const isOfSystem = (error: unknown): error is Error =>
  error instanceof AnswerLost || (error instanceof Error && "code" in error && limits.includes(String(error.code)));

/** A message may quote other programs. None of their lines may begin like one of ours. */
const indented = (text: string): string => text.replaceAll("\nagentctl:", "\n  agentctl:");

function failure(error: unknown): number {
  if (error instanceof ReaderGone) return 0;
  const known = error instanceof AgentctlError;
  const text = known
    ? `${error.message}\n${error.hint === null ? "" : `  ${error.hint}\n`}`
    : isOfSystem(error)
      ? `${error.message}\n`
      : `this should not happen: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`;
  try {
    writeErr(`agentctl: ${indented(text)}`);
  } catch (lost) {
    // Nobody can be told; the exit code still can.
    if (!(lost instanceof Error)) throw lost;
  }
  return known ? exitCodes[error.code] : exitCodes.failed;
}
