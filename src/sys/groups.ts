// The process groups of our children. Each child leads its own kernel session, so that it can be killed with everything that it
// started. A terminal's Ctrl-C does not reach it there, so this file forwards every signal that ends us.
import { hasCode, tryOr } from "../lib/errors.ts";

interface Group {
  leader: number;
  /** Time between SIGTERM and SIGKILL; 0: SIGKILL at once. */
  graceMs: number;
  isEnding: boolean;
}

const live = new Set<Group>();
const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
type EndSignal = (typeof signals)[number];

/** The signal that we send to ourselves as soon as the last group is dead. */
let fatal: EndSignal | null = null;

export interface HeldGroup<Child> {
  child: Child;
  /** Call it only before the leader was reaped: afterwards another process may have its pid. */
  end(): void;
  /** Call it when the leader was reaped, or when its exit no longer matters. */
  release(): void;
}

/** Starts the leader of a group. Until `release`, the group is killed when we are interrupted or exit. */
export function holdGroup<Child extends { pid: number }>(start: () => Child, graceMs: number): HeldGroup<Child> {
  // Listen first: a signal between the start and the listeners would leave the child running.
  watch();
  try {
    const child = start();
    const group: Group = { leader: child.pid, graceMs, isEnding: false };
    live.add(group);
    return {
      child,
      end: () => endGroup(group),
      release: () => {
        live.delete(group);
        if (live.size === 0) endOurselves();
        unwatchSoon();
      },
    };
  } catch (error) {
    unwatchSoon();
    throw error;
  }
}

let isWatching = false;

function watch(): void {
  if (isWatching) return;
  isWatching = true;
  for (const signal of signals) process.on(signal, onSignal);
  process.on("exit", onExit);
}

/** Without a listener a signal has its default effect: it ends us. */
function unwatch(): void {
  isWatching = false;
  for (const signal of signals) process.off(signal, onSignal);
  process.off("exit", onExit);
}

const dispatchMs = 10;

/** The runtime dispatches a signal a moment after it arrived. If the listener were removed by then, the signal would be lost. */
function unwatchSoon(): void {
  setTimeout(() => {
    if (isWatching && live.size === 0) unwatch();
  }, dispatchMs).unref();
}

/** If the command has its own listener, that listener decides whether we exit. The children are ended in both cases. */
function onSignal(signal: EndSignal): void {
  const isRepeated = fatal !== null;
  if (process.listenerCount(signal) === 1) fatal = signal;
  for (const group of live)
    if (isRepeated) signalGroup(group, "SIGKILL");
    else endGroup(group);
  if (isRepeated || [...live].every(({ graceMs }) => graceMs === 0)) endOurselves();
}

function endOurselves(): void {
  if (fatal === null) return;
  unwatch();
  process.kill(process.pid, fatal);
}

function onExit(): void {
  for (const group of live) signalGroup(group, group.graceMs > 0 ? "SIGTERM" : "SIGKILL");
}

function endGroup(group: Group): void {
  if (group.isEnding) return;
  group.isEnding = true;
  signalGroup(group, group.graceMs > 0 ? "SIGTERM" : "SIGKILL");
  if (group.graceMs === 0) return;
  setTimeout(() => {
    if (!live.has(group)) return;
    signalGroup(group, "SIGKILL");
    endOurselves();
  }, group.graceMs);
}

/** ESRCH: the group is dead already. EPERM: macOS returns it for a group of zombies. */
const signalGroup = ({ leader }: Group, signal: NodeJS.Signals): boolean =>
  tryOr(false, () => process.kill(-leader, signal), hasCode("ESRCH", "EPERM"));
