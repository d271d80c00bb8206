// Saves the counts of a long record, so that the next count reads only what was added. Deleting them changes no answer.
import { join } from "node:path";
import type { Tokens } from "../../core/evidence.ts";
import { writeFileAtomically } from "../../lib/atomic-file.ts";
import { tryOr } from "../../lib/errors.ts";
import { readChunk } from "../../lib/jsonl.ts";
import { hashOf } from "../../sys/hash.ts";
import { ownBuild } from "../../sys/self.ts";
import type { OpenFile } from "../files.ts";
import { cacheFolder, type Environment, wantsCache } from "../homes.ts";
import { distrustOf, withOwnFile } from "../own-files.ts";
import { foldOlder, type OlderUsage, type Tally, type Usage } from "./tally.ts";

export interface CountsFolder {
  folder: string;
  /** Another build may count differently. */
  build: string;
  /** Counting a shorter record takes less time than saving its counts. */
  leastBytes: number;
  /** The tokens of so many of the newest keys are saved one by one, older ones only as sums: a key comes again soon or never. */
  newestKeys: number;
}

export interface RecordKey {
  agent: string;
  path: string;
}

export interface SavedCounts {
  /** Identity, size and change times of the file when it was counted. */
  identity: string;
  size: number;
  changed: string;
  /** The file had not changed for long enough that any later change shows in its times. */
  isSettled: boolean;
  /** The end of the last counted line, and a hash of the file's first bytes and those before this end. */
  offset: number;
  around: string;
  tally: Tally;
}

/** null: counts are not saved. */
export function openCountsFolder(env: Environment): CountsFolder | null {
  const build = wantsCache(env) ? ownBuild() : null;
  if (build === null || distrustOf(cacheFolder(env)) !== null) return null;
  return { folder: join(cacheFolder(env), "totals"), build, leastBytes, newestKeys };
}

const leastBytes = 1024 * 1024;
const newestKeys = 256;
const maxBytes = 64 * 1024 * 1024;
const hashLength = hashOf("").length;

/** null: nothing saved, or not exactly as this build saves it. */
export function readSaved(cache: CountsFolder, record: RecordKey): SavedCounts | null {
  const readStart = ({ bytes, size }: OpenFile): Buffer => readChunk(bytes, 0, Math.min(size, maxBytes));
  const bytes = tryOr(Buffer.alloc(0), () => withOwnFile(fileOf(cache, record), readStart));
  const text = bytes.subarray(hashLength);
  if (bytes.toString("latin1", 0, hashLength) !== hashOf(text)) return null;
  // The hash proves that agentctl wrote the text.
  const [build, agent, path, state, older, rows] = JSON.parse(text.toString("utf8")) as SavedFile;
  if (build !== cache.build || agent !== record.agent || path !== record.path) return null;
  const { denied, costUsd, ...rest } = state;
  return { ...rest, tally: { older: older && olderOf(older), usage: new Map(rows.map(usageOf)), denied, costUsd } };
}

/** The last writer wins. If the folder is not writable, the next count only takes longer. */
export function save(cache: CountsFolder, record: RecordKey, { tally, ...state }: SavedCounts): void {
  const { denied, costUsd, older, usage } = foldOlder(tally, cache.newestKeys);
  const written: SavedFile = [
    ...([cache.build, record.agent, record.path] as const),
    { ...state, denied, costUsd },
    older && savedOlder(older),
    [...usage].map(savedUsage),
  ];
  const text = JSON.stringify(written);
  if (text.length > maxBytes) return;
  tryOr(null, () => writeFileAtomically(fileOf(cache, record), `${hashOf(text)}${text}`, "soon"));
}

const fileOf = ({ folder }: CountsFolder, { agent, path }: RecordKey): string =>
  join(folder, hashOf(`${agent} ${path}`));

type SavedFile = [
  build: string,
  agent: string,
  path: string,
  state: Omit<SavedCounts, "tally"> & Pick<Tally, "denied" | "costUsd">,
  older: SavedOlder | null,
  usage: SavedUsage[],
];

interface SavedOlder extends Pick<OlderUsage, "costUsd"> {
  byModel: [model: string, Tokens][];
  hashes: string;
}

const savedOlder = ({ byModel, costUsd, hashes }: OlderUsage): SavedOlder => ({
  ...{ byModel: [...byModel], costUsd, hashes: Buffer.from(hashes.buffer).toString("base64") },
});

const olderOf = ({ byModel, costUsd, hashes }: SavedOlder): OlderUsage => ({
  ...{ byModel: new Map(byModel), costUsd },
  hashes: new Uint32Array(new Uint8Array(Buffer.from(hashes, "base64")).buffer),
});

type SavedUsage = [
  key: string,
  input: number,
  output: number,
  cacheRead: number,
  cacheWrite: number,
  model: string | null,
  costUsd: number | null,
];

const savedUsage = ([key, { tokens, model, costUsd = null }]: [string, Usage]): SavedUsage => [
  ...([key, tokens.input, tokens.output, tokens.cacheRead, tokens.cacheWrite] as const),
  ...([model, costUsd] as const),
];

const usageOf = ([key, input, output, cacheRead, cacheWrite, model, costUsd]: SavedUsage): [string, Usage] => [
  key,
  { key, tokens: { input, output, cacheRead, cacheWrite }, model, costUsd },
];
