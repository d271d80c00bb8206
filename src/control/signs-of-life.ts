// Has a started agent begun its session? Told by the agent itself: its output, its announcement, its kernel lock, its record.
import { statSync } from "node:fs";
import { join } from "node:path";
import type { Adapter } from "../adapters/adapter.ts";
import { isLive, type ProcessRow } from "../core/process.ts";
import { type Deadline, deadlineIn, pause } from "../lib/deadline.ts";
import { isGone } from "../observe/failure.ts";
import { ownUid } from "../observe/files.ts";
import { findRecords } from "../observe/names.ts";
import { readProcess, readProcesses } from "../observe/processes.ts";
import { parseJson, recordAt } from "../observe/records.ts";
import { readClaims, readRow } from "../observe/stores.ts";
import { openChanges, watchNearest } from "../sys/changes.ts";
import type { LaunchOrder } from "./launch.ts";
import { launchFiles } from "./notes.ts";
import { firstAndLastLines, headOf } from "./output.ts";
import { literalFolder } from "./wait.ts";

export type Sign =
  | { kind: "begun"; session: string }
  | { kind: "over"; status: number | null; lastWords: string }
  | { kind: "silent"; lastWords: string };

/** For signs of which the kernel does not tell: a lock that was taken, a record that was begun in a folder of its own. */
const sweepMs = 250;
/** Whoever writes all the time must not keep us looking all the time: after so many looks it gets at least half of it. */
const quickLooks = 20;

export class SignsOfLife {
  private readonly adapter: Adapter;
  private readonly files: ReturnType<typeof launchFiles>;
  private readonly markBefore: string | null;
  private readonly deadline: Deadline;
  private readonly changes = openChanges();
  private isUnwanted = false;
  /** Nobody yet. */
  private holder = 0;

  constructor(
    private readonly wanted: LaunchOrder,
    launch: string,
    /** null: the agent chooses it. */
    private readonly session: string | null,
  ) {
    this.adapter = wanted.adapter;
    this.files = launchFiles(wanted.env, launch);
    this.deadline = deadlineIn(wanted.startTimeoutMs);
    this.markBefore = this.markNow();
  }

  async untilBegun(holder: number): Promise<Sign> {
    this.holder = holder;
    let isOver = false;
    try {
      for (let looks = 1; ; looks += 1) {
        const begun = performance.now();
        this.watch();
        // Before the signs are looked for: whoever ended by then has left all the signs it will leave.
        isOver ||= !this.changes.process(this.holder);
        const session =
          this.announced() ?? this.lockedOrClaimed() ?? (isOver ? this.left() : (this.recorded() ?? this.goneOn()));
        if (session !== null) return { kind: "begun", session };
        if (isOver) return { kind: "over", status: this.exitStatus(), lastWords: this.lastWords() };
        if (this.deadline.isOver()) return { kind: "silent", lastWords: this.lastWords() };
        const lookMs = performance.now() - begun;
        const told = await this.changes.next(Math.min(sweepMs, this.deadline.remainingMs()));
        if (told === "changed" && looks > quickLooks) await pause(lookMs);
        if (this.isUnwanted) return { kind: "silent", lastWords: "" };
      }
    } finally {
      this.changes.close();
    }
  }

  /** Nobody wants to know any more. */
  giveUp(): void {
    this.isUnwanted = true;
    this.changes.close();
  }

  private watch(): void {
    const { claims, records } = this.adapter;
    const { home, before } = this.wanted;
    this.changes.path(this.files.out);
    if (claims !== null) watchNearest(join(home, literalFolder(claims.folder)), this.changes);
    if (before?.record != null) watchNearest(before.record.source, this.changes);
    else for (const { folder } of records) watchNearest(join(home, literalFolder(folder)), this.changes);
  }

  /** In one of the first lines of its output. */
  private announced(): string | null {
    for (const line of linesOf(headOf(this.files.out))) {
      const parsed = parseJson(line);
      const id = parsed.ok ? this.adapter.invocation.announcedIn(parsed.value) : null;
      if (id !== null && (this.session === null || id === this.session)) return id;
    }
    return null;
  }

