// Disturbances while agentctl runs: a person works in the repository, or a signal ends agentctl. Both are tied to the n-th call
// of git, so that a schedule can be repeated: a script called `git` stands first in agentctl's PATH and counts the calls.
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Dice } from "../truth/random.ts";
import type { Act } from "./agentctl-steps.ts";
import type { Journal } from "./find-losses.ts";
import { contentOf } from "./inventory.ts";
import { agentctlEnvironment } from "./run-agentctl.ts";
import { realGit, type TestRepository } from "./test-repository.ts";

/** Calls that change something are counted a second time: the moment before one of them is the most dangerous. */
const counting = (world: TestRepository): string => `#!/bin/sh
hook=${quoted(world.hook)} git=${quoted(realGit)} n=1 c=0
happen() {
  env -i ${words(world.environment)} sh "$1" >/dev/null 2>&1
}
[ -d "$hook/calls" ] || exec "$git" "$@"
set -C
until { true >"$hook/calls/$n"; } 2>/dev/null; do n=$((n + 1)); [ $n -lt 1000 ] || exit 99; done
case " $* " in *" worktree remove "* | *" worktree prune "* | *" worktree move "* | *" branch "* | *" update-ref "*)
  c=1
  until { true >"$hook/calls/c$c"; } 2>/dev/null; do c=$((c + 1)); [ $c -lt 1000 ] || exit 99; done
esac
set +C
for at in $n c$c; do
  if [ -e "$hook/before-$at" ]; then happen "$hook/before-$at" || exit 99; fi
  if [ -e "$hook/during-$at" ]; then happen "$hook/during-$at" & fi
done
if [ -e "$hook/after-$n" ] || [ -e "$hook/after-c$c" ]; then
  "$git" "$@"
  status=$?
  for at in $n c$c; do
    if [ -e "$hook/after-$at" ]; then happen "$hook/after-$at"; fi
  done
  exit $status
fi
exec "$git" "$@"
`;

export const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

const words = (environment: Record<string, string>): string =>
  Object.entries(environment)
    .map(([name, value]) => quoted(`${name}=${value}`))
    .join(" ");

/** The folder that goes first into agentctl's PATH. */
export function installCounter(world: TestRepository): string {
  const folder = join(world.root, "bin");
  mkdirSync(folder);
  writeFileSync(join(folder, "git"), counting(world), { mode: 0o755 });
  return folder;
}

export interface Disturbance {
  text: string;
  /** A person or another agentctl may have changed something. */
  hasCompany: boolean;
  /** A kill by the clock instead of by a call of git. */
  killAfterMs: number | null;
}

/** Clears what the last act left. */
export function clearHook(world: TestRepository): void {
  rmSync(world.hook, { recursive: true, force: true });
  mkdirSync(join(world.hook, "calls"), { recursive: true });
}

/** Perhaps company, perhaps a signal, perhaps both. */
export function drawDisturbance(world: TestRepository, act: Act, dice: Dice): Disturbance {
  clearHook(world);
  const company = dice.chance(0.4) ? drawCompany(world, act, dice) : null;
  const isKilled = dice.chance(0.4);
  const killAfterMs = isKilled && dice.chance(0.2) ? dice.below(150) : null;
  const signal = isKilled && killAfterMs === null ? drawSignal(world, act, dice) : null;
  const clock = killAfterMs === null ? null : `killed after ${killAfterMs} ms`;
  const text = [company, signal, clock].filter((each) => each !== null).join("; ");
  return { text, hasCompany: company !== null, killAfterMs };
}

/** Before, during or after one of agentctl's calls of git. */
interface Moment {
  when: string;
  at: string;
  text: string;
}

function drawMoment(act: Act, choices: readonly string[], dice: Dice): Moment {
  const when = dice.pick(choices);
  const isChanging = dice.chance(0.4);
  const number = 1 + dice.below(isChanging ? 3 : act.gitCalls);
  const at = isChanging ? `c${number}` : String(number);
  return { when, at, text: `${when} ${isChanging ? "changing " : ""}git call ${number}` };
}

/** A script that the counting git runs at that moment, after those that are there already. It may say not to run git at all. */
function arrange(world: TestRepository, { when, at }: Moment, script: string): void {
  appendFileSync(join(world.hook, `${when}-${at}`), `${script}\n`);
}

