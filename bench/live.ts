// Live sessions: sleeping processes with the names, arguments, open files and locks of real agents, and with fresh records and
// announcements.
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { writeAnnouncement } from "../test/truth/announcement.ts";
import { claudeFormat } from "../test/truth/format-claude.ts";
import { codexFormat } from "../test/truth/format-codex.ts";
import { opencodeFormat } from "../test/truth/format-opencode.ts";
import { pidNamespace, readProcStat } from "../test/truth/proc.ts";
import { Dice } from "../test/truth/random.ts";
import { claudeLines } from "./homes/claude.ts";
import { codexLines } from "./homes/codex.ts";
import { type Conversation, lastTurnMs } from "./homes/conversation.ts";
import { type Agent, claudePath, codexPath, conversation, databasePath, userHome, writeRecord } from "./homes/home.ts";
import { forgetSession, openDatabase, putSession } from "./homes/opencode.ts";
import { Prose } from "./homes/prose.ts";

export interface Live {
  agent: Agent;
  id: string;
  activity: "working" | "idle" | "waiting";
  bytes: number;
}

interface Actor extends Live {
  talk: Conversation;
  argv: string[];
  pid: number;
}

const seed = 7;
const largest = 2 * 1024 * 1024;

export async function startLive(
  sleeper: string,
  folder: string,
  agents: readonly Agent[],
  count: number,
): Promise<Live[]> {
  forgetEarlier(folder);
  linkPrograms(sleeper, folder);
  const dice = new Dice(seed);
  const prose = new Prose(dice);
  const actors: Actor[] = [];
  for (let index = 0; index < count; index += 1) {
    const actor = cast(agents[index % agents.length] ?? "claude-code", index, folder, prose);
    actor.pid = await start(actor, folder);
    actors.push(actor);
  }
  // Their records must be younger than their processes.
  await Bun.sleep(3 * lastTurnMs);
  const records = actors.flatMap((actor) => write(actor, folder, prose));
  writeFileSync(notePath(folder), JSON.stringify(records));
  holdDatabase(actors, folder, prose);
  return actors.map(({ agent, id, activity, bytes }) => ({ agent, id, activity, bytes }));
}

export async function startCrowd(sleeper: string, size: number): Promise<void> {
  await spawn([sleeper], "init", "/", { BENCH_CROWD: String(size) });
}

const notePath = (folder: string): string => join(folder, "live.json");

/** Removes the records of the last run. Ids are the same in every run, but the folder of a Codex record depends on the day. */
function forgetEarlier(folder: string): void {
  const note = notePath(folder);
  const records: string[] = existsSync(note) ? JSON.parse(readFileSync(note, "utf8")) : [];
  for (const path of records) rmSync(path, { force: true });
  for (const name of [".claude/sessions", ".codex/thread-writer-locks"])
    rmSync(join(userHome(folder), name), { recursive: true, force: true });
}

const endings = { working: "working", idle: "completed", waiting: "asking" } as const;

function cast(agent: Agent, index: number, folder: string, prose: Prose): Actor {
  const { dice } = prose;
  const activities = {
    "claude-code": ["working", "idle", "waiting"],
    codex: ["working", "idle"],
    opencode: ["working", "idle"],
  } as const;
  const activity = activities[agent][index % activities[agent].length] ?? "working";
  // Each session has its own repository, so that there are no conflicts.
  const cwd = join(folder, "work", `live-${index}`);
  mkdirSync(join(cwd, ".git"), { recursive: true });
  const newId = { "claude-code": claudeFormat.newId, codex: codexFormat.newId, opencode: opencodeFormat.newId }[agent];
  const id = newId(dice);
  const drawn = conversation(dice, prose, 0, 1);
  const talk = { ...drawn, id, cwd, ending: endings[activity], bytes: Math.min(drawn.bytes, largest) };
  return { agent, id, activity, bytes: talk.bytes, talk, argv: argvOf(agent, activity, id), pid: 0 };
}

