// One command from its beginning to its exit code. The only place that turns errors into text.
import { userInfo } from "node:os";
import { AgentctlError, exitCodes } from "../core/problem.ts";
import { plainText } from "../lib/width.ts";
import { AnswerLost, ReaderGone, writeErr, writeOut } from "../sys/stdout.ts";
import type { Context } from "./command.ts";

export async function perform(action: (context: Context) => Promise<number>): Promise<number> {
  try {
    return await action(contextOf({ ...process.env }));
  } catch (error) {
    return failure(error);
  }
}

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
const limits = ["ENOSPC", "EDQUOT", "EROFS", "EACCES", "EPERM", "EIO", "EMFILE", "ENFILE", "ENOMEM"];

const isOfSystem = (error: unknown): error is Error =>
  error instanceof AnswerLost || (error instanceof Error && "code" in error && limits.includes(String(error.code)));

function failure(error: unknown): number {
  if (error instanceof ReaderGone) return 0;
  const known = error instanceof AgentctlError;
  const text = known
    ? `${plainText(error.message)}\n${error.hint === null ? "" : `  ${plainText(error.hint)}\n`}`
    : isOfSystem(error)
      ? `${plainText(error.message)}\n`
      : `this should not happen: ${plainText(error instanceof Error ? (error.stack ?? error.message) : String(error))}\n`;
  try {
    writeErr(`agentctl: ${text}`);
  } catch (lost) {
    // Nobody can be told; the exit code still can.
    if (!(lost instanceof Error)) throw lost;
  }
  return known ? exitCodes[error.code] : exitCodes.failed;
}