function drawSignal(world: TestRepository, act: Act, dice: Dice): string {
  const moment = drawMoment(act, ["before", "after", "during"], dice);
  const signal = dice.pick(["KILL", "KILL", "KILL", "INT", "TERM"]);
  const whom = dice.pick(["alone", "with its group"]);
  const pause = moment.when === "during" ? `sleep 0.00${dice.below(10)}\n` : "";
  const target = `${whom === "alone" ? "" : "-"}$(cat ${quoted(join(world.hook, "pid"))})`;
  const rest = whom !== "alone" && signal === "KILL" ? "\nexit 1" : "";
  arrange(world, moment, `${pause}kill -s ${signal} -- ${target}${rest}`);
  return `SIG${signal} ${whom} ${moment.text}`;
}

function drawCompany(world: TestRepository, act: Act, dice: Dice): string | null {
  if (dice.chance(0.15)) return addSecondAgentctl(world, act, dice);
  const open = world.sites.filter(
    ({ path, state }) => state === "plain" && path !== act.discards && existsSync(join(path, ".git")),
  );
  if (open.length === 0) return null;
  const wanted = open.filter((site) => act.targets.includes(site));
  const site = dice.pick(wanted.length > 0 && dice.chance(0.8) ? wanted : open);
  const moment = drawMoment(act, ["before", "before", "after"], dice);
  const [deed, script] = drawDeed(world, site.path, "during an act", dice);
  arrange(world, moment, `(\n${script}\n)`);
  return `in ${site.name} a person makes a ${deed} ${moment.text}`;
}

/** It must not wait for the first one while the first one waits for this call of git: it runs beside. */
function addSecondAgentctl(world: TestRepository, act: Act, dice: Dice): string {
  const moment = drawMoment(act, ["during"], dice);
  const command = dice.pick(["worktree prune -y", "launch demo say:x --permission bypass --worktree"]);
  const place = quoted(world.repository);
  arrange(
    world,
    moment,
    `(cd ${place} && env ${words(agentctlEnvironment(world))} ${quoted(world.binary)} ${command} &)`,
  );
  return `agentctl ${command} begins ${moment.text}`;
}

/** A shell script that works at one place, and writes down what it did when that is done. */
export function drawDeed(world: TestRepository, path: string, by: string, dice: Dice): [name: string, script: string] {
  const git = quoted(realGit);
  const place = quoted(path);
  const write = (file: string, label: string) => `printf %s ${quoted(world.text(label))} >${quoted(file)}`;
  const done = (words: string) => `printf '%s\\n' ${words} >>${quoted(join(world.hook, "journal"))}`;
  const commitHere = (label: string): string => {
    const file = `deed-${dice.below(1_000_000)}`;
    return [
      write(file, label),
      `${git} add ${file}`,
      `${git} commit -q -m ${quoted(world.text(label).trim())} -- ${file}`,
      done(`"commit $(${git} log -1 --format='%H %s')"`),
    ].join(" && ");
  };
  const fileHere = (name: string, label: string): string => {
    const text = world.text(label);
    const key = `file ${world.deeds.size}`;
    world.deeds.set(key, { worktree: path, name, content: contentOf(Buffer.from(text)) });
    return `printf %s ${quoted(text)} >${quoted(name)} && ${done(quoted(key))}`;
  };
  const nested = `.claude/worktrees/deed-${dice.below(1_000_000)}`;
  const deeds: Record<string, string> = {
    commit: commitHere(`commit ${by}`),
    "new file": fileHere(`deed-${dice.below(1_000_000)}`, `new file ${by}`),
    "commit on a detached HEAD": `${git} checkout -q --detach && ${commitHere(`detached commit ${by}`)}`,
    // Over an edit of an earlier act the person would lose the first one alone.
    "hidden edit": `[ "$(${git} hash-object deep/c.txt)" = "$(${git} rev-parse HEAD:deep/c.txt)" ] && ${git} update-index --skip-worktree deep/c.txt && ${fileHere("deep/c.txt", `hidden edit ${by}`)}`,
    "nested worktree": `${git} worktree add -q --detach ${nested} && cd ${nested} && ${commitHere(`commit in a nested worktree ${by}`)}`,
  };
  const name = dice.pick([...Object.keys(deeds), "commit", "new file"]);
  return [name, `cd ${place} && ${deeds[name]}`];
}

export function readJournal(world: TestRepository): Journal {
  const path = join(world.hook, "journal");
  const lines = existsSync(path) ? readFileSync(path, "utf8").split("\n") : [];
  return {
    commits: lines
      .filter((line) => line.startsWith("commit "))
      .map((line) => ({ id: line.slice(7, 47), subject: line.slice(48) })),
    files: lines.flatMap((line) => world.deeds.get(line) ?? []),
  };
}

export const gitCalls = (world: TestRepository): number =>
  readdirSync(join(world.hook, "calls")).filter((name) => /^\d+$/.test(name)).length;
