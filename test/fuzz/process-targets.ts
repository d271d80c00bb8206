// What adapters make of any process: role, id, home, what ends its turn; and that an announced owner stays one.
import { type Problem, read } from "../../src/core/problem.ts";
import type { ProcessDetail, ProcessTable } from "../../src/core/process.ts";
import type { Victim } from "../conformance/damaged-case.ts";
import { faultsOf } from "../conformance/invariants.ts";
import type { Dice } from "../truth/random.ts";
import type { Material } from "./corpus.ts";
import { isText } from "./parsed-shapes.ts";
import { derive, type Homes } from "./store-targets.ts";
import { plain, type Target } from "./target.ts";

interface Shape {
  name: string;
  detail: ProcessDetail;
}

export function processTargets(material: Material, { records, announcements }: Homes): Target[] {
  const { adapter } = material;
  const all = [...announcements, ...records].filter(({ table }) => table.rows.length > 0);
  return [
    {
      name: `process:${adapter.agent}`,
      weight: 100,
      make(dice) {
        const input = Buffer.from(JSON.stringify(shape(dice, material)));
        const victim = all.length > 0 && dice.chance(0.2) ? dice.pick(all) : null;
        return plain("a process", input, (bytes) => {
          const made = JSON.parse(bytes.toString("utf8")) as Shape;
          return [...rulesFaults(material, made), ...(victim === null ? [] : ownerFaults(victim, made))];
        });
      },
    },
  ];
}

/** Without NULs: the kernel ends every one of these texts at the first. */
function shape(dice: Dice, { adapter, argvs, words, tokens }: Material): Shape {
  const id = dice.uuid();
  const word = (): string =>
    dice.pick<() => string>([
      () => dice.pick(words),
      () => dice.pick(flags),
      () => `${dice.pick(flags)}=${dice.pick([id, "", "-"])}`,
      () => id,
      () => id.toUpperCase(),
      () => dice.pick(tokens),
      () => dice.pick(["", "--", "-", "\ud800", "=", "__proto__", "constructor", "x".repeat(5_000)]),
    ])();
  const argv = (): string[] => {
    const seen = argvs.length > 0 && dice.chance(0.8) ? [...dice.pick(argvs)] : [dice.pick(adapter.processNames)];
    const length = dice.chance(0.005) ? 20_000 : dice.below(5);
    for (let times = length; times > 0; times -= 1) seen.splice(dice.below(seen.length + 1), dice.below(2), word());
    return seen;
  };
  const orNull = <T>(value: T): T | null => (dice.chance(0.1) ? null : value);
  const env = Object.fromEntries(
    [...adapter.environment, "AGENTCTL_TAG_SID", "AGENTCTL_TAG_SESSION", "__proto__"].flatMap((key) =>
      dice.chance(0.5)
        ? [[key, dice.pick(["", "/", "relative", "/home/user", "\ud800", id, `${adapter.agent}:${id}`, "7"])]]
        : [],
    ),
  );
  const locked = ["/", "", `/x/thread-writer-locks/${id}.lock`, `/thread-writer-locks/${"-".repeat(36)}.lock`, "\n"];
  return {
    name: dice.chance(0.8) ? dice.pick(adapter.processNames) : dice.pick(["", "sh", "node", "\ud800", "claude "]),
    detail: {
      uid: orNull(0),
      ours: dice.chance(0.9),
      argv: orNull(argv()),
      exe: orNull(
        dice.pick(["/usr/bin/claude", "/x/claude/versions/1", "/usr/bin/codex", "", "/", "claude (deleted)"]),
      ),
      cwd: orNull(dice.pick(["/", "/home/user/project", "", "/home/\x1b[31m\n", "relative"])),
      env: orNull(env),
      lockedFiles: dice.chance(0.4) ? [dice.pick(locked), dice.pick(locked)] : [],
      namespace: orNull("pid:[4026531836]"),
      innerPid: orNull(dice.below(100)),
      sameFiles: dice.chance(0.9),
      confinement: dice.chance(0.9) ? null : "pid:[1] mnt:[1] user:[1]",
      unread: [],
    },
  };
}

const flags =
  "--session-id --resume -r --fork-session -p --print exec e resume fork app-server serve --no-announce -c -C --cd".split(
    " ",
  );

function rulesFaults({ adapter }: Material, { name, detail }: Shape): string[] {
  const role = adapter.role(name, detail);
  const id = detail.argv === null ? null : adapter.argvId(detail.argv);
  const home = detail.env === null ? null : adapter.home(detail.env);
  const ends = adapter.invocation.interrupt(detail.argv ?? [], null);
  return [
    ...(role === null || ["agent", "server", "helper"].includes(role) ? [] : [`its role is ${String(role)}`]),
    ...(id === null || adapter.isId(id) ? [] : ["the id in its arguments is no id"]),
    ...(typeof adapter.announces(detail) === "boolean" ? [] : ["announces is neither true nor false"]),
    ...((adapter.announcedIds?.(detail) ?? []).every(adapter.isId) ? [] : ["what it announces is no id"]),
    ...(home === null || (isText(home) && home !== "") ? [] : ["its home is no folder"]),
    ...(("signal" in ends ? /^SIG[A-Z]+$/.test(ends.signal) : isText(ends.keys)) ? [] : ["nothing ends its turn"]),
  ];
}

/** The owner of an announcement that names start and boot is known by these alone, whatever else it looks like. */
function ownerFaults({ adapter, store, table, live }: Victim, { name, detail }: Shape): string[] {
  const rows = table.rows.map((row) => ({ ...row, name, detail }));
  const odd: ProcessTable = { ...table, rows };
  const list = derive(adapter, store, read(odd));
  const exact = store.announcements.flatMap(({ reading }) =>
    reading.ok && reading.value.start !== null && reading.value.boot !== null ? [reading.value.session] : [],
  );
  const ran = live.sessions.filter(({ id, status }) => id !== null && exact.includes(id) && status.state === "running");
  const gap: Problem = {
    ...{ code: "process-unreadable", agent: null, source: "/proc/7" },
    detail: { code: "keeps-changing" },
  };
  const doubtful = derive(adapter, store, read({ ...odd, gaps: [gap] }));
  return [
    ...faultsOf(adapter, store, list),
    ...ran.flatMap(({ id }) => {
      const state = list.sessions.find((session) => session.id === id)?.status.state;
      return state === "running" ? [] : [`its owner is announced to the letter, but it is ${state}`];
    }),
    ...(doubtful.sessions.some(({ status }) => status.state === "stopped")
      ? ["stopped, though the table has a gap"]
      : []),
  ];
}
