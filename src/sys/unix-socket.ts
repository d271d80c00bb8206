// Conversations over a socket: plain (one answer, then the other side hangs up) and WebSocket (text messages).

/** Rejects if nobody listens or the line breaks; never settles by itself if the other side stays silent (give it a deadline). */
export interface Conversation {
  send(text: string): Promise<void>;
  hear(): Promise<string>;
  close(): void;
}

/** No honest answer of an agent's server comes near it; a server that floods us is cut off. */
const mostHeardMb = 64;

/** Counts what one conversation hears; an error as soon as that is too much. */
export function hearingLimit(): (bytes: number) => Error | null {
  let heard = 0;
  return (bytes) => {
    heard += bytes;
    return heard > mostHeardMb * 1024 * 1024 ? new Error(`the server sent more than ${mostHeardMb} MB`) : null;
  };
}

/** `hear` gives everything that was said until the other side hung up. */
export function openPlainSocket(path: string): Conversation {
  const chunks: Uint8Array[] = [];
  const limit = hearingLimit();
  const ended = Promise.withResolvers<string>();
  let unsent = Buffer.alloc(0);
  // A write takes what fits; the rest goes when there is room again.
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

/** `hear` gives one text message. */
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
  // Bun's event carries the system's error (ECONNREFUSED: a socket that was left behind).
  socket.onerror = (event) =>
    fail("error" in event && event.error instanceof Error ? event.error : new Error("the connection failed"));
  socket.onclose = () => fail(new Error("the host hung up"));
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

/** Answers each line that is asked, whatever it is, and hangs up. */
export function answerSocket(path: string, answer: (asked: string) => string): { stop(): void } {
  const listener = Bun.listen<{ heard: Uint8Array[] }>({
    unix: path,
    socket: {
      open: (connection) => {
        connection.data = { heard: [] };
      },
      // Only once something was asked: a server that closes at once looks like a reset to Bun's client.
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
