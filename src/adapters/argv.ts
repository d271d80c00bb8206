// The arguments that an agent is started with. What stands in the template is ours; every value in it comes from elsewhere (a
// person, a record), and is never taken for an option.
import { AgentctlError } from "../core/problem.ts";

declare const built: unique symbol;

/** Only `argv` and `handedOn` make one. */
export type Argv = readonly string[] & { readonly [built]: true };

/**
 * Words are separated by blanks. A value is one word, or the end of one (`--model=${model}`); other Argv are put in between.
 * A value that would be a word of its own with a dash in front is refused: agents differ in what they take that for. Behind
 * `--` it may stand.
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

/** A person's own arguments for the agent, as they are. */
export const handedOn = (extra: readonly string[]): Argv => [...extra] as readonly string[] as Argv;

export const noWords: Argv = argv``;

function looksLikeOption(value: string, before: string | undefined): AgentctlError {
  const where = before?.startsWith("-") === true ? `${before} cannot take "${value}"` : `cannot pass on "${value}"`;
  return new AgentctlError("usage", `${where}: it begins with a dash, and the agent would read it as an option`, {
    hint: "options of the agent's own stand behind --",
  });
}
