// Makes text from elsewhere safe for a terminal: no control characters, a known width, an ellipsis where it was cut.

// Removed in this order: whole escape sequences (colors, titles, links), other control characters, invisible characters. A title
// sequence or a clipboard sequence counts only if it ends on the same line: without an end it would swallow the text behind it.
const escapeSequences =
  /\x1b\[[0-?]*[ -/]*[@-~]|(?:\x1b[\]P^_X]|[\x9d\x90\x9e\x9f\x98])[^\x07\x1b\n\x80-\x9f]*(?:\x07|\x1b\\|\x9c)|\x1b[ -/]*[0-~]|\x9b[0-?]*[ -/]*[@-~]/g;
const controls = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;
const lineSeparators = /[\u2028\u2029]/g;
const loneSurrogates = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

// Direction marks, zero-width characters, fillers, tags. Joiners and variation selectors stay inside the scripts and emoji that
// need them.
const invisible = /[\ufff9-\ufffb]|(?![\u200c-\u200d]|[\ufe0e-\ufe0f])\p{Default_Ignorable_Code_Point}/gu;
const joiners =
  /((?<=\p{Emoji})[\ufe0e-\ufe0f]|(?<=\p{Extended_Pictographic}|\p{Emoji_Modifier}|\p{Emoji}\ufe0f)\u200d(?=\p{Extended_Pictographic})|(?<=[\u0600-\u1fff])[\u200c-\u200d](?=[\u0600-\u1fff]))|[\u200c-\u200d]|[\ufe0e-\ufe0f]/gu;

/** The fast path for almost every text: characters of one column each, and nothing to remove. */
const simple = /^[ -~\u00a1-\u00ac\u00ae-\u02ff…]*$/;

const suspicious = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufff9-\ufffb\p{Default_Ignorable_Code_Point}]/u;

const isPlain = (text: string): boolean => simple.test(text) || (!suspicious.test(text) && text.isWellFormed());

/** Removes escape sequences, control characters and invisible characters; keeps line breaks and tabs. */
export const plainText = (text: string): string =>
  isPlain(text)
    ? text
    : text
        .replace(escapeSequences, "")
        .replace(/\r\n?/g, "\n")
        .replace(controls, "")
        .replace(lineSeparators, " ")
        .replace(invisible, "")
        .replace(joiners, "$1")
        .replace(loneSurrogates, "\ufffd");

/** Applies `plainText` to every string in a value, at any depth, including keys. */
export function plainValue<T>(value: T): T {
  if (typeof value === "string") return plainText(value) as T;
  if (Array.isArray(value)) return value.map(plainValue) as T;
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [plainText(key), plainValue(inner)])) as T;
}

/** One line of JSON, cleaned. Most values need no cleaning and are serialized only once. */
export function jsonLine(value: unknown): string {
  const text = JSON.stringify(value);
  const isClean = isPlain(text) && !/\\u(?:00[01]|d[89a-f])|\\[bfr]/.test(text);
  return `${isClean ? text : JSON.stringify(plainValue(value))}\n`;
}

/** `plainText` on one line. */
export const oneLine = (text: string): string =>
  simple.test(text) && !text.includes("  ") ? text.trim() : plainText(text).replace(/\s+/g, " ").trim();

/** How many columns the text takes on a terminal. */
export function width(text: string): number {
  if (simple.test(text)) return text.length;
  let columns = 0;
  for (const character of text) columns += characterWidth(character);
  return columns;
}

/** At most `columns` wide, with an ellipsis where something was cut. */
export function cut(text: string, columns: number): string {
  if (width(text) <= columns) return text;
  if (simple.test(text)) return columns > 0 ? `${text.slice(0, columns - 1)}…` : "";
  let kept = "";
  let used = 0;
  for (const character of text) {
    used += characterWidth(character);
    if (used > columns - 1) break;
    kept += character;
  }
  return columns > 0 ? `${kept}…` : "";
}

/** Splits into lines of at most `columns`, between words if possible. */
export function wrap(text: string, columns: number): string[] {
  return text
    .replaceAll("\t", "    ")
    .split("\n")
    .flatMap((line) => (width(line) <= columns ? [line] : wrapLine(line, columns)));
}

function wrapLine(line: string, columns: number): string[] {
  const lines: string[] = [];
  let current = "";
  let used = 0;
  const endLine = (text: string): void => {
    lines.push(text);
    current = "";
    used = 0;
  };
  for (const word of line.split(/(?<= )(?! )/)) {
    if (used > 0 && used + width(word.trimEnd()) > columns) endLine(current.trimEnd());
    const isLong = width(word) > columns;
    for (const part of isLong ? word : [word]) {
      if (isLong && used > 0 && used + width(part) > columns) endLine(current);
      current += part;
      used += width(part);
    }
  }
  return current.trimEnd() === "" ? lines : [...lines, current.trimEnd()];
}

export const pad = (text: string, columns: number): string => text + " ".repeat(Math.max(0, columns - width(text)));

const ofNoWidth = /^(?:[\u0300-\u036f]|\u200b|\u200d|[\ufe00-\ufe0f])/;
const ofTwoColumns =
  /^[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;

const characterWidth = (character: string): number =>
  character < "\u0300" ? 1 : ofNoWidth.test(character) ? 0 : ofTwoColumns.test(character) ? 2 : 1;

/** The first `most` names, and how many more there are. */
export const someOf = (names: readonly string[], most: number): string =>
  [...names.slice(0, most), ...(names.length > most ? [`and ${names.length - most} more`] : [])].join(", ");

export const someLines = (lines: readonly string[], most: number): string[] => [
  ...lines.slice(0, most),
  ...(lines.length > most ? [`… and ${lines.length - most} more`] : []),
];
