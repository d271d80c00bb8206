// Quotes a word for a shell, in lines that a person may paste.

import { plainText } from "../lib/width.ts";

/** Control characters in a path are written as bytes: the printer would remove them, and the path would be wrong. */
export function shellWord(text: string): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  if (!/[\n\t]/.test(text) && plainText(text) === text) return `'${text.replaceAll("'", `'\\''`)}'`;
  const bytes = [...Buffer.from(text)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`);
  return `$'${bytes.join("")}'`;
}
