// Which process listens on a unix socket, according to the kernel, and whether another user could replace the socket.
import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { listenerAt, unswappablePath } from "../../src/observe/own-socket.ts";
import { peerOf } from "../../src/sys/peer.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "agentctl-socket-")));
afterAll(() => rmSync(folder, { recursive: true }));
const ownUid = process.getuid?.() ?? -1;

/** Listens with room for one more, and never accepts. */
const idle =
  'use IO::Socket::UNIX; my $s = IO::Socket::UNIX->new(Local => $ARGV[0], Listen => 1) or die; print "ready\\n"; STDOUT->flush(); sleep 600';

async function idleListener(path: string): Promise<Bun.Subprocess<"ignore", "pipe", "inherit">> {
  const child = Bun.spawn(["perl", "-MIO::Handle", "-e", idle, path], { stdio: ["ignore", "pipe", "inherit"] });
  const { value } = await child.stdout.getReader().read();
  expect(new TextDecoder().decode(value)).toBe("ready\n");
  return child;
}

describe("the listener of a socket", () => {
  test("is the process that listens there, or none after that process has exited", async () => {
    const path = join(folder, "one");
    const child = await idleListener(path);
    expect(listenerAt(path)).toEqual({ kind: "listener", pid: child.pid, uid: ownUid });
    child.kill("SIGKILL");
    await child.exited;
    expect(listenerAt(path)).toEqual({ kind: "not-listening" });
    expect(listenerAt(join(folder, "none"))).toEqual({ kind: "not-listening" });
  });

  test("is busy if it accepts no more connections, and is not waited for", async () => {
    const path = join(folder, "full");
    const child = await idleListener(path);
    try {
      // What hangs up keeps its place until it is accepted.
      const heard = Array.from({ length: 8 }, () => peerOf(path).kind);
      expect(heard[0]).toBe("listener");
      expect(heard.at(-1)).toBe("busy");
    } finally {
      child.kill("SIGKILL");
    }
  });

  test("exists only for sockets", () => {
    const path = join(folder, "file");
    writeFileSync(path, "");
    expect(listenerAt(path)).toEqual({ kind: "foreign" });
    symlinkSync(path, join(folder, "link"));
    expect(listenerAt(join(folder, "link"))).toEqual({ kind: "foreign" });
    expect(peerOf(`/${"x".repeat(200)}`).kind).toBe("unknown");
  });
});

describe("a path", () => {
  const inside = join(folder, "a", "b");
  mkdirSync(inside, { recursive: true });

  test.each([
    [0o700, true],
    [0o755, true],
    [0o775, false],
    [0o757, false],
    [0o777, false],
    [0o1777, true],
  ])("below a folder of mode %o is safe from other users: %p", (mode, expected) => {
    chmodSync(join(folder, "a"), mode);
    expect(unswappablePath(join(inside, "sock"))).toBe(expected ? join(inside, "sock") : null);
    chmodSync(join(folder, "a"), 0o755);
  });

  test("is resolved through symbolic links", () => {
    symlinkSync(inside, join(folder, "shortcut"));
    expect(unswappablePath(join(folder, "shortcut", "sock"))).toBe(join(inside, "sock"));
    expect(unswappablePath("relative/sock")).toBeNull();
  });
});
