// One word as a shell reads it, for lines that a person may paste.

import { plainText } from "../lib/width.ts";

/** A directory's name may hold anything. What the printer would take out of it is written as bytes: the line must still lead there. */
export function shellWord(text: string): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  if (!/[\n\t]/.test(text) && plainText(text) === text) return `'${text.replaceAll("'", `'\\''`)}'`;
  const bytes = [...Buffer.from(text)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`);
  return `$'${bytes.join("")}'`;
}
