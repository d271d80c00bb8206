// The arguments of an agent: builds those of a start, reads those of a process. The template of a start is trusted; its values come
// from elsewhere (a person, a record), and must never become options.
import { Failure } from "../core/failure.ts";

declare const built: unique symbol;

/** Arguments that only `argv` and `handedOn` can create. */
export type Argv = readonly string[] & { readonly [built]: true };

/**
 * Blanks separate the words of the template. A value is a word, or the end of one (`--model=${model}`); an Argv is inserted as it is.
 * A value that is a whole word and begins with a dash is refused, because an agent may read it as an option. After `--` it is allowed.
 */
export function argv(text: TemplateStringsArray, ...values: readonly (string | Argv)[]): Argv {
  const words: string[] = [];
  let open: string | null = null;
  let areOptionsOver = false;
  const close = (): void => {
    if (open !== null) words.push(open);
    if (open === "--") areOptionsOver = true;
    open = null;
  };
  for (const [index, part] of text.entries()) {
    for (const piece of part.split(/(\s+)/)) {
      if (/^\s/.test(piece)) close();
      else if (piece !== "") open = `${open ?? ""}${piece}`;
    }
    const value = values[index];
    if (value === undefined) continue;
    if (typeof value === "string") {
      if (open === null && !areOptionsOver && value.startsWith("-")) throw looksLikeOption(value, words.at(-1));
      open = `${open ?? ""}${value}`;
    } else {
      close();
      words.push(...value);
    }
  }
  close();
  return words as readonly string[] as Argv;
}

/** Arguments that a person passes to the agent, unchecked. */
export const handedOn = (extra: readonly string[]): Argv => [...extra] as readonly string[] as Argv;

export const noWords: Argv = argv``;

const looksLikeOption = (value: string, before: string | undefined): Failure =>
  new Failure("looks-like-option", { value, option: before?.startsWith("-") === true ? before : null });

/** The value of a flag, given as `--flag value` or `--flag=value` before `--`. */
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

/** The arguments of a program before `--`, without options and their values. */
export function plainWords(argv: readonly string[], flagsWithValue: readonly string[]): string[] {
  const found: string[] = [];
  for (let index = 1; index < argv.length; index += 1) {
    const argument = argv[index] ?? "";
    if (argument === "--") return found;
    if (flagsWithValue.includes(argument)) index += 1;
    else if (!argument.startsWith("-") || argument === "-") found.push(argument);
  }
  return found;
}

export const baseName = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

/** The script that Node runs, and the arguments after it; null: another program. */
export function nodeScript(
  argv: readonly string[],
  runtimes = /^(node|nodejs)$/,
): { script: string; own: readonly string[] } | null {
  if (!runtimes.test(baseName(argv[0] ?? ""))) return null;
  let index = 1;
  while (argv[index]?.startsWith("-")) index += /^(-r|--require|--import|--loader)$/.test(argv[index] ?? "") ? 2 : 1;
  return { script: argv[index] ?? "", own: argv.slice(index + 1) };
}
