// Starts an agent under a holder and waits until it has told, or taken up, its session. The answer is the agent's own id,
// or an error with nothing left running.
import { closeSync, mkdirSync, openSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Adapter } from "../adapters/adapter.ts";
import type { Order, Place } from "../adapters/invocation.ts";
import { AgentctlError } from "../core/problem.ts";
import type { Session } from "../core/session.ts";
import { writeFileAtomically, writeWhole } from "../lib/atomic-file.ts";
import { deadlineIn, within } from "../lib/deadline.ts";
import { someLines } from "../lib/width.ts";
import { failureText } from "../observe/failure.ts";
import type { Environment } from "../observe/homes.ts";
import { selfCommand } from "../sys/self.ts";
import type { SpawnedHolder } from "../sys/spawn.ts";
import { endLaunch } from "./end-launch.ts";
import { callerEnvironment } from "./environment.ts";
import { type Held, startHolder } from "./holder.ts";
import { holdHooks, homeVariable, releaseHooks } from "./hooks.ts";
import {
  agentctlHome,
  checkOwn,
  forgetLaunch,
  type LaunchNote,
  launchFiles,
  supportFolder,
  wantsHooks,
  writeNote,
} from "./notes.ts";
import { type Preparing, prepared, removePrepared, unprepared } from "./prepare.ts";
import { type Sign, SignsOfLife } from "./signs-of-life.ts";
import type { Stopped } from "./stop.ts";

export interface LaunchOrder {
  adapter: Adapter;
  /** The words that start the agent's program. */
  command: readonly string[];
  order: Order & { prompt: string };
  cwd: string;
  /** The data folder that it will use, by its real path. */
  home: string;
  env: Environment;
  note: Pick<LaunchNote, "name" | "group" | "labels" | "launchedBy" | "spec" | "worktree" | "commit" | "hooks">;
  maxTimeMs: number | null;
  startTimeoutMs: number;
  /** It ends with this process. */
  tied: boolean;
  /** The session to go on with, as it was before; null: a new one. */
  before: Session | null;
}

export interface Launched {
  id: string;
  launch: string;
  /** When it was started, before anybody knew whether it would begin. */
  at: number;
  /** null: it lives in a host, and nothing was started. */
  holder: SpawnedHolder | null;
  /** What could not be kept of it, or not be run for it; null: all was. */
  problem: string | null;
}

/** An agent that was started, before anybody knows whether it will begin its session. */
export class StartedLaunch {
  readonly id = crypto.randomUUID();
  private readonly holder: SpawnedHolder;
  private readonly signs: SignsOfLife;
  private readonly session: string | null;
  private readonly place: Place;
  /** The lock on its hooks, until its session has begun; null: it has none. */
  private readonly hookLock: number | null;

  constructor(private readonly wanted: LaunchOrder) {
    const { adapter, order } = wanted;
    this.place = { home: wanted.home, own: supportFolder(wanted.env), cwd: wanted.cwd, at: Date.now() };
    this.session = order.session ?? adapter.invocation.chooseId?.(crypto.randomUUID(), this.place.at) ?? null;
    let hookLock: number | null = null;
    let signs: SignsOfLife | null = null;
    try {
      if (wantsHooks(wanted.note.hooks)) hookLock = holdHooks(wanted.env, this.id);
      this.note(this.session);
      // Before it is there: what it writes at once is its own.
      signs = new SignsOfLife(wanted, this.id, this.session);
      this.holder = this.spawn();
    } catch (error) {
      signs?.giveUp();
      forgetLaunch(wanted.env, this.id);
      removePrepared(this.preparing(), wanted);
      if (hookLock !== null) closeSync(hookLock);
      throw startError(error, wanted);
    }
    this.hookLock = hookLock;
    this.signs = signs;
  }

