// `demo-agent queue`: hands a message to the host that has the session.
import { existsSync, readdirSync } from "node:fs";
import { createConnection } from "node:net";
import { join } from "node:path";
import { fail, readArguments } from "./arguments.ts";

export async function queue(home: string, args: readonly string[]): Promise<number> {
  const { options } = readArguments(args, { flags: [], values: ["--session", "--message"] });
  const session = options.get("--session") ?? fail("queue needs --session ID", 2);
  const message = options.get("--message") ?? fail("queue needs --message TEXT", 2);
  let silent = 0;
  for (const socket of socketsIn(join(home, "hosts"))) {
    // Asked first: a message left with a host that sleeps would be taken when it wakes, after we said that nobody has it.
    const sessions = await ask(socket, "?");
    if (sessions === "") silent += 1;
    if (!sessions || !hasSession(sessions, session)) continue;
    if ((await ask(socket, `message ${session} ${JSON.stringify(message)}`)) === "taken") return 0;
  }
  return fail(`${silent === 0 ? "no host" : "no host that answers"} has session ${session}`, 1);
}

const socketsIn = (folder: string): string[] =>
  existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => name.endsWith(".sock"))
        .map((name) => join(folder, name))
    : [];

function hasSession(answer: string, session: string): boolean {
  const { sessions } = JSON.parse(answer) as { sessions: { id: string }[] };
  return sessions.some(({ id }) => id === session);
}

const patienceMs = 2_000;

/** Empty: it does not answer. null: nobody can be reached there, its host has gone. */
function ask(path: string, question: string): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>();
  const chunks: Buffer[] = [];
  const socket = createConnection(path);
  socket.setTimeout(patienceMs, () => socket.destroy());
  socket.on("connect", () => socket.write(`${question}\n`));
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  socket.on("error", () => resolve(null));
  socket.on("close", () => resolve(Buffer.concat(chunks).toString("utf8")));
  return promise;
}
