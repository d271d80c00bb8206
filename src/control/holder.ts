// The holder: a few lines of sh that start the agent in its own kernel session, write its exit status, and stop it at its time
// limit or when the `agentctl run` that started it exits. At the end the holder starts the runner of the on-exit hook. If the
// holder is killed, only these are lost: the exit status, the time limit, and a timely hook.
import { selfCommand } from "../sys/self.ts";
import { type HeldFiles, type SpawnedHolder, spawnHolder } from "../sys/spawn.ts";
import { keptForAgent } from "./child-environment.ts";

/** The first argument after the script identifies a holder in the process table. */
const holderWord = "agentctl-holder";

/**
 * The agent runs in the foreground: a shell makes its background jobs ignore SIGINT for good. Variables begin with _agentctl,
 * because one with the name of a caller's variable would change that variable in the agent. Variables for the agent alone get
 * their names only in its subshell. The watches are killed after the agent exits; their pids cannot be reused before this shell
 * reaps them. If agentctl itself was removed, the script stops the agent without it: its children are safe to signal until it
 * reaps them, and a child that runs another program than this script is the agent.
 */
const script = `_agentctl_exit=$1 _agentctl_tag=$2 _agentctl_session=$3 _agentctl_limit=$4 _agentctl_tied=$5 _agentctl_self=$6 _agentctl_main=$7 _agentctl_hook=$8 _agentctl_names=$9; shift 9
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
  [ -z "$_agentctl_session" ] || export AGENTCTL_TAG_SESSION="$_agentctl_session"
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

/** Reads the arguments of a process: sh, -c, the script, the word above, the exit file. null: it is not a holder. */
export function holderIn(argv: readonly string[]): { launch: string; sessionName: string | null } | null {
  const [, , , word, , launch = "", sessionName] = argv;
  return word === holderWord ? { launch, sessionName: sessionName || null } : null;
}

export interface HolderOptions {
  launch: string;
  /** "<agent>:<id>"; null: the agent chooses the id. */
  sessionName: string | null;
  exitFile: string;
  limitMs: number | null;
  /** The agent is stopped when the process that starts the holder exits. */
  tied: boolean;
  hasExitHook: boolean;
  command: readonly string[];
  cwd: string;
  env: Readonly<Record<string, string | undefined>>;
  /** Variables for the agent, not for its hooks. Their names must be valid in a shell. */
  agentOnly: Readonly<Record<string, string>>;
  files: HeldFiles;
}

export function startHolder(options: HolderOptions): SpawnedHolder {
  const { exitFile, launch, sessionName, limitMs, tied, hasExitHook, agentOnly, command, cwd, env, files } = options;
  const limit = limitMs === null ? "" : String(Math.ceil(limitMs / 1000));
  const [agentctl = "", main = ""] = selfCommand();
  const names = Object.keys(agentOnly).join(" ");
  const words = [exitFile, launch, sessionName ?? "", limit, tied ? "tied" : "", agentctl, main];
  const hook = hasExitHook ? cwd : "";
  // Not in the arguments, which every user of this host can read.
  const kept = Object.entries(agentOnly).map(([name, value]) => [`${keptForAgent}${name}`, value]);
  return spawnHolder(["/bin/sh", "-c", script, holderWord, ...words, hook, names, ...command], {
    ...{ cwd, files, tied },
    env: { ...env, ...Object.fromEntries(kept) },
  });
}
