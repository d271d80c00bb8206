// Selects the processes whose details are read, and which details. The readers of Linux and macOS share it.
import type { Adapter } from "../agents/adapter.ts";
import type { Problem, ProblemDetail, Reading } from "../core/problem.ts";
import type { ProcessTable } from "../core/process.ts";

export interface ProcessQuery {
  names: ReadonlySet<string>;
  pids: ReadonlySet<number>;
  environment: ReadonlySet<string>;
  /** Open files are expensive to list: they are read only for processes whose name and arguments match one of these agents. */
  lockedFiles: readonly Pick<Adapter, "lockedFiles" | "processNames" | "role">[];
  /** "ours": details of all processes and the environments of ours; commands that end processes need them. */
  also?: "ours";
}

/** Reads the table without details of any process. */
export const noDetails: ProcessQuery = { names: new Set(), pids: new Set(), environment: new Set(), lockedFiles: [] };

/** All processes of these agents, and the announced ones. */
export const queryFor = (adapters: readonly Adapter[], announced: readonly number[] = []): ProcessQuery => ({
  names: new Set(adapters.flatMap(({ processNames }) => processNames)),
  pids: new Set(announced),
  environment: new Set([...ownKeys, ...adapters.flatMap(keysOf)]),
  lockedFiles: adapters,
});

const ownKeys = ["AGENTCTL_TAG", "AGENTCTL_TAG_SID", "AGENTCTL_TAG_SESSION", "TMUX", "TMUX_PANE"];

const keysOf = ({ environment, server }: Adapter): string[] =>
  server?.secret === undefined ? [...environment] : [...environment, server.secret.environment];

export type ProcessReader = (query: ProcessQuery) => Reading<ProcessTable>;

export const unreadableProcess = (source: string, detail: ProblemDetail): Problem => ({
  ...{ code: "process-unreadable", agent: null, source, detail },
});
