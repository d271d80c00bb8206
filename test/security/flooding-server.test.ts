// A server that never stops sending must not fill our memory before the deadline.
import { expect, test } from "bun:test";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openHttp } from "../../src/sys/http.ts";
import { type Conversation, openPlainSocket, openWebSocket } from "../../src/sys/unix-socket.ts";

const refusal = "sent more than 64 MB";
const chunk = Buffer.alloc(1024 * 1024, "x");

/** Writes as fast as the other side reads, until that side hangs up. */
function flood(socket: Socket): void {
  const pour = (): void => {
    while (!socket.destroyed && socket.write(chunk));
  };
  socket.on("drain", pour);
  pour();
}

async function listen(path: string | null, greet: (socket: Socket) => void) {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => {
      greet(socket);
      flood(socket);
    });
  });
  await new Promise<void>((ready) =>
    path === null ? server.listen(0, "127.0.0.1", ready) : server.listen(path, ready),
  );
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    [Symbol.dispose]: () => void server.close(),
  };
}

async function heard(line: Conversation, question: string): Promise<string> {
  try {
    await line.send(question);
    return await line.hear();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    line.close();
  }
}

test("an HTTP response has a size limit", async () => {
  using server = await listen(null, (socket) => socket.write("HTTP/1.1 200 OK\r\n\r\n"));
  const line = openHttp(`http://127.0.0.1:${server.port}`, null);
  expect(await heard(line, JSON.stringify({ method: "GET", path: "/" }))).toContain(refusal);
});

test("a response over a plain socket has a size limit", async () => {
  const path = join(tmpdir(), `agentctl-flood-${crypto.randomUUID()}.sock`);
  using _server = await listen(path, () => {});
  expect(await heard(openPlainSocket(path), "status\n")).toContain(refusal);
});

test("the messages of one WebSocket have a size limit together", async () => {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request, self) => (self.upgrade(request, { data: undefined }) ? undefined : new Response("no")),
    websocket: {
      message: async (socket) => {
        for (let sent = 0; sent < 100 && socket.readyState === 1; sent += 1) {
          socket.send(chunk.toString("utf8"));
          await Bun.sleep(1);
        }
      },
    },
  });
  const line = openWebSocket(`ws://127.0.0.1:${server.port}`);
  await line.send("go on");
  let last = "";
  while (!last.includes(refusal))
    last = await line.hear().catch((error: unknown) => `${error instanceof Error ? error.message : ""} [${refusal}]`);
  line.close();
  await server.stop(true);
  expect(last).toStartWith("the server sent more than 64 MB");
});
