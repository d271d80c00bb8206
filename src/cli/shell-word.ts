// One word as a shell reads it, for lines that a person may paste.

/** A directory's name may hold anything, also what a terminal would obey. */
export function shellWord(text: string): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  if (!/[\x00-\x1f\x7f-\x9f]/.test(text)) return `'${text.replaceAll("'", `'\\''`)}'`;
  const bytes = [...Buffer.from(text)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`);
  return `$'${bytes.join("")}'`;
}
