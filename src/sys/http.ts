// HTTP requests to a server on this host; answers come in the order of the requests.
import { request } from "node:http";
import { type Conversation, hearingLimit } from "./unix-socket.ts";

interface Question {
  method: string;
  path: string;
  body?: unknown;
  user?: string;
}

/** `send` takes a request as JSON, `hear` returns the next answer as JSON: status and body. Ignores proxy settings. */
export function openHttp(base: string, secret: string | null): Conversation {
  const answers: Promise<string>[] = [];
  const aborter = new AbortController();
  return {
    send: async (text) => {
      const answer = ask(base, JSON.parse(text) as Question, secret, aborter.signal);
      answer.catch(() => {});
      answers.push(answer);
    },
    hear: async () => (await answers.shift()) ?? "",
    close: () => aborter.abort(),
  };
}

function ask(base: string, { method, path, body, user }: Question, secret: string | null, signal: AbortSignal) {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const text = body === undefined ? "" : JSON.stringify(body);
  const password = user !== undefined && secret !== null ? { auth: `${user}:${secret}` } : {};
  const headers = {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
    connection: "close",
  };
  // Without `agent: false` Bun 1.4.4 reuses a connection that the server has closed.
  const asking = request(`${base}${path}`, { method, headers, signal, agent: false, ...password }, (response) => {
    const chunks: Buffer[] = [];
    const limit = hearingLimit();
    response.on("data", (chunk: Buffer) => {
      const tooMuch = limit(chunk.byteLength);
      if (tooMuch === null) chunks.push(chunk);
      else {
        reject(tooMuch);
        asking.destroy();
      }
    });
    response.on("end", () =>
      resolve(JSON.stringify({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString("utf8") })),
    );
    response.on("error", reject);
  });
  asking.on("error", reject);
  asking.end(text);
  return promise;
}
