// Waits until a started agent confirms its session by its output, its announcement, its kernel lock or its record.
import { statSync } from "node:fs";
import { join } from "node:path";
import type { Adapter } from "../agents/adapter.ts";
import { isLive, type ProcessRow } from "../core/process.ts";
import { type Deadline, deadlineIn, pause } from "../lib/deadline.ts";
import { isError, tryOr } from "../lib/errors.ts";
import { linesForward } from "../lib/jsonl.ts";
import { ownUid } from "../observe/files.ts";
import { noDetails } from "../observe/process-query.ts";
import { readProcess, readProcesses } from "../observe/processes.ts";
import { findRecords } from "../observe/record-names.ts";
import { parseJson, recordAt } from "../observe/records.ts";
import { readAnnouncements, readRow } from "../observe/stores.ts";
import { openChangeWatch, watchNearest } from "../sys/change-watch.ts";
import { firstAndLastLines, headOf } from "./agent-output.ts";
import { launchFiles } from "./notes.ts";
import type { LaunchPlan } from "./start-agent.ts";
import { literalFolder } from "./wait.ts";

export type Sign =
  | { kind: "begun"; session: string }
  | { kind: "over"; status: number | null; lastWords: string }
  | { kind: "silent"; lastWords: string };

/** For signs that the kernel does not report: a lock that was taken, a new record in a new folder. */
const sweepMs = 250;
/** After so many looks we pause as long as a look takes, so that an agent that writes constantly keeps half of the time. */
const quickLooks = 20;

export class StartConfirmation {
  private readonly adapter: Adapter;
  /** null: the agent chooses it. */
  private readonly session: string | null;
  private readonly files: ReturnType<typeof launchFiles>;
  private readonly recordBefore: string | null;
  private readonly deadline: Deadline;
  private readonly changes = openChangeWatch();
  private isUnwanted = false;
  /** 0: not started yet. */
  private holder = 0;

  constructor(
    private readonly plan: LaunchPlan,
    launch: string,
  ) {
    this.adapter = plan.adapter;
    this.session = plan.session;
    this.files = launchFiles(plan.env, launch);
    this.deadline = deadlineIn(plan.startTimeoutMs);
    this.recordBefore = this.recordState();
  }

  async untilBegun(holder: number): Promise<Sign> {
    this.holder = holder;
    let isOver = false;
    try {
      for (let looks = 1; ; looks += 1) {
        const begun = performance.now();
        this.watch();
        // Checked before the signs: an agent that has exited by now leaves no more of them.
        isOver ||= !this.changes.process(this.holder);
        const session =
          this.announced() ??
          this.lockedOrAnnounced() ??
          (isOver ? this.leftRecord() : (this.recorded() ?? this.continued()));
        if (session !== null) return { kind: "begun", session };
        if (isOver) return { kind: "over", status: this.exitStatus(), lastWords: this.lastWords() };
        if (this.deadline.isOver()) return { kind: "silent", lastWords: this.lastWords() };
        const lookMs = performance.now() - begun;
        const event = await this.changes.next(Math.min(sweepMs, this.deadline.remainingMs()));
        if (event === "changed" && looks > quickLooks) await pause(lookMs);
        if (this.isUnwanted) return { kind: "silent", lastWords: "" };
      }
    } finally {
      this.changes.close();
    }
  }

  giveUp(): void {
    this.isUnwanted = true;
    this.changes.close();
  }

  private watch(): void {
    const { announcements, records } = this.adapter;
    const { home, before } = this.plan;
    this.changes.path(this.files.out);
    if (announcements !== undefined) watchNearest(join(home, literalFolder(announcements.folder)), this.changes);
    if (before?.record != null) watchNearest(before.record.source, this.changes);
    else for (const { folder } of records) watchNearest(join(home, literalFolder(folder)), this.changes);
  }

  private announced(): string | null {
    const head = headOf(this.files.out);
    for (const line of linesForward(head, head.length)) {
      const parsed = line === null ? null : parseJson(line);
      const id = parsed?.ok ? this.adapter.invocation.announcedIn(parsed.value) : null;
      if (id !== null && (this.session === null || id === this.session)) return id;
    }
    return null;
  }

  private lockedOrAnnounced(): string | null {
    const announcements = readAnnouncements(this.adapter, this.plan.home).filter(
      ({ pid, uid }) => uid === ownUid && this.isInHolder(pid),
    );
    const isAnnounced = announcements.some(({ reading }) => reading.ok && reading.value.session === this.session);
    // No other process can know the id that we chose.
    if (isAnnounced && this.plan.before === null) return this.session;
    if (announcements.length === 0 && this.adapter.lockedFiles === undefined) return null;
    const rows = this.agents();
    const pids = new Set(rows.map((row) => row.identity.pid));
    const announced = announcements.flatMap(({ pid, reading }) =>
      pids.has(pid) && reading.ok ? [reading.value.session] : [],
    );
    const locks = rows.flatMap((row) => (row.detail === null ? [] : (this.adapter.announcedIds?.(row.detail) ?? [])));
    const ids = [...announced, ...locks];
    return (this.session === null ? ids[0] : ids.find((id) => id === this.session)) ?? null;
  }

  private isInHolder(pid: number): boolean {
    // If reading fails, the process is changing right now: the process table decides.
    const row = tryOr("unread", () => readProcess(pid), isError);
    return row === "unread" || (row !== null && row.session === this.holder && isLive(row));
  }

  /** Confirms the session by the record with the id that we chose. */
  private recorded(): string | null {
    if (this.session === null || this.plan.before !== null) return null;
    const record = findRecords(this.adapter, this.plan.home).visited.find(({ subject }) => subject === this.session);
    if (record === undefined) return null;
    if (this.adapter.invocation.prepare === undefined) return this.session;
    // A prepared record exists before the agent does.
    const reading = readRow(this.adapter, record)?.reading;
    return reading?.ok === true && reading.value.turn.state !== "none" ? this.session : null;
  }

  /** An agent that announces nothing continues a session by writing to its record. */
  private continued(): string | null {
    const { announcements, lockedFiles } = this.adapter;
    const isSilent = announcements === undefined && lockedFiles === undefined;
    return isSilent && this.plan.before?.record != null ? this.leftRecord() : null;
  }

  /** For an agent that has exited: by its record, which must have changed if it existed before. */
  private leftRecord(): string | null {
    if (this.plan.before?.record == null) return this.recorded();
    return this.recordState() === this.recordBefore ? null : this.session;
  }

  /** Changes whenever the record does. */
  private recordState(): string | null {
    const before = this.plan.before?.record;
    if (before == null) return null;
    const record = recordAt(this.adapter, before.source, before.id);
    if (record.set.assembled === undefined) return fileState(before.source);
    const reading = readRow(this.adapter, record)?.reading;
    return reading?.ok === true ? `${reading.value.writtenAt} ${reading.value.lastMessageAt}` : null;
  }

  private agents(): ProcessRow[] {
    const { environment, processNames, role } = this.adapter;
    const names = new Set(processNames);
    const wanted = new Set([...environment, "AGENTCTL_TAG_SID"]);
    const table = readProcesses({ ...noDetails, names, environment: wanted, lockedFiles: [this.adapter] });
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

  private lastWords(): string {
    return firstAndLastLines(this.files.err) || firstAndLastLines(this.files.out);
  }
}

function fileState(path: string): string | null {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? null : `${stat.ino} ${stat.size} ${stat.mtimeMs}`;
}
