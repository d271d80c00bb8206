// The process groups of the children that run for us. Each child leads a kernel session of its own, so that it can be ended with
// everything that it started; the price is that a terminal's Ctrl-C does not reach it. Whatever ends us must end it, too.

interface Group {
  leader: number;
  /** Time between SIGTERM and SIGKILL; 0: SIGKILL at once. */
  graceMs: number;
  isEnding: boolean;
}

const live = new Set<Group>();
const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
type EndSignal = (typeof signals)[number];

/** The signal that ends us as soon as the last group is gone. */
let fatal: EndSignal | null = null;

export interface HeldGroup<Child> {
  child: Child;
  /** Only before the leader was reaped: afterwards its number may be another process's. */
  end(): void;
  /** The leader was reaped, or nobody waits for it any longer. */
  release(): void;
}

/** Starts the leader of a group. Until it is released, the group ends when we are interrupted or exit. */
export function holdGroup<Child extends { pid: number }>(start: () => Child, graceMs: number): HeldGroup<Child> {
  // The listeners come first: a signal between the start and the listeners would leave the child behind.
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

/** Without a listener a signal does what it does by default: it ends us. */
function unwatch(): void {
  isWatching = false;
  for (const signal of signals) process.off(signal, onSignal);
  process.off("exit", onExit);
}

const dispatchMs = 10;

/** A signal that has arrived is dispatched a moment later; if its listener were gone by then, the signal would be lost. */
function unwatchSoon(): void {
  setTimeout(() => {
    if (isWatching && live.size === 0) unwatch();
  }, dispatchMs).unref();
}

/** A command with a listener of its own decides what becomes of us; its children end in either case. */
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

function signalGroup({ leader }: Group, signal: NodeJS.Signals): void {
  try {
    process.kill(-leader, signal);
  } catch (error) {
    // The group is gone already. On macOS a group of zombies is EPERM.
    if (!(error instanceof Error && "code" in error && ["ESRCH", "EPERM"].includes(String(error.code)))) throw error;
  }
}
