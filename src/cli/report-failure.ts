// Prints the error of a failed command as text and JSON, and returns the exit code.
import { Failure } from "../core/failure.ts";
import { exitOf, isRetryable } from "../core/failure-kinds.ts";
import { exitCodes } from "../core/problem.ts";
import { jsonLine } from "../lib/width.ts";
import { AmbiguousReference } from "../service/reference.ts";
import { AnswerLost, ReaderGone, writeErr, writeOut } from "../sys/stdout.ts";
import { type FailureWords, failureWords } from "../words/failures.ts";
import { noticeLines } from "../words/notices.ts";
import type { Context } from "./command.ts";
import { terminalOf } from "./render.ts";
import { sessionTable } from "./session-table.ts";

/** The operating system causes these errors, so they are reported without a stack trace. */
const systemErrors = [
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
  error instanceof AnswerLost ||
  (error instanceof Error && "code" in error && systemErrors.includes(String(error.code)));

/** A message may quote other programs. A quoted line must not look like a line of agentctl. */
const indented = (text: string): string => text.replaceAll("\nagentctl:", "\n  agentctl:");

export function reportFailure(error: unknown, wantsJson: boolean, context: Context): number {
  if (error instanceof ReaderGone) return 0;
  const { message, hint } = wordsFor(error, context);
  const table = candidateTable(error, context);
  const exit = error instanceof Failure ? exitCodes[exitOf(error)] : exitCodes.failed;
  try {
    const { code, retryable, facts } = codeOf(error);
    if (wantsJson) writeOut(jsonLine({ error: { code, message, hint, exit, retryable, facts } }));
    writeErr(indented(`agentctl: ${message}${table}\n${hint === null ? "" : `  ${hint}\n`}`));
  } catch (lost) {
    // If the error cannot be written, only the exit code reports it.
    if (!(lost instanceof Error)) throw lost;
  }
  return exit;
}

function wordsFor(error: unknown, { env }: Context): FailureWords {
  if (error instanceof Failure) {
    const { message, hint } = failureWords(error, env["HOME"]);
    const lines = error.notices.flatMap(noticeLines).map((line) => `  ${line}`);
    return { message: [message, ...lines].join("\n"), hint };
  }
  if (isOfSystem(error)) return { message: error.message, hint: null };
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { message: `this should not happen: ${text}`, hint: null };
}

function codeOf(error: unknown): { code: string; retryable: boolean; facts: object } {
  if (error instanceof Failure) {
    return { code: error.code, retryable: isRetryable(error), facts: error.code === "usage" ? {} : error.facts };
  }
  return { code: isOfSystem(error) ? "system-error" : "internal-error", retryable: false, facts: {} };
}

const mostShown = 10;

/** The sessions that an ambiguous reference could mean; "" for any other error. */
function candidateTable(error: unknown, context: Context): string {
  if (!(error instanceof AmbiguousReference)) return "";
  const { candidates, at } = error;
  const { columns } = terminalOf(context);
  const table = sessionTable(candidates.slice(0, mostShown), at, context, { columns: columns - 2, colour: false });
  const more = candidates.length > mostShown ? [`… and ${candidates.length - mostShown} more`] : [];
  return [":", ...[...table.trimEnd().split("\n"), ...more].map((line) => `  ${line}`)].join("\n");
}
