// The holder: a few lines of sh that start the agent in a kernel session of its own, keep its exit status, and end it when
// its time is over or when the `agentctl run` that wanted it is gone. Killed, it costs these, and nothing else.
import { selfCommand } from "../sys/self.ts";
import { type HeldFiles, type SpawnedHolder, spawnHolder } from "../sys/spawn.ts";

/** The first word behind the script: by it a holder is known in the process table. */
export const holderMark = "agentctl-holder";

/**
 * The agent runs in the foreground: what a shell starts with & ignores SIGINT for good. The two watches end with the
 * agent; their numbers are still ours then, since nobody but us could have reaped them.
 */
const script = `exit=$1 tag=$2 given=$3 limit=$4 lifeline=$5 agentctl=$6 main=$7; shift 7
trap '' HUP INT TERM QUIT
end() { "$agentctl" \${main:+"$main"} end-launch "$tag" </dev/null >/dev/null 2>&1; }
watches=
if [ -n "$limit" ]; then
  ( exec 4<&-; trap 'kill $! 2>/dev/null; exit' TERM; sleep "$limit" & wait $!; end ) & watches=$!
fi
if [ -n "$lifeline" ]; then
  ( trap - TERM; read -r nothing <&4; end ) & watches="$watches $!"
fi
( trap - HUP INT TERM QUIT; exec 4<&-
  export AGENTCTL_TAG="$tag" AGENTCTL_TAG_SID=$$
  [ -z "$given" ] || export AGENTCTL_TAG_SESSION="$given"
  exec "$@" ); r=$?
[ -z "$watches" ] || kill $watches 2>/dev/null
umask 077; echo $r >"$exit.tmp" && mv "$exit.tmp" "$exit"
`;

export interface Held {
  launch: string;
  /** "<agent>:<id>" where the id is known before the start. */
  given: string | null;
  exitFile: string;
  limitMs: number | null;
  /** Ends with the process that starts it. */
  tied: boolean;
  command: readonly string[];
  cwd: string;
  env: Readonly<Record<string, string | undefined>>;
  files: HeldFiles;
}

export function startHolder(held: Held): SpawnedHolder {
  const limit = held.limitMs === null ? "" : String(Math.ceil(held.limitMs / 1000));
  const [agentctl = "", main = ""] = selfCommand();
  const words = [held.exitFile, held.launch, held.given ?? "", limit, held.tied ? "tied" : "", agentctl, main];
  return spawnHolder(["/bin/sh", "-c", script, holderMark, ...words, ...held.command], {
    cwd: held.cwd,
    env: held.env,
    files: held.files,
    tied: held.tied,
  });
}