function argvOf(agent: Agent, activity: Live["activity"], id: string): string[] {
  if (agent === "claude-code") return [];
  if (agent === "codex") return activity === "working" ? ["exec", "--json", "go on"] : [];
  return activity === "working" ? ["run", "--session", id, "--format", "json", "go on"] : ["--session", id];
}

const commandOf = { "claude-code": "claude", codex: "codex", opencode: "opencode" } as const;

function linkPrograms(sleeper: string, folder: string): void {
  const programs = join(folder, "programs");
  rmSync(programs, { recursive: true, force: true });
  mkdirSync(programs);
  for (const command of Object.values(commandOf)) linkSync(sleeper, join(programs, command));
}

async function start({ agent, id, argv, talk }: Actor, folder: string): Promise<number> {
  const command = commandOf[agent];
  const home = join(userHome(folder), ".codex");
  const lock = agent === "codex" ? join(home, codexFormat.lock?.path(id, 0) ?? "") : null;
  if (lock !== null) mkdirSync(join(lock, ".."), { recursive: true });
  const env = {
    ...terminalEnvironment,
    HOME: userHome(folder),
    PWD: talk.cwd,
    ...(lock === null ? {} : { BENCH_LOCK: lock }),
  };
  return await spawn([join(folder, "programs", command), ...argv], command, talk.cwd, env);
}

/** An environment of the usual size. */
const terminalEnvironment: Record<string, string> = {
  PATH: "/usr/local/bin:/usr/bin:/bin:/home/user/.local/bin:/home/user/.cargo/bin:/home/user/go/bin",
  SHELL: "/bin/bash",
  TERM: "xterm-256color",
  LANG: "en_US.UTF-8",
  LS_COLORS: "*.tar=01;31:*.tgz=01;31:*.jpg=01;35:".repeat(40),
  XDG_SESSION_ID: "3",
  SSH_AUTH_SOCK: "/run/user/1000/keyring/ssh",
  DBUS_SESSION_BUS_ADDRESS: "unix:path=/run/user/1000/bus",
};

async function spawn(command: string[], argv0: string, cwd: string, env: Record<string, string>): Promise<number> {
  const child = Bun.spawn(command, { argv0, cwd, env, stdin: "ignore", stdout: "pipe", stderr: "inherit" });
  const { value } = await child.stdout.getReader().read();
  if (value === undefined) throw new Error(`bench: ${command.join(" ")} did not get ready`);
  child.unref();
  return child.pid;
}

/** Writes the record and the announcement. Returns the paths of records. */
function write({ agent, activity, talk, argv, pid }: Actor, folder: string, prose: Prose): string[] {
  const user = userHome(folder);
  talk.endedAt = Date.now();
  if (agent === "opencode") return [];
  if (agent === "codex") {
    const path = codexPath(user, talk);
    writeRecord(path, codexLines(talk, prose), talk.endedAt);
    return [path];
  }
  const path = claudePath(user, talk);
  writeRecord(path, claudeLines(talk, prose), talk.endedAt);
  const status = { working: "busy", idle: "idle", waiting: "waiting" }[activity];
  const start = readProcStat(pid)?.start ?? null;
  const waitingFor = activity === "waiting" ? "permission prompt" : null;
  const announcement = { pid, start, boot: null, namespace: pidNamespace, session: talk.id, status, waitingFor };
  if (claudeFormat.announcements !== null)
    writeAnnouncement(join(user, ".claude/sessions"), claudeFormat.announcements, announcement, {
      cwd: talk.cwd,
      argv,
      bornMs: talk.endedAt,
    });
  return [path];
}

/** Keeps OpenCode's database open until we exit, as its processes do, with the newest rows still in the log. */
function holdDatabase(actors: readonly Actor[], folder: string, prose: Prose): void {
  if (!existsSync(databasePath(folder))) return;
  const database = openDatabase(databasePath(folder));
  for (const { agent, talk } of actors) {
    if (agent !== "opencode") continue;
    forgetSession(database, talk.id);
    database.transaction(() => putSession(database, { ...talk, bytes: Math.min(talk.bytes, largest) }, prose))();
  }
  heldOpen.push(database);
}

const heldOpen: unknown[] = [];
