// Where the kernel's lock on launches is taken: in folders that are this user's alone. In /tmp another user could have made
// the folder first, and kept everybody out.
import { closeSync, constants, mkdirSync, openSync, realpathSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { AgentctlError } from "../core/problem.ts";
import { errorCode, failureText } from "../observe/failure.ts";
import type { Environment } from "../observe/homes.ts";
import { agentctlHome } from "./notes.ts";

/**
 * All of them are taken, in this order. Two commands of one user exclude each other where they have one in common: also if only
 * one of them has XDG_RUNTIME_DIR, and if they keep their notes in different homes. Real paths, sorted: two commands never wait
 * for each other, and no command for itself.
 */
export function lockFiles(env: Environment): string[] {
  const uid = process.getuid?.() ?? 0;
  const runtime = [env["XDG_RUNTIME_DIR"] ?? "", `/run/user/${uid}`]
    .filter((folder) => folder.startsWith("/") && problemWith(folder, uid) === null)
    .map((folder) => ownFolder(join(folder, "agentctl"), uid, "XDG_RUNTIME_DIR"));
  const folders = [...runtime, ...homeFolder(env, uid, runtime.length > 0 ? "if possible" : "needed")];
  return [...new Set(folders)].sort().map((folder) => join(folder, "launch.lock"));
}

/** A disk that is full or read-only is no reason not to begin, where another lock will do. */
function homeFolder(env: Environment, uid: number, need: "needed" | "if possible"): string[] {
  try {
    const home = agentctlHome(env);
    const owner = statSync(home, { throwIfNoEntry: false })?.uid ?? uid;
    if (owner !== uid) throw notOurs(home, `belongs to another user (uid ${owner})`, "AGENTCTL_HOME");
    const folder = ownFolder(join(home, "run"), uid, "AGENTCTL_HOME");
    closeSync(openLockFile(join(folder, "launch.lock")));
    return [folder];
  } catch (error) {
    if (need === "needed" || !(error instanceof AgentctlError)) throw error;
    return [];
  }
}

/** Made where it is missing; its real path. */
function ownFolder(folder: string, uid: number, variable: string): string {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    // A link is there already, and a file is judged below.
    if (errorCode(error) !== "EEXIST") throw notMade(folder, error, variable);
  }
  const problem = problemWith(folder, uid);
  if (problem !== null) throw notOurs(folder, problem, variable);
  return realpathSync(folder);
}

const notOurs = (folder: string, problem: string, variable: string): AgentctlError =>
  new AgentctlError("failed", `${folder} ${problem}`, { hint: `set ${variable} to a folder of yours` });

const notMade = (folder: string, error: unknown, variable: string): AgentctlError =>
  new AgentctlError("failed", `cannot write to ${dirname(folder)}: ${failureText(error)}`, {
    hint: `${variable} names another folder`,
    cause: error,
  });

/** Why a folder is not this user's alone; null: it is. */
function problemWith(folder: string, uid: number): string | null {
  try {
    const stat = statSync(folder);
    if (!stat.isDirectory()) return "is not a folder";
    if (stat.uid !== uid) return `belongs to another user (uid ${stat.uid})`;
    return (stat.mode & 0o022) === 0 ? null : "may be written to by other users";
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return `cannot be used: ${failureText(error)}`;
  }
}

export function openLockFile(path: string): number {
  try {
    return openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  } catch (error) {
    throw new AgentctlError("failed", `cannot open ${path}: ${failureText(error)}; nothing was started`, {
      hint: "remove it; agentctl makes it again",
      cause: error,
    });
  }
}
