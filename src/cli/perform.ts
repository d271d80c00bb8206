// Runs one command and returns its exit code.
import { userInfo } from "node:os";
import { writeErr, writeOut } from "../sys/stdout.ts";
import type { Context } from "./command.ts";

export async function perform(action: (context: Context) => Promise<number>, args: readonly string[]): Promise<number> {
  const dashes = args.indexOf("--");
  const wantsJson = (dashes === -1 ? args : args.slice(0, dashes)).includes("--json");
  // --json promises one value: a command that has printed its answer before it fails prints no second one.
  let hasAnswered = false;
  const context = contextOf({ ...process.env }, (text) => {
    hasAnswered ||= text.length > 0;
    writeOut(text);
  });
  try {
    return await Promise.race([action(context), uncaught()]);
  } catch (error) {
    const { reportFailure } = await import("./report-failure.ts");
    return reportFailure(error, wantsJson && !hasAnswered, context);
  }
}

/** Catches errors that no caller awaits. The runtime would print them with any escape sequences in their text. */
const uncaught = (): Promise<never> =>
  new Promise((_, reject) => {
    process.on("uncaughtException", reject);
    process.on("unhandledRejection", reject);
  });

/** Takes a plain copy of the environment: reading process.env itself several times takes milliseconds. */
const contextOf = (given: Context["env"], out: Context["out"]): Context => ({
  // cron and services leave HOME unset.
  env: given["HOME"] ? given : { ...given, HOME: userInfo().homedir },
  // A getter, because most commands do not need this system call.
  get cwd() {
    return process.cwd();
  },
  out,
  err: writeErr,
});
