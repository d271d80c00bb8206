// On which TCP ports of this machine a process listens, by the kernel's own tables. Linux only.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { errorCode, isGone } from "./failure.ts";

const listening = "0A";

/** 127.0.0.1, or every address of the machine: what is reached at 127.0.0.1. */
const isLoopback = /^(0100007F|00000000|0{32}|0{16}FFFF00000100007F|0{16}0000FFFF0100007F):/;

/** Where nothing but this process answers at 127.0.0.1. None where it cannot be told: then no server is found there to ask. */
export function portsOf(pid: number): number[] {
  // Behind another network namespace the same number is somebody else's.
  const [here, there] = ["self", pid].map((each) => textsOf(() => [readlinkSync(`/proc/${each}/ns/net`)])[0]);
  if (here !== there) return [];
  const sockets = socketsOf(pid);
  if (sockets.size === 0) return [];
  const all = ["tcp", "tcp6"].flatMap((table) => listenersIn(`/proc/${pid}/net/${table}`));
  // Beside a listener at :: alone, another process may listen at 127.0.0.1 under the same number, and would be the one that is reached.
  const others = new Set(all.flatMap(({ port, inode }) => (sockets.has(inode) ? [] : [port])));
  const own = all.flatMap(({ port, inode }) => (sockets.has(inode) && !others.has(port) ? [port] : []));
  return [...new Set(own)].sort((a, b) => a - b);
}

function socketsOf(pid: number): Set<string> {
  const sockets = new Set<string>();
  for (const fd of textsOf(() => readdirSync(`/proc/${pid}/fd`))) {
    const [target = ""] = textsOf(() => [readlinkSync(`/proc/${pid}/fd/${fd}`)]);
    const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1];
    if (inode !== undefined) sockets.add(inode);
  }
  return sockets;
}

/** Local address, remote address, state, …, inode; the port is the hexadecimal end of the address. */
function listenersIn(path: string): { port: number; inode: string }[] {
  const rows = textsOf(() => readFileSync(path, "latin1").split("\n").slice(1));
  return rows.flatMap((row) => {
    const fields = row.trim().split(/\s+/);
    const [, local = "", , state] = fields;
    if (state !== listening || !isLoopback.test(local)) return [];
    return [{ port: Number.parseInt(local.slice(local.lastIndexOf(":") + 1), 16), inode: fields[9] ?? "" }];
  });
}

function textsOf(reader: () => string[]): string[] {
  try {
    return reader();
  } catch (error) {
    if (!isGone(error) && errorCode(error) === "") throw error;
    return [];
  }
}
