// The ports on which a process listens, from the kernel's tables, with real listeners.
import { expect, test } from "bun:test";
import { createServer, type Server } from "node:net";
import { portsOf } from "../../src/observe/ports.ts";

async function listen(address: string): Promise<{ server: Server; port: number }> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, address, resolve);
  });
  const bound = server.address();
  return { server, port: typeof bound === "object" && bound !== null ? bound.port : 0 };
}

test("each listening port is found once; ports of outgoing connections are not found", async () => {
  const before = portsOf(process.pid);
  const first = await listen("127.0.0.1");
  const second = await listen("0.0.0.0");
  const talk = Bun.connect({ hostname: "127.0.0.1", port: first.port, socket: { data: () => {} } });
  const connection = await talk;
  try {
    const now = portsOf(process.pid).filter((port) => !before.includes(port));
    expect(now).toEqual([first.port, second.port].sort((a, b) => a - b));
  } finally {
    connection.end();
    first.server.close();
    second.server.close();
  }
});

test.each([
  ["::", true],
  ["0.0.0.0", true],
  // agentctl asks 127.0.0.1, where another process may have the same port.
  ["::1", false],
  ["127.0.0.2", false],
])("a listener at %s is found", async (address, isReached) => {
  const { server, port } = await listen(address).catch(() => ({ server: null, port: 0 }));
  // A machine without IPv6 has nothing to show.
  if (server === null) return;
  expect(portsOf(process.pid).includes(port)).toBe(isReached);
  server.close();
});

test("ports of another process are not found", async () => {
  const { server, port } = await listen("127.0.0.1");
  const child = Bun.spawn(["sleep", "60"]);
  try {
    expect(portsOf(child.pid)).not.toContain(port);
    expect(portsOf(process.pid)).toContain(port);
  } finally {
    child.kill();
    await child.exited;
    server.close();
  }
  expect(portsOf(child.pid)).toEqual([]);
});

test("a port is not the process's own if another process answers there on 127.0.0.1", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen({ port: 0, server: "::", ipv6Only: true }, resolve));
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : 0;
  const program = `Bun.listen({ hostname: "127.0.0.1", port: ${port}, socket: { data() {} } }); console.log("ready")`;
  const other = Bun.spawn([process.execPath, "-e", program], { stdout: "pipe" });
  try {
    const { value } = await other.stdout.getReader().read();
    expect(new TextDecoder().decode(value)).toBe("ready\n");
    expect(portsOf(process.pid)).not.toContain(port);
  } finally {
    other.kill("SIGKILL");
    await other.exited;
  }
  expect(portsOf(process.pid)).toContain(port);
  server.close();
});
