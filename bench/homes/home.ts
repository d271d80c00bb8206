// Makes a home with the given number of sessions at rest, or reuses the home of an earlier run.
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { codexFormat } from "../../test/truth/format-codex.ts";
import { opencodeFormat } from "../../test/truth/format-opencode.ts";
import { Dice, seedOf } from "../../test/truth/random.ts";
import { claudeLines, type TokenSum } from "./claude.ts";
import { codexLines } from "./codex.ts";
import type { Conversation } from "./conversation.ts";
import { createTables, openDatabase, putSession } from "./opencode.ts";
import { Prose } from "./prose.ts";
import { ageMs, isRecent, recordBytes } from "./sizes.ts";

export type Agent = "claude-code" | "codex" | "opencode";

export interface HomeWish {
  name: string;
  /** The agents of the sessions, in turn. */
  agents: readonly Agent[];
  atRest: number;
  /** Old records, which no measured command reads, are smaller by this factor. */
  shrunk: number;
  /** One more, of Claude Code, as large as this. */
  large?: number;
}

export interface AtRest {
  agent: Agent;
  id: string;
  outcome: string;
  endedAt: number;
  bytes: number;
}

export interface Home {
  madeAt: number;
  made: string;
  sessions: AtRest[];
  large: { id: string; path: string; bytes: number; tokens: TokenSum } | null;
}

const seed = 20261116;
/** After this time the recent sessions would be older than a week. */
const goodForMs = 20 * 3_600_000;

export const userHome = (folder: string): string => join(folder, "user");
export const databasePath = (folder: string): string => join(userHome(folder), ".local/share/opencode/opencode.db");

export function makeHome(folder: string, wish: HomeWish): Home {
  const made = `${Bun.hash([JSON.stringify(wish), ...sources()].join("\n"))}`;
  const note = join(folder, "home.json");
  const before: Home | null = existsSync(note) ? JSON.parse(readFileSync(note, "utf8")) : null;
  if (before !== null && before.made === made && before.madeAt > Date.now() - goodForMs) return before;
  rmSync(folder, { recursive: true, force: true });
  const home: Home = { madeAt: Date.now(), made, sessions: [], large: null };
  fill(folder, wish, home);
  writeFileSync(note, JSON.stringify(home));
  return home;
}

const sources = (): string[] =>
  readdirSync(import.meta.dir)
    .sort()
    .map((name) => readFileSync(join(import.meta.dir, name), "utf8"));

function fill(folder: string, wish: HomeWish, home: Home): void {
  const dice = new Dice(seedOf(seed, wish.atRest));
  const prose = new Prose(dice);
  const user = userHome(folder);
  mkdirSync(dirname(databasePath(folder)), { recursive: true });
  const database = wish.agents.includes("opencode") ? openDatabase(databasePath(folder)) : null;
  if (database !== null) createTables(database);
  database?.run("BEGIN");
  for (let index = 0; index < wish.atRest; index += 1) {
    // Shifted by one every ten sessions: otherwise all recent sessions would have the same agent.
    const agent = wish.agents[Math.floor(index / 10 + index) % wish.agents.length] ?? "claude-code";
    const talk = conversation(dice, prose, home.madeAt - ageMs(dice, index), isRecent(index) ? 1 : wish.shrunk);
    if (agent === "opencode" && database !== null) {
      talk.id = opencodeFormat.newId(dice);
      putSession(database, { ...talk, bytes: Math.min(talk.bytes, mostRows) }, prose);
    } else if (agent === "codex") {
      talk.id = codexFormat.newId(dice);
      writeRecord(codexPath(user, talk), codexLines(talk, prose), talk.endedAt);
    } else writeClaude(user, talk, prose, dice);
    home.sessions.push(atRest(agent, talk));
  }
  database?.run("COMMIT");
  database?.run("PRAGMA wal_checkpoint(TRUNCATE)");
  database?.close();
  if (wish.agents.includes("claude-code")) writeHistory(user, home);
  if (wish.large !== undefined) addLarge(user, wish.large, home, prose, dice);
}

