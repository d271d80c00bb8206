// One question to a unix socket: connect, send, read until the other side closes.

/** Rejects if nobody listens; never settles by itself if the other side stays silent (give it a deadline). */
export function askSocket(path: string, question: string): { answer: Promise<string>; hangUp(): void } {
  let hangUp = (): void => {};
  const answer = new Promise<string>((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    const socket = Bun.connect({
      unix: path,
      socket: {
        open: (connection) => {
          hangUp = () => connection.terminate();
          if (question !== "") connection.write(question);
        },
        data: (_connection, chunk) => {
          chunks.push(Uint8Array.from(chunk));
        },
        close: () => resolve(Buffer.concat(chunks).toString("utf8")),
        error: (_connection, error) => reject(error),
        connectError: (_connection, error) => reject(error),
      },
    });
    socket.catch(reject);
  });
  return { answer, hangUp: () => hangUp() };
}

/** Answers whatever is asked with the same kind of text, and hangs up. */
export function answerSocket(path: string, answer: () => string): { stop(): void } {
  const listener = Bun.listen({
    unix: path,
    socket: {
      // Only once something was asked: a server that closes at once looks like a reset to Bun's client.
      data: (connection) => {
        connection.end(answer());
      },
    },
  });
  return { stop: () => listener.stop(true) };
}
