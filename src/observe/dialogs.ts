// Finds the dialog that an agent shows before it starts a session: "do you trust this directory?".
import { statSync } from "node:fs";
import { join } from "node:path";
import type { Adapter, RepositoryRoots } from "../agents/adapter.ts";
import type { StartDialog } from "../core/evidence.ts";
import type { ProcessRow } from "../core/process.ts";
import { isGone, tryOr } from "../lib/errors.ts";
import { readWhole, withFile } from "./files.ts";
import { worktreeAround } from "./place.ts";

const settingsLimit = 64 * 1024 * 1024;

export function readDialog(adapter: Adapter, home: string, row: ProcessRow): StartDialog | null {
  const { trust } = adapter;
  const settings = trust === undefined ? null : readFirst(trust.files(home));
  if (trust === undefined || settings === null) return null;
  const cwd = row.detail?.cwd ?? null;
  if (!trust.mustAsk(settings.text, row, cwd === null ? null : repositoryOf(cwd))) return null;
  const text = `Do you trust ${row.detail?.cwd ?? "this directory"}?`;
  return { process: row.identity, waiting: { kind: "trust", text, tool: null, options: [] }, source: settings.path };
}

function readFirst(paths: readonly string[]): { path: string; text: string } | null {
  for (const path of paths) {
    try {
      return { path, text: withFile(path, (file) => readWhole(file, settingsLimit).toString("utf8")) };
    } catch (error) {
      // The status of the process stays unclear.
      if (!isGone(error)) return null;
    }
  }
  return null;
}

/** null: the directory is in no repository. */
export function repositoryOf(directory: string): RepositoryRoots | null {
  const root = worktreeAround(directory);
  if (root === null) return null;
  // The `.git` of a linked worktree is a file that leads to <main>/.git/worktrees/<name>.
  const mark = join(root, ".git");
  const text = tryOr(false, () => statSync(mark).isDirectory()) ? "" : (readFirst([mark])?.text ?? "");
  return { root, main: /^gitdir: (.+)\/\.git\/worktrees\//.exec(text)?.[1] ?? root };
}
