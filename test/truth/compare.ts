// Compares one answer of agentctl with the answers that the oracle allows, and returns every lie.
import { type ListAnswer, type OwnerRow, parseList, parseStatus, type Row, ShapeError } from "./answer.ts";
import { type Reply, slowMs } from "./ask-agentctl.ts";
import type { FakeAgent } from "./fake-agent.ts";
import type { Answer, Expectation, Expected } from "./oracle.ts";
import { bootId } from "./proc.ts";
import { countFor, type Lie, type LieKind, type Tally } from "./tally.ts";

/** Adds to the tally, and returns the lies for the report. */
export function compareList(
  reply: Reply,
  expected: Expected,
  tally: Tally,
): { lies: Lie[]; answer: ListAnswer | null } {
  const lies = promises(reply, 0);
  const answer = parsed(() => parseList(reply.stdout), lies);
  if (answer !== null) {
    if (expected.complete !== null && answer.complete !== expected.complete) {
      lies.push({ kind: "broken promise", text: `complete is ${answer.complete}, not ${expected.complete}` });
    }
    for (const each of expected.sessions) check(tally, lies, () => compareSession(each, answer.rows, tally));
    for (const fake of expected.nameless) check(tally, lies, () => compareNameless(fake, answer.rows));
    lies.push(...ghosts(expected, answer.rows));
  }
  count(tally, lies);
  return { lies, answer };
}

export function compareStatus(reply: Reply, id: string, list: ListAnswer, tally: Tally): Lie[] {
  tally.checks++;
  const row = list.rows.find((each) => each.id === id);
  const lies = row === undefined ? absentStatus(reply) : promises(reply, 0);
  if (row !== undefined && lies.length === 0) {
    const status = parsed(() => parseStatus(reply.stdout), lies);
    if (status !== null && essence(status) !== essence(row)) {
      lies.push({ kind: "list≠status", text: `list says ${essence(row)}, status says ${essence(status)}` });
    }
  }
  if (lies.length === 0) tally.passed++;
  count(tally, lies);
  return lies;
}

/** Without -a only records of sessions that run or may run are read; the answer about them must be the same. */
export function comparePlain(reply: Reply, list: ListAnswer, tally: Tally): Lie[] {
  tally.checks++;
  const lies = promises(reply, 0);
  const plain = lies.length > 0 ? null : parsed(() => parseList(reply.stdout), lies);
  const all = list.rows.map(essence);
  const told = new Set(plain?.rows.map(essence));
  for (const row of told) if (!all.includes(row)) lies.push({ kind: "list≠status", text: `only without -a: ${row}` });
  for (const row of plain === null ? [] : list.rows)
    if (row.state === "running" && !told.has(essence(row)))
      lies.push({ kind: "list≠status", text: `not without -a: ${essence(row)}` });
  if (lies.length === 0) tally.passed++;
  count(tally, lies);
  return lies;
}

function check(tally: Tally, lies: Lie[], compare: () => Lie[]): void {
  const found = compare();
  tally.checks++;
  if (found.length === 0) tally.passed++;
  lies.push(...found);
}

function count(tally: Tally, lies: Lie[]): void {
  for (const { kind } of lies) tally[kind]++;
}

function compareSession(expectation: Expectation, rows: Row[], tally: Tally): Lie[] {
  const { session, answers, row: needed } = expectation;
  const name = `session ${session.number} (${session.format.agent} ${session.id})`;
  const { agent } = session.format;
  const mine = rows.filter((row) => row.id === session.id && row.agent === agent);
  const [row] = mine;
  if (row === undefined) return needed === "required" ? [{ kind: "missing", text: `${name}: no row` }] : [];
  if (mine.length > 1) return [{ kind: "duplicates", text: `${name}: ${mine.length} rows` }];
  if (needed === "forbidden")
    return [{ kind: "ghosts", text: `${name}: a row (${row.state}), but no record and no process` }];
  countFor(tally, agent, "sessions seen");
  const lies = bestMatch(row, answers);
  if (lies.length > 0) countFor(tally, agent, "lies");
  if (lies.length > 0)
    return lies.map(({ kind, text }) => ({ kind, text: `${name}: ${text}; the row: ${essence(row)}` }));
  if (row.state === "unknown") {
    tally["honest unknown"]++;
    countFor(tally, agent, "unknown");
  }
  if (row.activity === "unclear") {
    tally["honest unclear"]++;
    countFor(tally, agent, "unclear");
  }
  if (isWrongGuess(row, answers)) tally["wrong weak guess (allowed)"]++;
  if (row.state === "stopped" && answers.every((answer) => answer.state !== "stopped" || answer.unseen === true))
    tally["opened unseen (allowed)"]++;
  return [];
}

/** No lie if any allowed answer fits; else the complaints of the nearest one. */
function bestMatch(row: Row, answers: Answer[]): Lie[] {
  const sameState = answers.filter((answer) => answer.state === row.state);
  if (sameState.length === 0) {
    const allowed = [...new Set(answers.map(({ state }) => state))].join(" or ");
    return [{ kind: wrongState(row), text: `says ${row.state}, allowed is ${allowed}` }];
  }
  const complaints = sameState.map((answer) => compareAnswer(row, answer));
  return complaints.toSorted((a, b) => a.length - b.length)[0] ?? [];
}

