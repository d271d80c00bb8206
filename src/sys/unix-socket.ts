// Conversations with a server: over a plain socket (one answer, then the server closes it) or a WebSocket (text messages).

/** Rejects if nothing listens or the connection breaks. If the server stays silent it never settles: use a deadline. */
export interface Conversation {
  send(text: string): Promise<void>;
  hear(): Promise<string>;
  close(): void;
}

/** Real answers are far smaller; a server that floods us is disconnected. */
const maxReceivedMb = 64;

/** Counts the received bytes of one conversation. Returns an error as soon as they exceed the limit. */
export function hearingLimit(): (bytes: number) => Error | null {
  let heard = 0;
  return (bytes) => {
    heard += bytes;
    return heard > maxReceivedMb * 1024 * 1024 ? new Error(`the server sent more than ${maxReceivedMb} MB`) : null;
  };
}

/** `hear` returns everything that the server sent until it closed the connection. */
export function openPlainSocket(path: string): Conversation {
  const chunks: Uint8Array[] = [];
  const limit = hearingLimit();
  const ended = Promise.withResolvers<string>();
  let unsent = Buffer.alloc(0);
  // A write sends only what fits; `drain` sends the rest.
  const flush = (connection: Bun.Socket): void => {
    unsent = unsent.subarray(Math.max(0, connection.write(unsent)));
  };
  const socket = Bun.connect({
    unix: path,
    socket: {
      drain: flush,
      data: (connection, chunk) => {
        const tooMuch = limit(chunk.byteLength);
        if (tooMuch === null) chunks.push(Uint8Array.from(chunk));
        else {
          ended.reject(tooMuch);
          connection.terminate();
        }
      },
      close: () => ended.resolve(Buffer.concat(chunks).toString("utf8")),
      error: (_connection, error) => ended.reject(error),
      connectError: (_connection, error) => ended.reject(error),
    },
  });
  socket.catch(ended.reject);
  ended.promise.catch(() => {});
  return {
    send: async (text) => {
      unsent = Buffer.concat([unsent, Buffer.from(text)]);
      flush(await socket);
    },
    hear: () => ended.promise,
    close: () => void socket.then((connection) => connection.terminate()).catch(() => {}),
  };
}

/** `hear` returns the next text message. */
export function openWebSocket(address: string): Conversation {
  const heard: string[] = [];
  const limit = hearingLimit();
  const opened = Promise.withResolvers<void>();
  let waiting: PromiseWithResolvers<string> | null = null;
  let broken: Error | null = null;
  const socket = new WebSocket(address.startsWith("/") ? `ws+unix://${address}:/` : address);
  const fail = (error: Error): void => {
    broken ??= error;
    opened.reject(broken);
    waiting?.reject(broken);
  };
  opened.promise.catch(() => {});
  socket.onopen = () => opened.resolve();
  // Bun's event carries the system's error (ECONNREFUSED: the server of this socket file is dead).
  socket.onerror = (event) =>
    fail("error" in event && event.error instanceof Error ? event.error : new Error("the connection failed"));
  socket.onclose = () => fail(new Error("the server closed the connection"));
  socket.onmessage = ({ data }) => {
    const text = String(data);
    const tooMuch = limit(text.length);
    if (tooMuch !== null) {
      heard.length = 0;
      fail(tooMuch);
      socket.close();
      return;
    }
    if (waiting === null) heard.push(text);
    else waiting.resolve(text);
    waiting = null;
  };
  return {
    send: async (text) => {
      await opened.promise;
      socket.send(text);
    },
    hear: async () => {
      const [next] = heard.splice(0, 1);
      if (next !== undefined) return next;
      if (broken !== null) throw broken;
      waiting = Promise.withResolvers<string>();
      return await waiting.promise;
    },
    close: () => socket.close(),
  };
}

/** Answers the first line of each connection, then closes the connection. */
export function answerSocket(path: string, answer: (asked: string) => string): { stop(): void } {
  const listener = Bun.listen<{ heard: Uint8Array[] }>({
    unix: path,
    socket: {
      open: (connection) => {
        connection.data = { heard: [] };
      },
      // Answers only after a request: Bun's client takes an immediate close for a reset.
      data: (connection, chunk) => {
        const { heard } = connection.data;
        heard.push(Uint8Array.from(chunk));
        if (!chunk.includes(10)) return;
        const [asked = ""] = Buffer.concat(heard).toString("utf8").split("\n");
        connection.end(answer(asked));
      },
    },
  });
  return { stop: () => listener.stop(true) };
}
