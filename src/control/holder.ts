// The holder: a few lines of sh that start the agent in a kernel session of its own, keep its exit status, and end it when
// its time is over or when the `agentctl run` that wanted it is gone. Its last act is to start the runner of on-exit. Killed,
// it costs these (on-exit is late then), and nothing else.
import { selfCommand } from "../sys/self.ts";
import { type HeldFiles, type SpawnedHolder, spawnHolder } from "../sys/spawn.ts";
import { keptForAgent } from "./environment.ts";

/** The first word behind the script: by it a holder is known in the process table. */
const holderMark = "agentctl-holder";

/**
 * The agent runs in the foreground: what a shell starts with & ignores SIGINT for good. Names begin with _agentctl: a
 * variable of the caller's with the same name would change under the agent's eyes. What only the agent is to have gets its
 * name in the agent's shell alone. The watches end with the agent; their
 * numbers are still ours then, since nobody but us could have reaped them. Where agentctl itself is gone, the time limit is
 * kept by hand: our children are ours until we have reaped them, and those that have become another program are the agent.
 */
const script = `_agentctl_exit=$1 _agentctl_tag=$2 _agentctl_given=$3 _agentctl_limit=$4 _agentctl_tied=$5 _agentctl_self=$6 _agentctl_main=$7 _agentctl_hook=$8 _agentctl_names=$9; shift 9
trap '' HUP INT TERM QUIT
_agentctl_signal() {
  for _agentctl_child in $(cat /proc/$$/task/$$/children 2>/dev/null); do
    cmp -s /proc/$_agentctl_child/cmdline /proc/$$/cmdline || kill -$1 $_agentctl_child
  done 2>/dev/null
}
_agentctl_end() {
  "$_agentctl_self" \${_agentctl_main:+"$_agentctl_main"} end-launch "$_agentctl_tag" </dev/null >/dev/null 2>&1 ||
    { _agentctl_signal TERM; sleep 10 & wait $!; _agentctl_signal KILL; }
}
_agentctl_watches=
if [ -n "$_agentctl_limit" ]; then
  ( exec 4<&-; trap 'kill $! 2>/dev/null; exit' TERM; sleep "$_agentctl_limit" & wait $!; _agentctl_end ) & _agentctl_watches=$!
fi
if [ -n "$_agentctl_tied" ]; then
  ( trap 'kill $! 2>/dev/null; exit' TERM; read -r _agentctl_nothing <&4; _agentctl_end ) & _agentctl_watches="$_agentctl_watches $!"
fi
( trap - HUP INT TERM QUIT; exec 4<&-
  export AGENTCTL_TAG="$_agentctl_tag" AGENTCTL_TAG_SID=$$
  [ -z "$_agentctl_given" ] || export AGENTCTL_TAG_SESSION="$_agentctl_given"
  for _agentctl_name in $_agentctl_names; do
    eval "export $_agentctl_name=\\"\\$${keptForAgent}$_agentctl_name\\""; unset "${keptForAgent}$_agentctl_name"
  done
  exec "$@" ); _agentctl_status=$?
[ -z "$_agentctl_watches" ] || kill $_agentctl_watches 2>/dev/null
umask 077
{ echo $_agentctl_status >"$_agentctl_exit.tmp" && mv "$_agentctl_exit.tmp" "$_agentctl_exit" || rm -f "$_agentctl_exit.tmp"; } 2>/dev/null
if [ -n "$_agentctl_hook" ]; then
  cd /; "$_agentctl_self" \${_agentctl_main:+"$_agentctl_main"} run-hook exit "$_agentctl_tag" "$_agentctl_hook" </dev/null >/dev/null 2>&1 4<&- &
fi
`;

/** Where the words of a holder stand in its arguments: sh, -c, the script, the mark, then these. */
const position = { launch: 5, given: 6 } as const;

/** The launch and the session ("<agent>:<id>", or null) of a holder, by its arguments; null: no holder. */
export function heldIn(argv: readonly string[]): { launch: string; given: string | null } | null {
  if (argv[3] !== holderMark) return null;
  return { launch: argv[position.launch] ?? "", given: argv[position.given] || null };
}

export interface Held {
  launch: string;
  /** "<agent>:<id>" where the id is known before the start. */
  given: string | null;
  exitFile: string;
  limitMs: number | null;
  /** Ends with the process that starts it. */
  tied: boolean;
  /** on-exit is to be run at its end. */
  hasExitHook: boolean;
  command: readonly string[];
  cwd: string;
  env: Readonly<Record<string, string | undefined>>;
  /** Only in the agent's environment, not in that of its hooks. Names that a shell can use. */
  agentOnly: Readonly<Record<string, string>>;
  files: HeldFiles;
}

export function startHolder(held: Held): SpawnedHolder {
  const limit = held.limitMs === null ? "" : String(Math.ceil(held.limitMs / 1000));
  const [agentctl = "", main = ""] = selfCommand();
  const words = [held.exitFile, held.launch, held.given ?? "", limit, held.tied ? "tied" : "", agentctl, main];
  const hook = held.hasExitHook ? held.cwd : "";
  // Not among the words, which everybody on this machine can read.
  const kept = Object.entries(held.agentOnly).map(([name, value]) => [`${keptForAgent}${name}`, value]);
  const names = Object.keys(held.agentOnly).join(" ");
  return spawnHolder(["/bin/sh", "-c", script, holderMark, ...words, hook, names, ...held.command], {
    cwd: held.cwd,
    env: { ...held.env, ...Object.fromEntries(kept) },
    files: held.files,
    tied: held.tied,
  });
}
