// The arguments of an agent. The template itself is trusted; its values come from elsewhere (a person, a record), and must never
// become options.
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
