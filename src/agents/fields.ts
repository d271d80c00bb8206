// Reads JSON of unknown shape: each function returns the field if it has the expected type, else null or an empty value.

export type Fields = Readonly<Record<string, unknown>>;

export const fieldsOf = (value: unknown): Fields | null =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : null;

/** Empty if the field is not an object. */
export const fieldsIn = (fields: Fields, key: string): Fields => fieldsOf(fields[key]) ?? {};

export const textIn = (fields: Fields, key: string): string | null => {
  const value = fields[key];
  return typeof value === "string" ? value : null;
};

export const numberIn = (fields: Fields, key: string): number | null => {
  const value = fields[key];
  return typeof value === "number" && Number.isFinite(value) ? value : null;
};

export const countIn = (fields: Fields, key: string): number | null => {
  const value = numberIn(fields, key);
  return value !== null && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? Math.floor(value) : null;
};

/** Milliseconds since the epoch, within the range of `Date`. */
export const millisIn = (fields: Fields, key: string): number | null => {
  const value = numberIn(fields, key);
  return value !== null && Math.abs(value) <= 8.64e15 ? value : null;
};

/** Ignores inherited keys: `table["constructor"]` would return a function. */
export const lookUp = <T>(table: Readonly<Record<string, T>>, word: string): T | undefined =>
  Object.hasOwn(table, word) ? table[word] : undefined;

/** "…" if the value is nested too deeply to be printed. */
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

/** The objects in a list; leaves out other values. */
export const listIn = (fields: Fields, key: string): Fields[] => {
  const value = fields[key];
  return Array.isArray(value) ? value.map(fieldsOf).filter((item) => item !== null) : [];
};

export const jsonIn = (fields: Fields, key: string): unknown => jsonOf(textIn(fields, key));

/** Parsed JSON; null if the text is not JSON. */
function jsonOf(text: string | null): unknown {
  try {
    return JSON.parse(text ?? "null");
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) return null;
    throw error;
  }
}

/** The object that a JSON text contains; null if it contains anything else. */
export const parsedFields = (text: string | null): Fields | null => fieldsOf(jsonOf(text));

/** An ISO time as milliseconds. */
export const timeIn = (fields: Fields, key: string): number | null => {
  const text = textIn(fields, key);
  const time = text === null ? Number.NaN : Date.parse(text);
  return Number.isNaN(time) ? null : time;
};

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export const isUuid = (text: string): boolean => uuid.test(text);

export const idOrNull = (text: string | null, isId: (text: string) => boolean): string | null =>
  text !== null && isId(text) ? text : null;

export const uuidOrNull = (text: string | null): string | null => idOrNull(text, isUuid);

export const uuidIn = (fields: Fields, key: string): string | null => uuidOrNull(textIn(fields, key));

/** words`a b` is ["a", "b"]. */
export const words = ([text = ""]: TemplateStringsArray): string[] => text.split(" ");