const atRest = (agent: Agent, { id, ending, endedAt, bytes }: Conversation): AtRest => ({
  ...{ agent, id, endedAt },
  ...{ outcome: ending, bytes: Math.round(bytes) },
});

/** Sessions of 50 MB are not realistic in a database. */
const mostRows = 4 * 1024 * 1024;

export function conversation(dice: Dice, prose: Prose, endedAt: number, shrunk: number): Conversation {
  const at = dice.next();
  const ending = at < 0.8 ? "completed" : at < 0.9 ? "interrupted" : at < 0.95 ? "failed" : "cut-off";
  const cwd = `/home/user/code/project-${dice.below(60)}`;
  // One line, without characters that JSON escapes.
  const prompt = `Look at ${prose.text(40).replace(/\\./g, " ").trim()}`;
  return { id: dice.uuid(), cwd, prompt, bytes: recordBytes(dice, shrunk), endedAt: Math.floor(endedAt), ending };
}

export const claudePath = (user: string, { cwd, id }: Conversation): string =>
  join(user, ".claude/projects", cwd.replace(/[^A-Za-z0-9]/g, "-"), `${id}.jsonl`);

export function codexPath(user: string, { id, endedAt }: Conversation): string {
  const [day = "", time = ""] = new Date(endedAt).toISOString().slice(0, 19).split("T");
  return join(user, ".codex/sessions", ...day.split("-"), `rollout-${day}T${time.replaceAll(":", "-")}-${id}.jsonl`);
}

/** One in ten has a subagent with its own record. */
function writeClaude(user: string, talk: Conversation, prose: Prose, dice: Dice): void {
  const path = claudePath(user, talk);
  writeRecord(path, claudeLines(talk, prose), talk.endedAt);
  if (!dice.chance(0.1)) return;
  const inner = join(path.replace(/\.jsonl$/, ""), "subagents", `agent-${dice.uuid().slice(0, 8)}.jsonl`);
  writeRecord(inner, claudeLines({ ...talk, bytes: 20_000, ending: "completed" }, prose), talk.endedAt);
}

const pieceBytes = 1 << 20;

export function writeRecord(path: string, lines: Iterable<string>, writtenAt: number): void {
  mkdirSync(dirname(path), { recursive: true });
  const file = openSync(path, "w");
  let text = "";
  for (const line of lines) {
    text += line;
    if (text.length < pieceBytes) continue;
    writeSync(file, text);
    text = "";
  }
  writeSync(file, text);
  closeSync(file);
  utimesSync(path, writtenAt / 1000, writtenAt / 1000);
}

/** The history of typed prompts: three per session. */
function writeHistory(user: string, { sessions, madeAt }: Home): void {
  const lines = sessions
    .filter(({ agent }) => agent === "claude-code")
    .flatMap(({ id, endedAt }) =>
      ["look at it", "go on", "/exit"].map((display) =>
        JSON.stringify({
          display,
          pastedContents: {},
          timestamp: endedAt,
          project: "/home/user/code/project-1",
          sessionId: id,
        }),
      ),
    );
  writeRecord(join(user, ".claude/history.jsonl"), [`${lines.join("\n")}\n`], madeAt);
}

function addLarge(user: string, bytes: number, home: Home, prose: Prose, dice: Dice): void {
  const tokens = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  const talk: Conversation = { ...conversation(dice, prose, home.madeAt - 3_600_000, 1), bytes, ending: "completed" };
  const path = claudePath(user, talk);
  writeRecord(path, claudeLines(talk, prose, tokens), talk.endedAt);
  home.sessions.push(atRest("claude-code", talk));
  home.large = { id: talk.id, path, bytes: Bun.file(path).size, tokens };
}
