// The dialog that an agent shows before it has a session: "do you trust this directory?". Asked only for silent processes.
import type { Adapter } from "../adapters/adapter.ts";
import type { StartDialog } from "../core/evidence.ts";
import type { ProcessRow } from "../core/process.ts";
import { isGone } from "./failure.ts";
import { readWhole, withFile } from "./files.ts";

const settingsLimit = 64 * 1024 * 1024;

export function readDialog(adapter: Adapter, home: string, row: ProcessRow): StartDialog | null {
  const { trust } = adapter;
  const settings = trust === null ? null : readFirst(trust.files(home));
  if (trust === null || settings === null || !trust.mustAsk(settings.text, row)) return null;
  const text = `Do you trust ${row.detail?.cwd ?? "this directory"}?`;
  return { process: row.identity, waiting: { kind: "trust", text, tool: null, options: [] }, source: settings.path };
}

function readFirst(paths: readonly string[]): { path: string; text: string } | null {
  for (const path of paths) {
    try {
      return { path, text: withFile(path, (file) => readWhole(file, settingsLimit).toString("utf8")) };
    } catch (error) {
      // An unreadable settings file leaves the process unclear, as it was.
      if (!isGone(error)) return null;
    }
  }
  return null;
}
