// Caches parsed records together with the size and times of their files. Deleting or damaging the cache changes no answer.
import { type Stats, statSync } from "node:fs";
import { join } from "node:path";
import type { Store } from "../core/evidence.ts";
import type { Problem } from "../core/problem.ts";
import { writeFileAtomically } from "../lib/atomic-file.ts";
import { isError, tryOr } from "../lib/errors.ts";
import { hashOf } from "../sys/hash.ts";
import { ownBuild } from "../sys/self.ts";
import { readWhole } from "./files.ts";
import { cacheFolder, type Environment, wantsCache } from "./homes.ts";
import { distrustOf, withOwnFile } from "./own-files.ts";

export type StoreRow = Store["rows"][number];

interface CachedRecord {
  stamp: string;
  row: StoreRow;
}

export interface RecordCache {
  /** null: not in the cache, or the file has changed. */
  find(path: string, stat: Stats): StoreRow | null;
  keep(path: string, stat: Stats, row: StoreRow): void;
  /** Saves new entries if there are enough of them. If it cannot, the next command is only slower. */
  save(): void;
}

/** File times are coarse: a second write within this time may leave them unchanged. */
const racyMs = 2_000;
const mostEntries = 20_000;

/** "few": the records of the last answer about running or named sessions, which load quickly. "all": all records. */
export type CacheKind = "few" | "all";

/** An answer with more records than this is an exception: the next one need not load them all. */
const mostFew = 500;

/** Parsing fewer new records again is faster than writing the cache. */
const worthSaving = { few: 3, all: 16 };

/** null: switched off, or the version of the parsers is unknown. */
export function openRecordCache(env: Environment, now: number, kind: CacheKind): RecordCache | null {
  const version = wantsCache(env) ? ownBuild() : null;
  if (version === null || distrustOf(cacheFolder(env)) !== null) return null;
  const path = join(cacheFolder(env), kind === "all" ? "records" : "live");
  const known = load(path, version);
  const used = new Map<string, CachedRecord>();
  let fresh = 0;
  return {
    find(file, stat) {
      const entry = known.get(file);
      if (entry === undefined || entry.stamp !== stampOf(stat)) return null;
      used.set(file, entry);
      return entry.row;
    },
    keep(file, stat, row) {
      if (stat.mtimeMs > now - racyMs || stat.ctimeMs > now - racyMs) return;
      used.set(file, { stamp: stampOf(stat), row });
      fresh += 1;
    },
    save() {
      if (fresh < worthSaving[kind] || (kind === "few" && used.size > mostFew)) return;
      const others = kind === "few" ? [] : [...known].filter(([file]) => !used.has(file));
      const entries = [...used, ...others].slice(0, mostEntries);
      const body = JSON.stringify(entries);
      tryOr(null, () => writeFileAtomically(path, `${version} ${hashOf(body)}\n${body}`, "soon"));
    },
  };
}

/** If another user can write into the cache, that user could forge any record: the cache is not used, and a problem is reported. */
export function cacheProblems(env: Environment): Problem[] {
  const source = cacheFolder(env);
  const detail = wantsCache(env) && ownBuild() !== null ? distrustOf(source) : null;
  return detail === null ? [] : [{ code: "cache-unused", agent: null, source, detail }];
}

/** Twenty thousand entries take a fifth of this. */
const maxBytes = 128 * 1024 * 1024;

const stampOf = ({ dev, ino, size, mtimeMs, ctimeMs }: Stats): string => `${dev} ${ino} ${size} ${mtimeMs} ${ctimeMs}`;

function load(path: string, version: string): Map<string, CachedRecord> {
  const text = tryOr("", () => withOwnFile(path, (file) => readWhole(file, maxBytes)).toString("utf8"), isError);
  const end = text.indexOf("\n");
  const body = text.slice(end + 1);
  // The hash proves that this build wrote the text, so it has our type.
  return text.slice(0, end) === `${version} ${hashOf(body)}` ? new Map(JSON.parse(body)) : new Map();
}

export const statOf = (path: string): Stats | null => tryOr(null, () => statSync(path));
