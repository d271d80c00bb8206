// Asks the built binary for the list and for one session, and compares both answers with the truth.
// What is true comes from the schedule (simulated-host.ts) and from /proc, looked at before and after each answer.
import { join } from "node:path";
import { type OwnerRow, parseList, parseStatus, type Row, ShapeError } from "../answer.ts";
import type { Dice } from "../random.ts";
import type { Lie, LieKind } from "../tally.ts";
import { ownerOf } from "./signs-of-agents.ts";
import {
  bootId,
  find,
  type Identity,
  type Live,
  liveProcesses,
  type Scene,
  type Session,
  type Truth,
} from "./simulated-host.ts";

interface Reply {
  command: string;
  exit: number;
  stdout: string;
  stderr: string;
}

type Allowed =
  | { row: "none" }
  | { row: "unknown" }
  | { row: "stopped"; outcomes: (string | null)[] }
  | { row: "running"; owner: Identity | "some"; activities: string[]; question: string | null; suspended: boolean };

interface Moment {
  before: Live;
  after: Live;
}

const deadlineMs = 15_000;

export async function checkScene(scene: Scene, dice: Dice): Promise<void> {
  const before = liveProcesses();
  const listed = await ask(scene, "list", "-a", "--json");
  const after = liveProcesses();
  const moment = { before, after };
  const list = parsed(scene, listed, parseList);
  if (list === null) return;
  if (!scene.moving && !list.complete)
    lie(scene, "broken promise", `complete is false: ${/"problems":.*/.exec(listed.stdout)?.[0].slice(0, 600)}`);
  for (const session of scene.sessions.values()) {
    const rows = list.rows.filter(({ id }) => id === session.id);
    count(scene, session, () => compare(scene, session, rows, moment));
  }
  for (const each of strangers(scene, list.rows, moment)) lie(scene, each.kind, each.text);
  if (scene.sessions.size > 0) await checkStatus(scene, dice.pick([...scene.sessions.values()]), list.rows, moment);
  if (scene.lies.length > 0 && scene.evidence === "") scene.evidence = await evidence(scene);
}

async function checkStatus(scene: Scene, session: Session, rows: Row[], listMoment: Moment): Promise<void> {
  const before = liveProcesses();
  const reply = await ask(scene, "status", session.id, "--json");
  const after = liveProcesses();
  const inList = rows.find(({ id }) => id === session.id);
  if (reply.exit === 3) {
    count(scene, session, () => compare(scene, session, [], { before, after }));
    return;
  }
  const status = parsed(scene, reply, parseStatus);
  if (status === null) return;
  count(scene, session, () => {
    const lies = compare(scene, session, [status], { before, after });
    // Codex drops its lock a moment before its process exits: both answers can be right, each at its own time.
    const isLeaving = session.truths.some((truth) => truth.withdrawn);
    const wasAtRest = !scene.moving && !isLeaving && alive(session, listMoment.before) === alive(session, after);
    if (lies.length === 0 && wasAtRest && (inList === undefined || essence(inList) !== essence(status)))
      lies.push({
        kind: "list≠status",
        text: `list: ${inList && essence(inList)}, status: ${essence(status)}`,
      });
    return lies;
  });
}

function compare(scene: Scene, session: Session, rows: Row[], moment: Moment): Lie[] {
  if (rows.length > 1) return [{ kind: "duplicates", text: `${rows.length} rows` }];
  const withdrawn = session.truths.some((truth) => truth.withdrawn) && ownerOf(scene, session) === null;
  const truths = session.truths.filter((truth) => !truth.withdrawn || withdrawn);
  const allowed = truths.flatMap((truth) => allowedBy(truth, moment));
  const [row] = rows;
  if (row === undefined)
    return allowed.some((each) => each.row === "none") ? [] : [{ kind: "missing", text: "no row" }];
  const same = allowed.filter((each) => each.row === row.state);
  if (same.length === 0) return [{ kind: wrongState(row, allowed), text: `${essence(row)}; allowed: ${say(allowed)}` }];
  const complaints = same.map((each) => complain(row, each, moment)).toSorted((a, b) => a.length - b.length)[0] ?? [];
  if (complaints.length === 0 && row.state === "unknown") scene.tally["honest unknown"]++;
  if (complaints.length === 0 && row.activity === "unclear") scene.tally["honest unclear"]++;
  return complaints.map(({ kind, text }) => ({ kind, text: `${text}; ${essence(row)}; allowed: ${say(allowed)}` }));
}

