// Requests to a server on this host, each on a new connection.
import { expect, test } from "bun:test";
import { createServer } from "node:net";
import { openHttp } from "../../src/sys/http.ts";

test("a second request succeeds if the server closed the connection without notice", async () => {
  // As OpenCode 1.18.33 does. Bun 1.4.4 would keep such a connection for the next question, and find it closed.
  const server = createServer((socket) => {
    socket.once("data", (bytes) => {
      const body = bytes.toString("utf8").split("\r\n")[0] ?? "";
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
      // The next question would come on this connection.
      socket.once("data", () => socket.destroy());
    });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const line = openHttp(`http://127.0.0.1:${port}`, null);
  const paths = ["/one", "/two", "/three", "/four"];
  try {
    const heard: unknown[] = [];
    for (const path of paths) {
      await line.send(JSON.stringify({ method: "GET", path }));
      heard.push(JSON.parse(await line.hear()));
    }
    expect(heard).toEqual(paths.map((path) => ({ status: 200, body: `GET ${path} HTTP/1.1` })));
  } finally {
    line.close();
    server.close();
  }
});