  private lockedOrClaimed(): string | null {
    const claims = readClaims(this.adapter, this.wanted.home).filter(
      ({ pid, uid }) => uid === ownUid && this.isHeld(pid),
    );
    const isClaimed = claims.some(({ reading }) => reading.ok && reading.value.session === this.session);
    // Nobody else could know the id that we chose.
    if (isClaimed && this.wanted.before === null) return this.session;
    if (claims.length === 0 && this.adapter.lockedFiles === null) return null;
    const rows = this.agents();
    const pids = new Set(rows.map((row) => row.identity.pid));
    const claimed = claims.flatMap(({ pid, reading }) => (pids.has(pid) && reading.ok ? [reading.value.session] : []));
    const locks = rows.flatMap((row) => (row.detail === null ? [] : this.adapter.announcedIds(row.detail)));
    const told = [...claimed, ...locks];
    return this.session === null ? (told[0] ?? null) : told.includes(this.session) ? this.session : null;
  }

  /** In the kernel session of our holder. */
  private isHeld(pid: number): boolean {
    try {
      const row = readProcess(pid);
      return row !== null && row.session === this.holder && isLive(row);
    } catch (error) {
      // It changes in this moment: the table will tell.
      if (!(error instanceof Error)) throw error;
      return true;
    }
  }

  /** A new session of the chosen id has a record. */
  private recorded(): string | null {
    if (this.session === null || this.wanted.before !== null) return null;
    const record = findRecords(this.adapter, this.wanted.home).visited.find(({ subject }) => subject === this.session);
    if (record === undefined) return null;
    if (this.adapter.invocation.prepare === undefined) return this.session;
    // What we prepared is there before the agent is.
    const reading = readRow(this.adapter, record)?.reading;
    return reading?.ok === true && reading.value.turn.state !== "none" ? this.session : null;
  }

  /** An agent that announces nothing goes on with a session by writing to its record. */
  private goneOn(): string | null {
    const { claims, lockedFiles } = this.adapter;
    if (claims !== null || lockedFiles !== null || this.wanted.before?.record == null) return null;
    return this.markNow() === this.markBefore ? null : this.session;
  }

  /** Of an agent that has ended: a record of its session, which has grown if it was there before. */
  private left(): string | null {
    if (this.wanted.before?.record == null) return this.recorded();
    return this.markNow() === this.markBefore ? null : this.session;
  }

  /** Changes whenever the record does. */
  private markNow(): string | null {
    const before = this.wanted.before?.record;
    if (before == null) return null;
    const record = recordAt(this.adapter, before.source, before.id);
    if (record.set.assembled === undefined) return markOf(before.source);
    const reading = readRow(this.adapter, record)?.reading;
    return reading?.ok === true ? `${reading.value.writtenAt} ${reading.value.lastMessageAt}` : null;
  }

  private agents(): ProcessRow[] {
    const { environment, processNames, role } = this.adapter;
    const table = readProcesses({
      names: new Set(processNames),
      pids: new Set(),
      environment: new Set([...environment, "AGENTCTL_TAG_SID"]),
      lockedFiles: [this.adapter],
    });
    if (!table.ok) return [];
    return table.value.rows.filter(
      (row) =>
        row.session === this.holder &&
        isLive(row) &&
        row.detail?.env?.["AGENTCTL_TAG_SID"] === String(this.holder) &&
        role(row.name, row.detail) === "agent",
    );
  }

  private exitStatus(): number | null {
    const text = headOf(this.files.exit).toString("latin1").trim();
    return /^\d+$/.test(text) ? Number(text) : null;
  }

  /** The ends of what it said: on stderr, else on stdout. */
  private lastWords(): string {
    return firstAndLastLines(this.files.err) || firstAndLastLines(this.files.out);
  }
}

function linesOf(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let from = 0, end = bytes.indexOf(10); end !== -1; from = end + 1, end = bytes.indexOf(10, from))
    lines.push(bytes.subarray(from, end));
  return lines;
}

/** Changes whenever the file does. */
function markOf(path: string): string | null {
  try {
    const { size, mtimeMs, ino } = statSync(path);
    return `${ino} ${size} ${mtimeMs}`;
  } catch (error) {
    if (isGone(error)) return null;
    throw error;
  }
}
