// Asks Codex's app-server over its control socket (WebSocket on a unix socket), as its own clients do.
import { connect } from "node:net";
import { join } from "node:path";

export interface Question {
  method: string;
  params: Record<string, unknown>;
}

/** The answers by method; an error answer is kept as it came. */
export async function askAppServer(codexHome: string, questions: Question[]): Promise<Record<string, unknown>> {
  const socket = connect(join(codexHome, "app-server-control", "app-server-control.sock"));
  const answers: Record<string, unknown> = {};
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(() => reject(new Error("the app-server did not answer within 10 s")), 10_000);
  const client = { clientInfo: { name: "agentctl-test", title: "agentctl test", version: "0.0.0" } };
  const all: Question[] = [{ method: "initialize", params: client }, ...questions];
  let buffer = Buffer.alloc(0);
  let upgraded = false;

  const ask = (index: number): void => {
    const question = all[index];
    if (question === undefined) resolve();
    else socket.write(frame(JSON.stringify({ id: index, ...question })));
  };
  const receive = (text: string): void => {
    const message: unknown = JSON.parse(text);
    if (typeof message !== "object" || message === null || !("id" in message)) return;
    const index = Number(message.id);
    answers[all[index]?.method ?? ""] = "result" in message ? message.result : message;
    if (index === 0) socket.write(frame(JSON.stringify({ method: "initialized" })));
    ask(index + 1);
  };

  socket.on("error", reject);
  socket.on("connect", () => {
    socket.write(
      "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    );
  });
  socket.on("data", (bytes: Buffer) => {
    buffer = Buffer.concat([buffer, bytes]);
    if (!upgraded) {
      const end = buffer.indexOf("\r\n\r\n");
      if (end < 0) return;
      buffer = buffer.subarray(end + 4);
      upgraded = true;
      ask(0);
    }
    for (let next = unframe(buffer); next !== null; next = unframe(buffer)) {
      buffer = buffer.subarray(next.length);
      if (next.opcode === 1) receive(next.text);
    }
  });
  try {
    await promise;
    return answers;
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}

/** One masked text frame; a zero mask keeps the payload as it is. */
function frame(text: string): Buffer {
  const payload = Buffer.from(text);
  const head =
    payload.length < 126
      ? Buffer.from([0x81, 0x80 | payload.length])
      : Buffer.from([0x81, 0x80 | 126, payload.length >> 8, payload.length & 255]);
  return Buffer.concat([head, Buffer.alloc(4), payload]);
}

function unframe(bytes: Buffer): { opcode: number; text: string; length: number } | null {
  if (bytes.length < 2) return null;
  const short = bytes.readUInt8(1) & 127;
  const head = short === 126 ? 4 : short === 127 ? 10 : 2;
  if (bytes.length < head) return null;
  const size = short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short;
  if (bytes.length < head + size) return null;
  return {
    opcode: bytes.readUInt8(0) & 15,
    text: bytes.subarray(head, head + size).toString("utf8"),
    length: head + size,
  };
}