function allowedBy(truth: Truth, { before, after }: Moment): Allowed[] {
  const { owner, activities, outcomes, recorded, question } = truth;
  const allowed: Allowed[] = [];
  if (owner === "some") return [{ row: "none" }, { row: "running", owner, activities, question, suspended: false }];
  const [first, last] = [owner && find(before, owner), owner && find(after, owner)];
  if (owner !== null && first !== null) {
    const suspended = first.state === "T" && last?.state === "T";
    const maybeMore = suspended ? [...activities, "unclear"] : activities;
    allowed.push({ row: "running", owner, activities: maybeMore, question, suspended });
  }
  if (first === null || last === null) allowed.push(recorded ? { row: "stopped", outcomes } : { row: "none" });
  if (truth.doubt.some((each) => find(before, each) !== null)) allowed.push({ row: "unknown" });
  return allowed;
}

function complain(row: Row, allowed: Allowed, { before, after }: Moment): Lie[] {
  if (allowed.row === "stopped") {
    if (allowed.outcomes.includes(row.outcome)) return [];
    return [{ kind: "wrong outcome", text: `outcome ${row.outcome}` }];
  }
  if (allowed.row !== "running") return [];
  const lies: Lie[] = [];
  const { owner } = allowed;
  const owners = ownersOf(row);
  const isOwner = (each: OwnerRow): boolean =>
    owner === "some" ? find(before, each) !== null || find(after, each) !== null : isSame(each, owner);
  if (!owners.every(isOwner) || owners.length !== 1) lies.push({ kind: "wrong owner", text: JSON.stringify(owners) });
  if (allowed.suspended && row.reasonCode !== "suspended")
    lies.push({ kind: "broken promise", text: `suspended, but the reason is ${row.reasonCode}` });
  if (!allowed.activities.includes(row.activity ?? ""))
    lies.push({ kind: wrongActivity(row.activity), text: `activity ${row.activity}` });
  else if (row.activity === "waiting" && allowed.question !== null && !row.waitingText?.includes(allowed.question))
    lies.push({ kind: "false-waiting", text: `waits for ${row.waitingText}, not for ${allowed.question}` });
  return lies;
}

/** Rows of what the schedule never made. */
function strangers(scene: Scene, rows: Row[], { before, after }: Moment): Lie[] {
  const known = new Set([...scene.sessions.values()].map(({ id }) => id));
  const unknown = rows.filter(({ id }) => id !== null && !known.has(id));
  const lies: Lie[] = unknown
    .slice(scene.newcomers)
    .map((row) => ({ kind: "ghosts", text: `nobody made ${row.id}: ${essence(row)}` }));
  const lingering = scene.living().filter(({ life }) => life.phase === "lingering");
  const left = [...scene.nameless, ...lingering.map(({ life }) => life.owner)];
  const owned = scene
    .living()
    .map(({ life }) => life.owner)
    .filter((owner) => !left.includes(owner));
  for (const row of rows.filter(({ id }) => id === null)) {
    const owners = ownersOf(row);
    const twice = owners.some((each) => owned.some((owner) => isSame(each, owner)));
    const mayBe = owners.every((each) => scene.newcomers > 0 || left.some((other) => isSame(each, other)));
    if (twice) lies.push({ kind: "duplicates", text: `a session's process, once more without an id: ${essence(row)}` });
    else if (!mayBe && !scene.moving)
      lies.push({
        kind: "ghosts",
        text: `a row without an id: ${essence(row)}; before: ${owners.map((each) => JSON.stringify(find(before, each)))}, after: ${owners.map((each) => JSON.stringify(find(after, each)))}`,
      });
  }
  return lies;
}

