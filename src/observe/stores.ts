// Reads an agent's own records in one home. One bad file costs one row; a slow store costs its own rows.
import { readSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Adapter, Line, RecordFile } from "../adapters/adapter.ts";
import { anyPid, type PidClaim, type Store } from "../core/evidence.ts";
import { type Problem, type Reading, read, unread } from "../core/problem.ts";
import type { Deadline } from "../lib/deadline.ts";
import { linesBackward, linesForward } from "../lib/jsonl.ts";
import { errorCode, failureText, isGone } from "./failure.ts";
import { type FoundFile, findFiles, type OpenFile, readWhole, withFile } from "./files.ts";

/** How far back from a record's end the state of its last turn is looked for. */
export const tailLimit = 64 * 1024 * 1024;
const claimLimit = 1024 * 1024;

/** null: there is no such store, which is no problem. */
export function readStore(adapter: Adapter, home: string, deadline: Deadline): Store | null {
  const place = findHome(home);
  if (place === "absent") return null;
  const store: Store = {
    agent: adapter.agent,
    home,
    names: [home],
    onRootDevice: place !== "elsewhere",
    listing: read(0),
    rows: [],
    claims: readClaims(adapter, home),
    successions: readSuccessions(adapter, home),
  };
  const found = adapter.records.map((set) => findFiles(home, set));
  const files = found.flatMap(({ files }) => files);
  const [failure] = found.flatMap(({ failures }) => failures);
  store.listing =
    failure === undefined ? read(files.length) : unread(storeProblem(adapter, failure.path, failure.message));
  for (const file of files) {
    if (!adapter.isId(file.subject)) continue;
    const row = deadline.isOver() ? unreadRow(file, tooSlow(adapter, file.path)) : readRow(adapter, file);
    if (row !== null) store.rows.push(row);
  }
  return store;
}

function findHome(home: string): "here" | "elsewhere" | "absent" {
  try {
    return statSync(home).dev === statSync("/").dev ? "here" : "elsewhere";
  } catch (error) {
    // Any other failure shows again, with its name, when the folders are listed.
    return isGone(error) ? "absent" : "here";
  }
}

const storeProblem = (adapter: Adapter, source: string, message: string): Problem => ({
  code: "store-unreadable",
  agent: adapter.agent,
  source,
  message,
});

const tooSlow = (adapter: Adapter, source: string): Problem => ({
  code: "store-slow",
  agent: adapter.agent,
  source,
  message: "not read: its store was too slow",
});

/** null: the file vanished between listing and reading, so there is no such record. */
export function readRow(adapter: Adapter, file: FoundFile): Store["rows"][number] | null {
  try {
    return withFile(file.path, (open) => {
      const reading = adapter.parseRecord(recordFile(file, open));
      return { id: file.subject, reading, writtenAt: open.writtenAt, uid: open.uid };
    });
  } catch (error) {
    if (isGone(error)) return null;
    const message = `its record cannot be read: ${failureText(error)}`;
    return unreadRow(file, { code: "record-unreadable", agent: adapter.agent, source: file.path, message });
  }
}

/** Of an unread record at least its file's time and owner, where that much can be seen. */
function unreadRow(file: FoundFile, problem: Problem): Store["rows"][number] {
  try {
    const { mtimeMs, uid } = statSync(file.path);
    return { id: file.subject, reading: unread(problem), writtenAt: mtimeMs, uid };
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return { id: file.subject, reading: unread(problem), writtenAt: null, uid: null };
  }
}

export const recordFile = (file: FoundFile, { fd, size, writtenAt }: OpenFile): RecordFile => ({
  id: file.subject,
  path: file.path,
  size,
  writtenAt,
  torn: size > 0 && byteAt(fd, size - 1) !== 10,
  startsLikeJson: size === 0 || byteAt(fd, 0) === 123,
  tailBytes: tailLimit,
  forward: () => parsed(linesForward(fd, size)),
  backward: () => parsed(linesBackward(fd, size, tailLimit)),
});

function byteAt(fd: number, position: number): number | undefined {
  const byte = Buffer.alloc(1);
  return readSync(fd, byte, 0, 1, position) === 1 ? byte[0] : undefined;
}

/** More lines than any turn has; a file of millions of tiny ones would hold everybody up. What is left counts as broken. */
const mostLines = 200_000;

function* parsed(lines: Iterable<Buffer | null>): Generator<Line> {
  let count = 0;
  for (const line of lines) {
    count += 1;
    if (count > mostLines) {
      yield { ok: false };
      return;
    }
    if (line === null) yield { ok: false };
    else if (line.length > 0) yield parseJson(line);
  }
}

export function parseJson(line: Buffer): Line {
  // Every record line is an object; a failed parse costs a hundred times as much as this look.
  if (line[0] !== openBrace) return { ok: false };
  try {
    return { ok: true, value: JSON.parse(line.toString("utf8")) };
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) return { ok: false };
    throw error;
  }
}

const openBrace = 123;

export function readClaims(adapter: Adapter, home: string): Store["claims"] {
  if (adapter.claims === null) return [];
  const { files, failures } = findFiles(home, adapter.claims);
  const claims: Store["claims"] = files.flatMap((file) => {
    const reading = readClaim(adapter, file);
    return reading === null ? [] : [{ pid: Number(file.subject), reading }];
  });
  for (const { path, message } of failures)
    claims.push({
      pid: anyPid,
      reading: unread({ ...storeProblem(adapter, path, message), code: "claim-unreadable" }),
    });
  return claims;
}

const successionBytes = 256 * 1024;

/** A history that cannot be read costs a "continued by", never a status. */
function readSuccessions(adapter: Adapter, home: string): Store["successions"] {
  if (adapter.successions === null) return [];
  const { file, parse } = adapter.successions;
  try {
    return withFile(join(home, file), ({ fd, size }) =>
      [...parsed(linesBackward(fd, size, successionBytes))].flatMap((line) => {
        const succession = line.ok ? parse(line.value) : null;
        return succession === null ? [] : [succession];
      }),
    );
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return [];
  }
}

/** Rewritten in place by some agents: a torn file is read once more before it counts as broken. */
function readClaim(adapter: Adapter, file: FoundFile): Reading<PidClaim> | null {
  let problem: Problem | null = null;
  for (const _attempt of [1, 2]) {
    try {
      const claim = withFile(file.path, (open) => {
        const value: unknown = JSON.parse(readWhole(open, claimLimit).toString("utf8"));
        return adapter.parseClaim({ pid: Number(file.subject), path: file.path, writtenAt: open.writtenAt, value });
      });
      if (claim.ok) return claim;
      problem = claim.problem;
    } catch (error) {
      if (isGone(error)) return null;
      const message = `its announcement cannot be read: ${failureText(error)}`;
      problem = { code: "claim-unreadable", agent: adapter.agent, source: file.path, message };
    }
  }
  return problem === null ? null : unread(problem);
}
