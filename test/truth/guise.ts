// Twins that must look like more than a shell with another name: their file, their name and every argument are an agent's.
// Bash refuses the arguments of other programs, so it is started with a stand-in of the same length, which is then written
// over in its memory: the kernel shows what stands there, as it does for programs that rename themselves.
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
import type { Guise, Guises } from "./format.ts";
import { readProcArguments, readProcChildren, readProcName, until } from "./proc.ts";

const agentScript = `printf %s "$TWIN_NAME" >/proc/self/comm
# Blocks on its stdin and obeys single words; the end of stdin is its end.
while read -r order place words; do
  case $order in
    child) sleep 1000000 8<&- 9<&- & ;;
    deaf) trap '' TERM INT HUP ;;
    lock) exec 9<>"$place"; flock -n 9; : >"$words" ;;
    lock-also) exec 8<>"$place"; flock -n 8 9<&-; : >"$words" ;;
    nest) BASH_ENV= setsid bash -c 'export BASH_ENV=$TWIN_SCRIPT; exec -a n "$@"' bash "$TWIN_PROGRAM" $words 0<>"$place" 8<&- 9<&- & ;;
    leave) exit 0 ;;
  esac
done
exit 0
`;

// It ends with what it started, which takes its orders from a pipe with a name: our own ends with the wrapper.
const wrapperScript = `printf %s "$TWIN_WRAPPER_NAME" >/proc/self/comm
(export BASH_ENV="$TWIN_SCRIPT" $TWIN_ADDED; exec -a n "$TWIN_PROGRAM" "$TWIN_STAND_IN" 0<>"$TWIN_ORDERS") &
wait
exit 0
`;

/** In the kernel session that it gets, as an agent below agentctl's holder. */
const withTag = 'export AGENTCTL_TAG_SID=$$ BASH_ENV="$TWIN_FIRST"; exec -a n "$@"';

/** A parent that never waits. */
const careless =
  'exec 3<&0; (export BASH_ENV="$TWIN_FIRST"; exec -a n "$@" <&3 3<&-) & exec sleep 1000000 0</dev/null 3<&-';

export interface Wardrobe {
  guises: Guises;
  program: string;
  wrapper: string;
  environment: Record<string, string>;
}

/** `shell`: a copy of the shell on the same file system, made when it is not there. */
export function makeWardrobe(folder: string, shell: string, guises: Guises): Wardrobe {
  const program = join(folder, guises.agent.exe);
  const wrapper = join(folder, guises.wrapper?.exe ?? guises.agent.exe);
  for (const path of new Set([program, wrapper])) linkShell(path, shell);
  const script = join(folder, "twin.sh");
  writeFileSync(script, agentScript);
  writeFileSync(join(folder, "wrapper.sh"), wrapperScript);
  const added = Object.entries(guises.agent.environment ?? {}).map(([key, value]) => `${key}=${value}`);
  const names = {
    TWIN_NAME: guises.agent.name,
    TWIN_WRAPPER_NAME: guises.wrapper?.name ?? "",
    TWIN_ADDED: added.join(" "),
  };
  return { guises, program, wrapper, environment: { TWIN_PROGRAM: program, TWIN_SCRIPT: script, ...names } };
}

/** A file of its own: a symbolic link would show where it leads to. Not of the system's own shell, which counts its links. */
function linkShell(path: string, shell: string): void {
  mkdirSync(dirname(path), { recursive: true });
  if (!existsSync(shell)) copyFileSync("/bin/bash", shell);
  if (!existsSync(path)) linkSync(shell, path);
}

export interface Masquerade {
  wardrobe: Wardrobe;
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
export function spawnMasked(order: Masquerade) {
  const { wardrobe, cwd, under, tagged } = order;
  const { guises, program, wrapper, environment } = wardrobe;
  const wraps = under === "wrapper";
  const standIns = standInsOf(order);
  const first = wraps ? [wrapper, standIns.wrapper] : [program, standIns.agent];
  const script = wraps ? join(dirname(environment["TWIN_SCRIPT"] ?? ""), "wrapper.sh") : environment["TWIN_SCRIPT"];
  const added = wraps ? {} : guises.agent.environment;
  const roles = { TWIN_STAND_IN: standIns.agent, TWIN_FIRST: script ?? "", TWIN_ORDERS: order.orders ?? "" };
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

/** Waits until everybody is who it is, and lets them look like it. */
export async function dressAll(order: Masquerade, first: number): Promise<{ pid: number; wrapper: number | null }> {
  const { guises } = order.wardrobe;
  const standIns = standInsOf(order);
  if (order.under === "us") {
    await dress(first, guises.agent, order.arguments, standIns.agent);
    return { pid: first, wrapper: null };
  }
  if (order.under === "wrapper" && guises.wrapper !== null)
    await dress(first, guises.wrapper, order.arguments, standIns.wrapper);
  const find = () => readProcChildren(first).find((pid) => readProcArguments(pid)[1] === standIns.agent);
  await until("a masked agent below its parent", () => find() !== undefined);
  const pid = find() ?? 0;
  await dress(pid, guises.agent, order.arguments, standIns.agent);
  if (order.under === "careless") await until("the careless parent", () => readProcName(first) === "sleep");
  return { pid, wrapper: order.under === "wrapper" ? first : null };
}

/** Of the same length as what it stands in for, with the argument `n` before it. */
export const standIn = (guise: Guise, argv: readonly string[], letter: string): string =>
  letter.repeat(bytesOf(guise, argv).length - 3);

function standInsOf({ wardrobe, arguments: argv }: Masquerade): { agent: string; wrapper: string } {
  const { agent, wrapper } = wardrobe.guises;
  return { agent: standIn(agent, argv, "x"), wrapper: wrapper === null ? "" : standIn(wrapper, argv, "w") };
}

const bytesOf = (guise: Guise, argv: readonly string[]): Buffer => Buffer.from(guise.commandLine(argv));

export async function dress(pid: number, guise: Guise, argv: readonly string[], stands: string): Promise<void> {
  await until("a twin under its agent's name", () => readProcName(pid) === guise.name);
  await until("a twin with a stand-in", () => readProcArguments(pid)[1] === stands);
  const bytes = bytesOf(guise, argv);
  const room = roomForArguments(pid);
  if (room.bytes !== bytes.length) throw new Error(`harness: ${room.bytes} bytes of arguments, ${bytes.length} wanted`);
  writeMemory(pid, room.at, bytes);
}

/** As a program does that puts a title there: what was longer becomes empty. */
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
