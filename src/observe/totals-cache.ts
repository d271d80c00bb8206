// What was counted of a record, kept so that next time only what was added since is read. Deleting it changes no answer.
import { join } from "node:path";
import type { Tokens } from "../core/evidence.ts";
import { writeFileAtomically } from "../lib/atomic-file.ts";
import { readChunk } from "../lib/jsonl.ts";
import { hashOf } from "../sys/hash.ts";
import { ownBuild } from "../sys/self.ts";
import { errorCode } from "./failure.ts";
import { cacheFolder, type Environment, wantsCache } from "./homes.ts";
import { distrustOf, withOwnFile } from "./own-files.ts";
import { folded, type Past, type Tally, type Usage } from "./tally.ts";

export interface TotalsCache {
  folder: string;
  /** Another build may count otherwise. */
  build: string;
  /** Shorter records are counted faster than anything about them is written down. */
  leastBytes: number;
  /** Of so many keys the tokens are kept, of those before only the sums: a key comes again soon, or never. */
  newestKeys: number;
}

/** Who counted what. */
export interface Counting {
  agent: string;
  path: string;
}

export interface Kept {
  /** Which file it was, how long, and when it was changed. */
  identity: string;
  size: number;
  changed: string;
  /** It had been left alone for long enough that any later change shows in its times. */
  isSettled: boolean;
  /** The end of the last line that was counted, and a hash of what stood around it. */
  offset: number;
  around: string;
  tally: Tally;
}

/** null: nothing is kept. */
export function totalsCache(env: Environment): TotalsCache | null {
  const build = wantsCache(env) ? ownBuild() : null;
  if (build === null || distrustOf(cacheFolder(env)) !== null) return null;
  return { folder: join(cacheFolder(env), "totals"), build, leastBytes, newestKeys };
}

const leastBytes = 1024 * 1024;
const newestKeys = 256;
const most = 64 * 1024 * 1024;
const hashLength = hashOf("").length;

/** Whatever is not exactly what this build has written is not there. */
export function readKept(cache: TotalsCache, counting: Counting): Kept | null {
  try {
    const bytes = withOwnFile(pathIn(cache, counting), ({ bytes, size }) => readChunk(bytes, 0, Math.min(size, most)));
    const text = bytes.subarray(hashLength);
    if (bytes.toString("latin1", 0, hashLength) !== hashOf(text)) return null;
    const [build, agent, path, kept, past, rows] = JSON.parse(text.toString("utf8")) as Written;
    if (build !== cache.build || agent !== counting.agent || path !== counting.path) return null;
    const { denied, costUsd, ...rest } = kept;
    return { ...rest, tally: { past: pastOf(past), usage: new Map(rows.map(usageOf)), denied, costUsd } };
  } catch (error) {
    if (error instanceof SyntaxError || errorCode(error) !== "") return null;
    throw error;
  }
}

/** Last writer wins. Where it cannot be written nothing is kept: that is no reason to fail. */
export function keep(cache: TotalsCache, counting: Counting, { tally, ...kept }: Kept): void {
  const { denied, costUsd, past, usage } = folded(tally, cache.newestKeys);
  const who = [cache.build, counting.agent, counting.path] as const;
  const written: Written = [...who, { ...kept, denied, costUsd }, past && writtenPast(past), [...usage].map(rowOf)];
  const text = JSON.stringify(written);
  if (text.length > most) return;
  try {
    writeFileAtomically(pathIn(cache, counting), `${hashOf(text)}${text}`, "soon");
  } catch (error) {
    if (errorCode(error) === "") throw error;
  }
}

const pathIn = ({ folder }: TotalsCache, { agent, path }: Counting): string => join(folder, hashOf(`${agent} ${path}`));

type Written = [
  build: string,
  agent: string,
  path: string,
  kept: Omit<Kept, "tally"> & Pick<Tally, "denied" | "costUsd">,
  past: WrittenPast | null,
  usage: Row[],
];

interface WrittenPast extends Pick<Past, "costUsd"> {
  byModel: [model: string, Tokens][];
  hashes: string;
}

const writtenPast = ({ byModel, costUsd, hashes }: Past): WrittenPast => ({
  byModel: [...byModel],
  costUsd,
  hashes: Buffer.from(hashes.buffer).toString("base64"),
});

function pastOf(written: WrittenPast | null): Past | null {
  if (written === null) return null;
  const { byModel, costUsd, hashes } = written;
  return {
    byModel: new Map(byModel),
    costUsd,
    hashes: new Uint32Array(new Uint8Array(Buffer.from(hashes, "base64")).buffer),
  };
}

type Row = [
  key: string,
  input: number,
  output: number,
  cacheRead: number,
  cacheWrite: number,
  model: string | null,
  costUsd: number | null,
];

const rowOf = ([key, { tokens, model, costUsd = null }]: [string, Usage]): Row => [
  ...([key, tokens.input, tokens.output, tokens.cacheRead, tokens.cacheWrite] as const),
  ...([model, costUsd] as const),
];

const usageOf = ([key, input, output, cacheRead, cacheWrite, model, costUsd]: Row): [string, Usage] => [
  key,
  { key, tokens: { input, output, cacheRead, cacheWrite }, model, costUsd },
];
