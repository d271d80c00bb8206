// Reading JSON of unknown shape: ask for a field as what you need it to be, and get null where it is something else.

export type Fields = Readonly<Record<string, unknown>>;

export const fieldsOf = (value: unknown): Fields | null =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : null;

/** An object inside of it; without fields where it is something else. */
export const fieldsIn = (fields: Fields, key: string): Fields => fieldsOf(fields[key]) ?? {};

export const textIn = (fields: Fields, key: string): string | null => {
  const value = fields[key];
  return typeof value === "string" ? value : null;
};

export const numberIn = (fields: Fields, key: string): number | null => {
  const value = fields[key];
  return typeof value === "number" && Number.isFinite(value) ? value : null;
};

/** A count: never negative, never a fraction, never beyond what numbers can count. */
export const countIn = (fields: Fields, key: string): number | null => {
  const value = numberIn(fields, key);
  return value !== null && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? Math.floor(value) : null;
};

/** Milliseconds of the epoch, within what a calendar holds. */
export const millisIn = (fields: Fields, key: string): number | null => {
  const value = numberIn(fields, key);
  return value !== null && Math.abs(value) <= 8.64e15 ? value : null;
};

/** What a table says of a word from outside; an object inherits words that nobody put in. */
export const lookUp = <T>(table: Readonly<Record<string, T>>, word: string): T | undefined =>
  Object.hasOwn(table, word) ? table[word] : undefined;

/** Any JSON value as text. Nested deeper than the stack it has none. */
export function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch (error) {
    if (error instanceof RangeError) return "…";
    throw error;
  }
}

export const textsIn = (fields: Fields, key: string): string[] => {
  const value = fields[key];
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
};

/** The objects in a list; whatever else is in it is passed over. */
export const listIn = (fields: Fields, key: string): Fields[] => {
  const value = fields[key];
  return Array.isArray(value) ? value.map(fieldsOf).filter((item) => item !== null) : [];
};

/** A text that is itself JSON, parsed; null for anything else. */
export const jsonIn = (fields: Fields, key: string): unknown => {
  try {
    return JSON.parse(textIn(fields, key) ?? "null");
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) return null;
    throw error;
  }
};

/** An ISO time as milliseconds; null for anything that is no time. */
export const timeIn = (fields: Fields, key: string): number | null => {
  const text = textIn(fields, key);
  const time = text === null ? Number.NaN : Date.parse(text);
  return Number.isNaN(time) ? null : time;
};

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export const isUuid = (text: string): boolean => uuid.test(text);

export const uuidIn = (fields: Fields, key: string): string | null => {
  const id = textIn(fields, key);
  return id !== null && isUuid(id) ? id : null;
};

/** The value after a flag, as `--flag value` or `--flag=value`; only before `--`. */
export function flagValue(argv: readonly string[], ...flags: string[]): string | null {
  for (const [index, argument] of argv.entries()) {
    if (argument === "--") return null;
    for (const flag of flags) {
      if (argument === flag) return argv[index + 1] ?? null;
      if (argument.startsWith(`${flag}=`)) return argument.slice(flag.length + 1);
    }
  }
  return null;
}

export const baseName = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