  async begun(interrupted: Promise<never>): Promise<Launched> {
    try {
      const sign = await Promise.race([this.signs.untilBegun(this.holder.pid), interrupted]);
      if (sign.kind === "begun") {
        const problems = [
          sign.session === this.session ? null : this.noteOrProblem(sign.session),
          this.hookLock === null ? null : releaseHooks(this.hookLock, this.id, this.hooked()),
        ].filter((problem) => problem !== null);
        return {
          id: sign.session,
          launch: this.id,
          at: this.place.at,
          holder: this.holder,
          problem: problems.join("; ") || null,
        };
      }
      throw failedStart(sign, this.wanted);
    } catch (error) {
      this.signs.giveUp();
      const ended = leftoverLines(await endLaunch(this.id, this.wanted.env));
      // Its last act is a file; what is forgotten before that would come back.
      await within(deadlineIn(holderPatienceMs), this.holder.exited);
      forgetLaunch(this.wanted.env, this.id);
      const left = [...ended, ...(await unprepared(this.preparing(), this.wanted))];
      if (this.hookLock !== null) closeSync(this.hookLock);
      throw left.length === 0 || !(error instanceof AgentctlError) ? error : withLines(error, left);
    }
  }

  /** The session runs: that its name and labels could not be kept is only worth a word. */
  private noteOrProblem(session: string): string | null {
    try {
      this.note(session);
      return null;
    } catch (error) {
      return `its name and labels could not be kept: ${failureText(error)}`;
    }
  }

  private hooked() {
    const { adapter, home, note, cwd, env } = this.wanted;
    return { agent: adapter.agent, home, hooks: note.hooks, cwd, env };
  }

  private note(session: string | null): void {
    const { adapter, home, env, note, order } = this.wanted;
    // Also in a note that is written again when the agent has told its session: what it wrote before that is its own.
    const at = new Date(this.place.at).toISOString();
    const prompt = order.prompt.slice(0, promptKept);
    const { agent } = adapter;
    writeNote(env, { ...note, id: this.id, agent, home, session, at, permission: order.permission, prompt });
  }

  private order(): Order {
    const { order } = this.wanted;
    return order.kind === "continue" ? order : { ...order, session: this.session };
  }

  private preparing(): Preparing {
    const file = launchFiles(this.wanted.env, this.id).prepared;
    return { session: this.session, order: this.order(), place: this.place, file };
  }

  private spawn(): SpawnedHolder {
    const { adapter, cwd, home, env, order, note, maxTimeMs, tied } = this.wanted;
    const { invocation } = adapter;
    const permitted = order.permission === null ? null : invocation.permissions[order.permission];
    const files = launchFiles(env, this.id);
    for (const folder of ["logs", "support"]) checkOwn(env, folder);
    mkdirSync(join(agentctlHome(env), "logs"), { recursive: true, mode: 0o700 });
    const opened: number[] = [];
    const open = (fd: number): number => {
      opened.push(fd);
      return fd;
    };
    try {
      return startHolder({
        launch: this.id,
        given: this.session === null ? null : `${adapter.agent}:${this.session}`,
        exitFile: files.exit,
        limitMs: maxTimeMs,
        tied,
        hasExitHook: note.hooks.exit !== null,
        ...wholeEnvironment(
          prepared(this.preparing(), this.wanted),
          { ...callerEnvironment(env, adapter, home), ...homeVariable(env), PWD: cwd },
          files.environment,
        ),
        agentOnly: { ...invocation.environment, ...permitted?.environment?.(env, this.place) },
        cwd,
        files: {
          stdin: invocation.promptBy === "stdin" ? open(promptFile(env, this.id, order.prompt)) : null,
          stdout: open(openSync(files.out, "wx", 0o600)),
          stderr: open(openSync(files.err, "wx", 0o600)),
        },
      });
    } finally {
      for (const fd of opened) closeSync(fd);
    }
  }
}

/**
 * A shell drops variables whose names it could not use itself (exported functions, npm's settings). Where there are such,
 * agentctl stands between the holder and the agent for a moment and puts them back; they wait in a file of their owner's.
 */
