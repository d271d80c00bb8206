// Writes OpenCode sessions as rows of a database with the tables of a captured one (1.18.33).
import { Database } from "bun:sqlite";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Clock, type Conversation, nextTurn, outputBytes } from "./conversation.ts";
import type { Prose } from "./prose.ts";

const captured = join(import.meta.dir, "../../test/fixtures/opencode/headless-completed/home/opencode.db");
const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Uses a write-ahead log, as OpenCode does. */
export function openDatabase(path: string): Database {
  const database = new Database(path, { create: true });
  database.run("PRAGMA journal_mode = WAL");
  database.run("PRAGMA synchronous = OFF");
  return database;
}

export function createTables(database: Database): void {
  const folder = mkdtempSync(join(tmpdir(), "agentctl-bench-"));
  try {
    for (const part of ["", "-wal"]) copyFileSync(`${captured}${part}`, join(folder, `copy.db${part}`));
    const copy = new Database(join(folder, "copy.db"));
    const made = copy.query<{ sql: string }, []>("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").all();
    copy.close();
    for (const { sql } of made) database.run(sql);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  database.run(
    "INSERT INTO project (id, worktree, time_created, time_updated, sandboxes) VALUES ('global', '/', 0, 0, '[]')",
  );
}

export function forgetSession(database: Database, id: string): void {
  for (const table of ["part", "message"]) database.run(`DELETE FROM ${table} WHERE session_id = ?`, [id]);
  database.run("DELETE FROM session WHERE id = ?", [id]);
}

const answerBytes = 4_000;

/** Adds rows of `bytes` in total: prompts, answers, tool calls with their output. */
export function putSession(database: Database, talk: Conversation, prose: Prose): void {
  const { dice } = prose;
  const clock = new Clock(talk, 15_000);
  const begunAt = clock.nextMs();
  let counter = 0;
  let written = 0;
  const newId = (kind: string, at: number): string => {
    const hex = (BigInt(at) * 0x1000n + BigInt(counter++)).toString(16).slice(-12);
    return `${kind}_${hex}${Array.from({ length: 14 }, () => letters[dice.below(letters.length)]).join("")}`;
  };
  const message = database.prepare("INSERT INTO message VALUES (?, ?, ?, ?, ?)");
  const part = database.prepare("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)");
  const say = (at: number, data: string): string => {
    const id = newId("msg", at);
    written += data.length;
    message.run(id, talk.id, at, at, data);
    return id;
  };
  const add = (of: string, at: number, data: string): void => {
    written += data.length;
    part.run(newId("prt", at), of, talk.id, at, at, data);
  };
  database
    .prepare(
      "INSERT INTO session (id, project_id, slug, directory, title, version, cost, tokens_input, tokens_output, agent, model, time_created, time_updated) VALUES (?, 'global', 'calm-fox', ?, ?, '1.18.33', 0.12, ?, ?, 'build', ?, ?, ?)",
    )
    .run(
      talk.id,
      talk.cwd,
      talk.prompt,
      90_000,
      4_000,
      '{"id":"big-model","providerID":"some"}',
      begunAt,
      talk.endedAt,
    );

  for (let isLast = false; !isLast; ) {
    const next = nextTurn(dice, talk.bytes - written);
    const until = written + next.bytes;
    isLast = next.isLast;
    if (isLast) clock.hurry();
    const isFirst = written === 0;
    const asked = clock.nextMs();
    const prompt = say(
      asked,
      `{"role":"user","time":{"created":${asked}},"agent":"build","model":{"modelID":"big-model"}}`,
    );
    add(prompt, asked, `{"type":"text","text":"${isFirst ? talk.prompt : prose.text(60)}"}`);
    do toolCall(prompt, until - written);
    while (written < until - answerBytes);
    answer(prompt, isLast ? talk.ending : "completed");
  }

  function assistant(prompt: string, at: number, rest: string, completed: string): string {
    return say(
      at,
      `{"parentID":"${prompt}","role":"assistant","mode":"build","agent":"build","path":{"cwd":"${talk.cwd}","root":"${talk.cwd}"},"cost":0.01,"tokens":{"total":1290,"input":1034,"output":56,"reasoning":0,"cache":{"write":0,"read":200}},"modelID":"big-model","providerID":"some","time":{"created":${at}${completed}}${rest}}`,
    );
  }

  function toolCall(prompt: string, left: number): void {
    const at = clock.nextMs();
    const of = assistant(prompt, at, `,"finish":"tool-calls"`, `,"completed":${at}`);
    const output = prose.text(outputBytes(dice, left));
    add(of, at, `{"type":"step-start"}`);
    add(
      of,
      at,
      `{"type":"tool","tool":"bash","callID":"${dice.uuid()}","state":{"status":"completed","input":{"command":"ls"},"output":"${output}","metadata":{"output":"","exit":0},"time":{"start":${at},"end":${at}}}}`,
    );
    add(
      of,
      at,
      `{"type":"step-finish","reason":"tool-calls","tokens":{"total":1290,"input":1034,"output":56,"reasoning":0,"cache":{"write":0,"read":200}},"cost":0.01}`,
    );
  }

  function answer(prompt: string, ending: Conversation["ending"]): void {
    const at = clock.nextMs();
    const text = `{"type":"text","text":"${prose.text(400 + dice.below(2_000))}","time":{"start":${at},"end":${at}}}`;
    const done = `,"completed":${at}`;
    if (ending === "completed") add(assistant(prompt, at, `,"finish":"stop"`, done), at, text);
    else if (ending === "failed")
      assistant(prompt, at, `,"error":{"name":"APIError","data":{"message":"failed","statusCode":400}}`, done);
    else if (ending === "interrupted")
      assistant(prompt, at, `,"error":{"name":"MessageAbortedError","data":{"message":"Aborted"}}`, done);
    else add(assistant(prompt, at, "", ""), at, text);
  }
}