function wrongState(row: Row): LieKind {
  if (row.state === "running") return "false-running";
  // Also of a dead session: "stopped" without a proof is a lie that happens to be true.
  return row.state === "stopped" ? "false-stopped" : "needless unknown or unclear";
}

function compareAnswer(row: Row, answer: Answer): Lie[] {
  if (answer.state === "unknown") return [];
  if (answer.state === "stopped") {
    if (answer.outcomes.includes(row.outcome)) return [];
    return [{ kind: "wrong outcome", text: `outcome ${row.outcome}, allowed is ${answer.outcomes.join(" or ")}` }];
  }
  const lies: Lie[] = [];
  const owners = ownersOf(row);
  const absent = answer.owners.filter((fake) => !owners.some((owner) => isSame(owner, fake)));
  const strange = owners.filter((owner) => !answer.mostOwners.some((fake) => isSame(owner, fake)));
  if (absent.length > 0) lies.push({ kind: "wrong owner", text: `lacks process ${absent.map(({ pid }) => pid)}` });
  if (strange.length > 0) lies.push({ kind: "wrong owner", text: `is not owned by ${JSON.stringify(strange)}` });
  if (!answer.links.includes(row.link ?? "")) {
    lies.push({ kind: "wrong owner", text: `link ${row.link}, allowed is ${answer.links.join(" or ")}` });
  }
  if (answer.suspended && row.reasonCode !== "suspended") {
    lies.push({ kind: "broken promise", text: `suspended, but the reason is ${row.reasonCode}` });
  }
  if (!answer.activities.includes(row.activity ?? "")) {
    const allowed = answer.activities.join(" or ");
    lies.push({ kind: wrongActivity(row.activity), text: `activity ${row.activity}, allowed is ${allowed}` });
  } else if (row.activity === "waiting" && !answer.questions.includes(row.waitingText ?? "")) {
    lies.push({ kind: "false-waiting", text: `waits for ${JSON.stringify(row.waitingText)}, not ${answer.questions}` });
  }
  return lies;
}

function wrongActivity(activity: string | null): LieKind {
  if (activity === "working") return "false-working";
  if (activity === "idle") return "false-idle";
  return activity === "waiting" ? "false-waiting" : "needless unknown or unclear";
}

function isWrongGuess(row: Row, answers: Answer[]): boolean {
  return row.state === "running" && answers.every((answer) => answer.state !== "running" || answer.wrongGuess);
}

/** A live process that names no session: one row without an id, or one weak link (judged with its session). */
function compareNameless(fake: FakeAgent, rows: Row[]): Lie[] {
  const mine = rows.filter((row) => ownersOf(row).some((owner) => isSame(owner, fake)));
  const [row] = mine;
  if (row === undefined) return [{ kind: "missing", text: `live process ${fake.pid} is in no row` }];
  if (mine.length > 1) return [{ kind: "duplicates", text: `process ${fake.pid} is in ${mine.length} rows` }];
  if (row.id !== null || row.activity === "unclear") return [];
  return [{ kind: wrongActivity(row.activity), text: `process ${fake.pid} has no record, but is ${row.activity}` }];
}

function ghosts(expected: Expected, rows: Row[]): Lie[] {
  const nameOf = (agent: string, id: string) => `${agent} ${id}`;
  const known = new Set(expected.sessions.map(({ session }) => nameOf(session.format.agent, session.id)));
  return rows.flatMap((row): Lie[] => {
    if (row.id !== null) {
      if (known.has(nameOf(row.agent, row.id))) return [];
      return [{ kind: "ghosts", text: `${row.agent} ${row.id} was never made: ${essence(row)}` }];
    }
    const mayBeNameless = [...expected.nameless, ...expected.muted];
    const isNameless = ownersOf(row).every((owner) => mayBeNameless.some((fake) => isSame(owner, fake)));
    if (isNameless && ownersOf(row).length > 0) return [];
    return [{ kind: "ghosts", text: `a row without an id for what is no nameless agent: ${essence(row)}` }];
  });
}

function promises(reply: Reply, exit: number): Lie[] {
  const lies: Lie[] = [];
  const broken = (text: string) => lies.push({ kind: "broken promise", text: `${reply.command}: ${text}` });
  if (reply.exit !== exit) broken(`exit ${reply.exit}: ${reply.stderr.trim().slice(0, 300)}`);
  if (reply.tookMs > slowMs) broken(`took ${Math.round(reply.tookMs)} ms`);
  return lies;
}

function absentStatus(reply: Reply): Lie[] {
  if (reply.exit === 3 || reply.exit === 8) return [];
  return [{ kind: "list≠status", text: `${reply.command}: not in the list, but exit ${reply.exit} instead of 3 or 8` }];
}

function parsed<T>(parse: () => T, lies: Lie[]): T | null {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof ShapeError)) throw error;
    lies.push({ kind: "broken promise", text: `JSON: ${error.message}` });
    return null;
  }
}

function ownersOf(row: Row): OwnerRow[] {
  const all = row.process === null ? row.processes : [row.process, ...row.processes];
  return all.filter((owner, index) => all.findIndex((other) => other.pid === owner.pid) === index);
}

function isSame(owner: OwnerRow, fake: FakeAgent): boolean {
  return owner.pid === fake.pid && owner.start === fake.start && owner.boot === bootId;
}

function essence(row: Row): string {
  const { state, activity, outcome, link, process } = row;
  return JSON.stringify({ state, activity, outcome, link, process });
}
