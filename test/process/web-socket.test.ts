// WebSocket connections to this host never use a proxy, and end when the other side closes.
import { expect, test } from "bun:test";
import { openWebSocket } from "../../src/sys/unix-socket.ts";

function startEcho() {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request, self) =>
      self.upgrade(request, { data: undefined }) ? undefined : new Response("no", { status: 400 }),
    websocket: {
      open: (socket) => void socket.send("who are you?"),
      message: (socket, text) => (text === "bye" ? socket.close() : void socket.send(`heard ${text}`)),
    },
  });
  return { address: `ws://127.0.0.1:${server.port}`, stop: () => server.stop(true) };
}

test("messages keep their order, and a closed connection is noticed", async () => {
  const { address, stop } = startEcho();
  const line = openWebSocket(address);
  expect(await line.hear()).toBe("who are you?");
  await line.send("me");
  expect(await line.hear()).toBe("heard me");
  await line.send("bye");
  await expect(line.hear()).rejects.toThrow("the server closed the connection");
  line.close();
  await stop();
});

test("a proxy in the environment is not used", async () => {
  const { address, stop } = startEcho();
  let asked = 0;
  const proxy = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open: () => {
        asked += 1;
      },
      data: () => {},
    },
  });
  const url = `http://127.0.0.1:${proxy.port}`;
  const script = `
    const { openWebSocket } = await import(${JSON.stringify(`${import.meta.dir}/../../src/sys/unix-socket.ts`)});
    const line = openWebSocket(${JSON.stringify(address)});
    console.log(await line.hear());
    process.exit(0);`;
  const names = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "ws_proxy"];
  const env = { PATH: process.env["PATH"] ?? "", ...Object.fromEntries(names.map((name) => [name, url])) };
  const child = Bun.spawn([process.execPath, "-e", script], { env, stdout: "pipe", stderr: "inherit" });
  expect((await child.stdout.text()).trim()).toBe("who are you?");
  expect(asked).toBe(0);
  proxy.stop(true);
  await stop();
});

test("a socket without a listener is an error", async () => {
  const { address, stop } = startEcho();
  await stop();
  const line = openWebSocket(address);
  await expect(line.hear()).rejects.toMatchObject({ code: "ECONNREFUSED" });
});