function count(scene: Scene, session: Session, compared: () => Lie[]): void {
  scene.tally.checks++;
  const lies = compared();
  if (lies.length === 0) scene.tally.passed++;
  for (const { kind, text } of lies)
    lie(scene, kind, `session ${session.number} (${session.agent}, was pid ${session.was?.pid}): ${text}`);
}

function lie(scene: Scene, kind: LieKind, text: string): void {
  scene.tally[kind]++;
  scene.lies.push({ kind, text: `${scene.moving ? "under way: " : ""}${text}` });
}

function parsed<T>(scene: Scene, reply: Reply, parse: (text: string) => T): T | null {
  if (reply.exit !== 0 || reply.stdout === "") {
    lie(scene, "broken promise", `${reply.command}: exit ${reply.exit}: ${reply.stderr.slice(0, 300)}`);
    return null;
  }
  try {
    return parse(reply.stdout);
  } catch (error) {
    if (!(error instanceof ShapeError)) throw error;
    lie(scene, "broken promise", `${reply.command}: ${error.message}`);
    return null;
  }
}

/** `agentctl why` of every session that a lie names, and the whole process table of the home. */
async function evidence(scene: Scene): Promise<string> {
  const numbers = new Set(scene.lies.flatMap(({ text }) => /session (\d+) /.exec(text)?.[1] ?? []));
  const parts: string[] = [];
  for (const number of numbers) {
    const { stdout, stderr } = await ask(scene, "why", scene.get(Number(number)).id);
    parts.push(`${stdout}${stderr}`);
  }
  const processes = scene.world.processes();
  return [
    ...parts,
    ...processes.map(
      ({ pid, parent, state, start, argv }) => `${pid} ${parent} ${state} ${start} ${argv.join(" ").slice(0, 160)}`,
    ),
  ].join("\n");
}

async function ask(scene: Scene, ...args: string[]): Promise<Reply> {
  const { world } = scene;
  const child = Bun.spawn([scene.bin, ...args], {
    env: { HOME: world.home, PATH: world.env["PATH"] ?? "", AGENTCTL_HOME: join(world.dir, "agentctl") },
    cwd: world.cwd,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: deadlineMs,
    killSignal: "SIGKILL",
  });
  const [stdout, stderr, exit] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { command: args.join(" "), exit, stdout, stderr };
}

function wrongState(row: Row, allowed: Allowed[]): LieKind {
  if (allowed.every((each) => each.row === "none")) return "ghosts";
  if (row.state === "running") return "false-running";
  return row.state === "stopped" ? "false-stopped" : "needless unknown or unclear";
}

function wrongActivity(activity: string | null): LieKind {
  if (activity === "working") return "false-working";
  if (activity === "idle") return "false-idle";
  return activity === "waiting" ? "false-waiting" : "needless unknown or unclear";
}

const alive = (session: Session, live: Live): boolean =>
  session.truths.some(({ owner }) => owner !== null && owner !== "some" && find(live, owner) !== null);

function ownersOf(row: Row): OwnerRow[] {
  const all = row.process === null ? row.processes : [row.process, ...row.processes];
  return all.filter((owner, index) => all.findIndex((other) => other.pid === owner.pid) === index);
}

const isSame = (owner: OwnerRow, { pid, start }: Identity): boolean =>
  owner.pid === pid && owner.start === start && owner.boot === bootId;

function essence(row: Row): string {
  const { state, activity, outcome, reasonCode, link, process } = row;
  return JSON.stringify({ state, activity, outcome, reasonCode, link, pid: process?.pid ?? null });
}

const say = (allowed: Allowed[]): string =>
  allowed
    .map((each) => {
      if (each.row === "running")
        return `running ${each.activities.join("|")} by ${each.owner === "some" ? "some" : each.owner.pid}`;
      return each.row === "stopped" ? `stopped ${each.outcomes.join("|")}` : each.row;
    })
    .join(", ");
