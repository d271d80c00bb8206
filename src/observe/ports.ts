// Lists the TCP ports on which a process listens, from the tables of the kernel. Linux only.
import { readFileSync, readlinkSync } from "node:fs";
import { tryOr } from "../lib/errors.ts";
import { openTargets } from "./open-files.ts";

const listening = "0A";

/** Addresses that a client reaches at 127.0.0.1: that one, and "every address of this host". */
const isLoopback = /^(0100007F|00000000|0{32}|0{16}FFFF00000100007F|0{16}0000FFFF0100007F):/;

/** The ports at 127.0.0.1 on which only this process answers. Empty if the tables cannot be read. */
export function portsOf(pid: number): number[] {
  // In another network namespace the same port belongs to another process.
  const [here, there] = ["self", pid].map((each) => tryOr(null, () => readlinkSync(`/proc/${each}/ns/net`)));
  if (here !== there) return [];
  const sockets = new Set(openTargets(pid).flatMap((target) => /^socket:\[(\d+)\]$/.exec(target)?.slice(1) ?? []));
  if (sockets.size === 0) return [];
  const all = ["tcp", "tcp6"].flatMap((table) => listenersIn(`/proc/${pid}/net/${table}`));
  // If this process listens at :: only, another one may listen on the same port at 127.0.0.1, and clients would reach that one.
  const others = new Set(all.flatMap(({ port, inode }) => (sockets.has(inode) ? [] : [port])));
  const own = all.flatMap(({ port, inode }) => (sockets.has(inode) && !others.has(port) ? [port] : []));
  return [...new Set(own)].sort((a, b) => a - b);
}

/** The fields of a row: local address, remote address, state, …, inode. An address ends with its port in hexadecimal. */
function listenersIn(path: string): { port: number; inode: string }[] {
  const rows = tryOr([], () => readFileSync(path, "latin1").split("\n").slice(1));
  return rows.flatMap((row) => {
    const fields = row.trim().split(/\s+/);
    const [, local = "", , state] = fields;
    if (state !== listening || !isLoopback.test(local)) return [];
    return [{ port: Number.parseInt(local.slice(local.lastIndexOf(":") + 1), 16), inode: fields[9] ?? "" }];
  });
}
