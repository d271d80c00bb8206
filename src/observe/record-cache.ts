// Records as they were parsed, kept with what the file system said of their files then. A pure cache: deleting it, breaking it
// or writing it twice at once changes no answer. Nothing is in it that a record itself does not say.
import { type Stats, statSync } from "node:fs";
import { join } from "node:path";
import type { Store } from "../core/evidence.ts";
import type { Problem } from "../core/problem.ts";
import { writeFileAtomically } from "../lib/atomic-file.ts";
import { hashOf } from "../sys/hash.ts";
import { ownBuild } from "../sys/self.ts";
import { errorCode } from "./failure.ts";
import { readWhole } from "./files.ts";
import { cacheFolder, type Environment, wantsCache } from "./homes.ts";
import { distrustOf, withOwnFile } from "./own-files.ts";

type Row = Store["rows"][number];

interface Entry {
  stamp: string;
  row: Row;
}

export interface RecordCache {
  /** null: not known, or changed since. */
  find(path: string, stat: Stats): Row | null;
  keep(path: string, stat: Stats, row: Row): void;
  /** Writes down what is new, where that is worth it. Never fails: it is only slower without. */
  save(): void;
}

/** Written to within this time it may be written to again without a trace. */
const racyMs = 2_000;
const mostEntries = 20_000;

/**
 * "few": of those who look at what runs, or at sessions by name; only what the last look needed is in it, so that it is read in no
 * time. "all": of those who look at everything.
 */
export type CacheKind = "few" | "all";

/** Where more was needed than usual, that is no reason to load all of it the next time. */
const mostFew = 500;

/** Fewer are read again faster than all of them are written down. */
const worthSaving = { few: 3, all: 16 };

/** null: switched off, or nobody could say which version of the parsers wrote it. */
export function openRecordCache(env: Environment, now: number, kind: CacheKind): RecordCache | null {
  const version = wantsCache(env) ? ownBuild() : null;
  if (version === null || distrustOf(cacheFolder(env)) !== null) return null;
  const path = join(cacheFolder(env), kind === "all" ? "records" : "live");
  const known = load(path, version);
  const used = new Map<string, Entry>();
  let fresh = 0;
  return {
    find(file, stat) {
      const entry = known.get(file);
      if (entry === undefined || entry.stamp !== stampOf(stat)) return null;
      used.set(file, entry);
      // Whoever looks again changes what it has.
      return { ...entry.row };
    },
    keep(file, stat, row) {
      if (stat.mtimeMs > now - racyMs || stat.ctimeMs > now - racyMs) return;
      used.set(file, { stamp: stampOf(stat), row: { ...row } });
      fresh += 1;
    },
    save() {
      if (fresh < worthSaving[kind] || (kind === "few" && used.size > mostFew)) return;
      const others = kind === "few" ? [] : [...known].filter(([file]) => !used.has(file));
      const entries = [...used, ...others].slice(0, mostEntries);
      try {
        const body = JSON.stringify(entries);
        writeFileAtomically(path, `${version} ${hashOf(body)}\n${body}`, "soon");
      } catch (error) {
        if (errorCode(error) === "") throw error;
      }
    },
  };
}

/** Whoever can write into the cache could say anything about anybody: then it is left alone, and that is a problem to tell. */
export function cacheProblems(env: Environment): Problem[] {
  const source = cacheFolder(env);
  const message = wantsCache(env) && ownBuild() !== null ? distrustOf(source) : null;
  return message === null ? [] : [{ code: "cache-unused", agent: null, source, message }];
}

/** Twenty thousand entries take a fifth of it. */
const mostBytes = 128 * 1024 * 1024;

const stampOf = ({ dev, ino, size, mtimeMs, ctimeMs }: Stats): string => `${dev} ${ino} ${size} ${mtimeMs} ${ctimeMs}`;

function load(path: string, version: string): Map<string, Entry> {
  try {
    const text = withOwnFile(path, (file) => readWhole(file, mostBytes)).toString("utf8");
    const end = text.indexOf("\n");
    const body = text.slice(end + 1);
    // Our own words, of our own type, if they are whole.
    return text.slice(0, end) === `${version} ${hashOf(body)}` ? new Map(JSON.parse(body)) : new Map();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return new Map();
  }
}

/** null: gone, or not to be seen; why shows when it is opened. */
export function statOf(path: string): Stats | null {
  try {
    return statSync(path);
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return null;
  }
}
