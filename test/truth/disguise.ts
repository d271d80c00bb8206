// Fake agents whose program file, name and every argument are those of an agent.
// Bash refuses the arguments of other programs, so it is started with a stand-in of the same length, which is then written
// over in its memory: the kernel shows that memory, as it does for programs that rename themselves.
import {
  closeSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { Disguise, Disguises } from "./format.ts";
import { readProcArguments, readProcChildren, readProcName, until } from "./proc.ts";

const agentScript = `printf %s "$FAKE_NAME" >/proc/self/comm
# Blocks on its stdin and obeys single words; the end of stdin is its end.
while read -r order place words; do
  case $order in
    child) sleep 1000000 8<&- 9<&- & ;;
    deaf) trap '' TERM INT HUP ;;
    lock) exec 9<>"$place"; flock -n 9; : >"$words" ;;
    lock-also) exec 8<>"$place"; flock -n 8 9<&-; : >"$words" ;;
    nest) BASH_ENV= setsid bash -c 'export BASH_ENV=$FAKE_SCRIPT; exec -a n "$@"' bash "$FAKE_PROGRAM" $words 0<>"$place" 8<&- 9<&- & ;;
    leave) exit 0 ;;
  esac
done
exit 0
`;

// It ends with what it started, which takes its orders from a pipe with a name: our own ends with the wrapper.
const wrapperScript = `printf %s "$FAKE_WRAPPER_NAME" >/proc/self/comm
(export BASH_ENV="$FAKE_SCRIPT" $FAKE_ADDED; exec -a n "$FAKE_PROGRAM" "$FAKE_STAND_IN" 0<>"$FAKE_ORDERS") &
wait
exit 0
`;

/** In the kernel session that it gets, as an agent below agentctl's holder. */
const withTag = 'export AGENTCTL_TAG_SID=$$ BASH_ENV="$FAKE_FIRST"; exec -a n "$@"';

const careless =
  'exec 3<&0; (export BASH_ENV="$FAKE_FIRST"; exec -a n "$@" <&3 3<&-) & exec sleep 1000000 0</dev/null 3<&-';

export interface DisguisedPrograms {
  disguises: Disguises;
  program: string;
  wrapper: string;
  environment: Record<string, string>;
}

/** `shell`: a copy of the shell on the same file system, made when it is not there. */
export function makeDisguisedPrograms(folder: string, shell: string, disguises: Disguises): DisguisedPrograms {
  const program = join(folder, disguises.agent.exe);
  const wrapper = join(folder, disguises.wrapper?.exe ?? disguises.agent.exe);
  for (const path of new Set([program, wrapper])) linkShell(path, shell);
  const script = join(folder, "fake.sh");
  writeFileSync(script, agentScript);
  writeFileSync(join(folder, "wrapper.sh"), wrapperScript);
  const added = Object.entries(disguises.agent.environment ?? {}).map(([key, value]) => `${key}=${value}`);
  const names = {
    FAKE_NAME: disguises.agent.name,
    FAKE_WRAPPER_NAME: disguises.wrapper?.name ?? "",
    FAKE_ADDED: added.join(" "),
  };
  return { disguises, program, wrapper, environment: { FAKE_PROGRAM: program, FAKE_SCRIPT: script, ...names } };
}

/** A hard link, because a symbolic link would show its target. Not to the system's shell, whose link count would change. */
function linkShell(path: string, shell: string): void {
  mkdirSync(dirname(path), { recursive: true });
  if (!existsSync(shell)) copyFileSync("/bin/bash", shell);
  if (!existsSync(path)) linkSync(shell, path);
}

export interface DisguiseOrder {
  programs: DisguisedPrograms;
  arguments: string[];
  cwd: string;
  environment: Record<string, string>;
  /** Its parent is a wrapper that waits for it; one that never waits; or us. */
  under: "wrapper" | "careless" | "us";
  /** The named pipe that one below a wrapper reads. */
  orders: string | null;
  /** Carries a tag that counts: the variables are in its environment, but for the kernel session. */
  tagged: boolean;
  ownKernelSession: boolean;
}

/** The first process, and how to find out the agent below it. */
export function spawnDisguised(order: DisguiseOrder) {
  const { programs, cwd, under, tagged } = order;
  const { disguises, program, wrapper, environment } = programs;
  const wraps = under === "wrapper";
  const standIns = standInsOf(order);
  const first = wraps ? [wrapper, standIns.wrapper] : [program, standIns.agent];
  const script = wraps ? join(dirname(environment["FAKE_SCRIPT"] ?? ""), "wrapper.sh") : environment["FAKE_SCRIPT"];
  const added = wraps ? {} : disguises.agent.environment;
  const roles = { FAKE_STAND_IN: standIns.agent, FAKE_FIRST: script ?? "", FAKE_ORDERS: order.orders ?? "" };
  const env = { ...order.environment, ...environment, ...added, ...roles };
  const streams = { stdin: "pipe", stdout: "ignore", stderr: "ignore" } as const;
  if (tagged || under === "careless")
    return Bun.spawn(["/bin/bash", "-c", under === "careless" ? careless : withTag, "bash", ...first], {
      ...{ cwd, env, ...streams },
      detached: tagged,
    });
  const detached = order.ownKernelSession;
  return Bun.spawn(first, { argv0: "n", cwd, env: { ...env, BASH_ENV: script ?? "" }, ...streams, detached });
}

/** Waits until every process has started its program and looks like it. */
export async function applyDisguises(
  order: DisguiseOrder,
  first: number,
): Promise<{ pid: number; wrapper: number | null }> {
  const { disguises } = order.programs;
  const standIns = standInsOf(order);
  if (order.under === "us") {
    await applyDisguise(first, disguises.agent, order.arguments, standIns.agent);
    return { pid: first, wrapper: null };
  }
  if (order.under === "wrapper" && disguises.wrapper !== null)
    await applyDisguise(first, disguises.wrapper, order.arguments, standIns.wrapper);
  const find = () => readProcChildren(first).find((pid) => readProcArguments(pid)[1] === standIns.agent);
  await until("a disguised agent below its parent", () => find() !== undefined);
  const pid = find() ?? 0;
  await applyDisguise(pid, disguises.agent, order.arguments, standIns.agent);
  if (order.under === "careless") await until("the careless parent", () => readProcName(first) === "sleep");
  return { pid, wrapper: order.under === "wrapper" ? first : null };
}

/** As long as the text that it stands for, after the argument `n`. */
export const standIn = (disguise: Disguise, argv: readonly string[], letter: string): string =>
  letter.repeat(bytesOf(disguise, argv).length - 3);

function standInsOf({ programs, arguments: argv }: DisguiseOrder): { agent: string; wrapper: string } {
  const { agent, wrapper } = programs.disguises;
  return { agent: standIn(agent, argv, "x"), wrapper: wrapper === null ? "" : standIn(wrapper, argv, "w") };
}

const bytesOf = (disguise: Disguise, argv: readonly string[]): Buffer => Buffer.from(disguise.commandLine(argv));

export async function applyDisguise(
  pid: number,
  disguise: Disguise,
  argv: readonly string[],
  stands: string,
): Promise<void> {
  await until("a fake agent under its agent's name", () => readProcName(pid) === disguise.name);
  await until("a fake agent with a stand-in", () => readProcArguments(pid)[1] === stands);
  const bytes = bytesOf(disguise, argv);
  const room = roomForArguments(pid);
  if (room.bytes !== bytes.length) throw new Error(`harness: ${room.bytes} bytes of arguments, ${bytes.length} wanted`);
  writeMemory(pid, room.at, bytes);
}

/** Like a program that sets a title: the rest of the old arguments becomes empty. */
export function overwriteArguments(pid: number, title: string): void {
  const { at, bytes } = roomForArguments(pid);
  writeMemory(pid, at, Buffer.alloc(bytes, Buffer.from(title.padEnd(bytes, "\0").slice(0, bytes))));
}

function roomForArguments(pid: number): { at: number; bytes: number } {
  const fields = readFileSync(`/proc/${pid}/stat`, "latin1")
    .replace(/^.*\) /, "")
    .split(" ");
  const [from, to] = [Number(fields[45]), Number(fields[46])];
  return { at: from, bytes: to - from };
}

function writeMemory(pid: number, at: number, bytes: Buffer): void {
  const memory = openSync(`/proc/${pid}/mem`, "r+");
  writeSync(memory, bytes, 0, bytes.length, at);
  closeSync(memory);
}