function wholeEnvironment(command: string[], env: Record<string, string>, file: string): Pick<Held, "command" | "env"> {
  const odd = Object.entries(env).filter(([name]) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name));
  if (odd.length === 0) return { command, env };
  writeFileAtomically(file, JSON.stringify(Object.fromEntries(odd)), "soon");
  return { command: [...selfCommand(), "exec-agent", file, ...command], env };
}

const mostLeft = 20;

export const leftoverLines = (stopped: readonly Stopped[]): string[] =>
  stopped.flatMap(({ session, failure, leftovers, survivors }) => [
    ...(failure === null ? [] : [`not ended: ${failure.message}`]),
    ...(session?.status.state === "unknown" ? [`whether it was ended cannot be told: ${session.status.why}`] : []),
    ...someLines(
      survivors.map(({ row, why }) => `still there: pid ${row.identity.pid} ${row.name}: ${why}`),
      mostLeft,
    ),
    ...someLines(
      leftovers.map(({ row, why }) => `left: pid ${row.identity.pid} ${row.name}: ${why}`),
      mostLeft,
    ),
  ]);

const withLines = (error: AgentctlError, lines: readonly string[]): AgentctlError =>
  new AgentctlError(error.code, [error.message, ...lines.map((line) => `  ${line}`)].join("\n"), {
    ...(error.hint === null ? {} : { hint: error.hint }),
    cause: error,
  });

const promptKept = 4_000;
const holderPatienceMs = 2_000;

/** Readable by its owner, gone from the folder as soon as it is open: the agent reads it to its end, nobody else can. */
function promptFile(env: Environment, launch: string, prompt: string): number {
  const path = join(agentctlHome(env), "logs", `${launch}.prompt`);
  const writing = openSync(path, "wx", 0o600);
  try {
    writeWhole(writing, prompt);
    return openSync(path, "r");
  } finally {
    closeSync(writing);
    rmSync(path, { force: true });
  }
}

function startError(error: unknown, { env, command, cwd }: LaunchOrder): unknown {
  if (!(error instanceof Error) || error instanceof AgentctlError) return error;
  const code = "code" in error ? String(error.code) : "";
  if (code === "ENOSPC" || code === "EDQUOT")
    return new AgentctlError("failed", `no space left for ${agentctlHome(env)}: nothing was started`, { cause: error });
  if (code === "E2BIG")
    return new AgentctlError("failed", "the arguments and the environment are too long for this system", {
      cause: error,
    });
  if ("syscall" in error && String(error.syscall).startsWith("posix_spawn"))
    return new AgentctlError("failed", `cannot start ${command[0]} in ${cwd}: ${failureText(error)}`, { cause: error });
  return new AgentctlError("failed", `cannot write to ${agentctlHome(env)}: ${failureText(error)}`, {
    hint: "AGENTCTL_HOME names another folder",
    cause: error,
  });
}

function failedStart(sign: Exclude<Sign, { kind: "begun" }>, { adapter, startTimeoutMs }: LaunchOrder): AgentctlError {
  const said = sign.lastWords === "" ? "it said nothing" : sign.lastWords;
  if (sign.kind === "silent") {
    const message = `${adapter.title} has not begun a session within ${startTimeoutMs / 1000} s; it was ended\n${said}`;
    return new AgentctlError("timed-out", message, { hint: "--start-timeout gives it more time" });
  }
  const known = adapter.invocation.startFailures.find(({ sign: pattern }) => pattern.test(sign.lastWords));
  if (known !== undefined) return new AgentctlError("agent-missing", `${known.message}\n${said}`, { hint: known.hint });
  const status = sign.status === null ? "" : ` (exit status ${sign.status})`;
  return new AgentctlError("agent-missing", `${adapter.title} ended before it began a session${status}:\n${said}`);
}
